// SPDX-License-Identifier: Apache-2.0
//
// Copies by the TMA. One lane issues them; a box is copied panel by panel,
// since a swizzled box is at most one panel wide. And bulk copies of what is
// one run of memory: stacks (TileStacks.td).
#include "compiler/Conversion/TileToNvvm/MatrixStore.h"
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

/// "{$first, $first+1, …}": coordinates, innermost first.
static std::string coordinateList(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// Coordinates of panel column `column`, innermost first.
static SmallVector<Value> coordinates(PtxBuilder &p, int64_t column,
                                      ValueRange indices) {
  SmallVector<Value> result{p.constant(column)};
  for (Value index : llvm::reverse(indices))
    result.push_back(index);
  return result;
}

/// Copies one box to `destination`, whose panels are `panelStride` bytes apart.
void NvvmEmitter::copyBox(Value map, const SharedMatrix &box,
                          ValueRange indices, Value destination,
                          int64_t panelStride, Value barrier) {
  size_t rank = indices.size() + 1;
  std::string text = "cp.async.bulk.tensor." + std::to_string(rank) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[$0], [$1, " +
                     coordinateList(3, rank) + "], [$2];";
  std::string constraints = "r,l,r";
  for (size_t i = 0; i < rank; ++i)
    constraints += ",r";
  for (int64_t panel = 0; panel < box.panels(); ++panel) {
    SmallVector<Value> operands{p_.add(destination, panel * panelStride), map,
                                barrier};
    llvm::append_range(operands,
                       coordinates(p_, panel * box.panelColumns(), indices));
    p_.ptxWhere(role_.elected, text, constraints, operands);
  }
}

/// Whether a gather of `boxes` is a loop over them, which `tile.loop_boxes`
/// says. Written out, a box takes sixteen instructions, ten of which copy
/// registers that all boxes share, and a scheduler's consumers wait for them;
/// but a loop's are a chain, which lasts where consumers issue much.
static bool isLooped(Operation *op, int64_t boxes) {
  auto looped = op->getAttrOfType<IntegerAttr>("tile.loop_boxes");
  return looped && looped.getInt() == boxes;
}

namespace {

/// What all boxes of a gather share. `panels`: byte in the slot, first column.
struct BoxLoop {
  Value map, destination, barrier, elected;
  SmallVector<Value> outerIndices;
  int64_t boxes, stride;
  SmallVector<std::pair<int64_t, int64_t>> panels;
};

} // namespace

/// Copies boxes of the rows that the lanes hold, box after box, to places
/// `stride` bytes apart.
static void copyInLoop(PtxBuilder &p, const BoxLoop &loop, Value rows) {
  // Operands: destination, map, barrier, the lanes' rows, who copies, outer
  // indices from the outermost on.
  std::string outer;
  std::string constraints = "r,l,r,r,b";
  for (size_t i = loop.outerIndices.size(); i > 0; --i)
    outer += ", $" + std::to_string(4 + i);
  for (size_t i = 0; i < loop.outerIndices.size(); ++i)
    constraints += ",r";
  std::string copy = "@$4 cp.async.bulk.tensor." +
                     std::to_string(loop.outerIndices.size() + 2) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes ";
  std::string text = "{\n"
                     ".reg .pred more;\n"
                     ".reg .b32 box, row, to, part;\n"
                     "mov.u32 box, 0;\n"
                     "mov.u32 to, $0;\n"
                     "again:\n"
                     ".pragma \"nounroll\";\n"
                     "shfl.sync.idx.b32 row, $3, box, 31, 0xffffffff;\n";
  for (auto [byte, column] : loop.panels)
    text += "add.u32 part, to, " + std::to_string(byte) + ";\n" + copy +
            "[part], [$1, {" + std::to_string(column) + ", row" + outer +
            "}], [$2];\n";
  text += "add.u32 box, box, 1;\n"
          "add.u32 to, to, " +
          std::to_string(loop.stride) +
          ";\n"
          "setp.lt.u32 more, box, " +
          std::to_string(loop.boxes) +
          ";\n"
          "@more bra.uni again;\n"
          "}";
  SmallVector<Value> operands{loop.destination, loop.map, loop.barrier, rows,
                              loop.elected};
  llvm::append_range(operands, loop.outerIndices);
  p.ptx(text, constraints + ",~{memory}", operands);
}

/// The other copies know panels that a swizzle permutes.
static LogicalResult expectSwizzled(Operation *op, const SharedMatrix &box) {
  if (box.isCores())
    return op->emitOpError()
           << "expects a swizzled box, got panels of 16 bytes";
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadAsyncOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix box(op.getSlot().getType());
  if (failed(expectSwizzled(op, box)))
    return failure();
  Value full = barrier(slot.ring, slot.stage, 0);
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
  copyBox(maps_[op.getMap()], box, indices, slot.address, box.panelBytes(),
          full);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::GatherAsyncOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix whole(op.getSlot().getType());
  SharedMatrix box(op.getMap().getType().getBox());
  FailureOr<Registers> rows = registersOf(op.getRows());
  if (failed(expectSwizzled(op, box)) || failed(rows))
    return failure();
  Value full = barrier(slot.ring, slot.stage, 0);
  int64_t boxes = whole.rows / box.rows;
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
  if (isLooped(op, boxes)) {
    BoxLoop loop{maps_[op.getMap()],
                 slot.address,
                 full,
                 role_.elected,
                 indices,
                 boxes,
                 box.panelBytes(),
                 {}};
    for (int64_t panel = 0; panel < box.panels(); ++panel)
      loop.panels.push_back(
          {panel * whole.panelBytes(), panel * box.panelColumns()});
    copyInLoop(p_, loop, rows->front());
    return success();
  }
  SmallVector<Value> firstRows;
  for (int64_t i = 0; i < boxes; ++i)
    firstRows.push_back(p_.fromLane(rows->front(), p_.constant(i)));
  indices.push_back(Value());
  for (int64_t i = 0; i < boxes; ++i) {
    indices.back() = firstRows[i];
    copyBox(maps_[op.getMap()], box, indices,
            p_.add(slot.address, i * box.panelBytes()), whole.panelBytes(),
            full);
  }
  return success();
}

/// What lies next to each other in an image does so in the slot.
LogicalResult NvvmEmitter::emit(tile::GatherPanelsOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix whole(op.getSlot().getType());
  SharedMatrix box(op.getMap().getType().getBox());
  FailureOr<Registers> columns = registersOf(op.getColumns());
  if (failed(columns))
    return failure();
  Value full = barrier(slot.ring, slot.stage, 0);
  Value cores = p_.mul(
      p_.divide(columns->front(), SharedMatrix::kCoreBytes / 8), box.rows / 8);
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
  int64_t boxes = whole.columns / box.columns;
  if (isLooped(op, boxes)) {
    copyInLoop(p_,
               {maps_[op.getMap()],
                slot.address,
                full,
                role_.elected,
                indices,
                boxes,
                box.bytes(),
                {{0, 0}}},
               cores);
    return success();
  }
  indices.push_back(Value());
  std::string text = "cp.async.bulk.tensor." +
                     std::to_string(indices.size() + 1) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[$0], [$1, " +
                     coordinateList(3, indices.size() + 1) + "], [$2];";
  std::string constraints = "r,l,r";
  for (size_t i = 0; i <= indices.size(); ++i)
    constraints += ",r";
  SmallVector<Value> firsts;
  for (int64_t i = 0; i < boxes; ++i)
    firsts.push_back(p_.fromLane(cores, p_.constant(i)));
  for (auto [i, first] : llvm::enumerate(firsts)) {
    indices.back() = first;
    SmallVector<Value> operands{
        p_.add(slot.address, static_cast<int64_t>(i) * box.bytes()),
        maps_[op.getMap()], full};
    llvm::append_range(operands, coordinates(p_, 0, indices));
    p_.ptxWhere(role_.elected, text, constraints, operands);
  }
  return success();
}

/// Starts the copy of one panel from shared memory; coordinates innermost
/// first.
static void storePanel(PtxBuilder &p, Value where, Value panel, Value map,
                       ArrayRef<Value> coordinates) {
  std::string text = "cp.async.bulk.tensor." +
                     std::to_string(coordinates.size()) +
                     "d.global.shared::cta.bulk_group [$1, " +
                     coordinateList(2, coordinates.size()) + "], [$0];";
  std::string constraints = "r,l";
  for (size_t i = 0; i < coordinates.size(); ++i)
    constraints += ",r";
  SmallVector<Value> operands{panel, map};
  llvm::append_range(operands, coordinates);
  p.ptxWhere(where, text, constraints, operands);
}

LogicalResult NvvmEmitter::emit(tile::StoreAsyncOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix box(op.getSlot().getType());
  if (failed(expectSwizzled(op, box)))
    return failure();
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
  for (int64_t panel = 0; panel < box.panels(); ++panel)
    storePanel(p_, role_.elected,
               p_.add(slot.address, panel * box.panelBytes()),
               maps_[op.getMap()],
               coordinates(p_, panel * box.panelColumns(), indices));
  p_.ptxWhere(role_.elected, "cp.async.bulk.commit_group;", "", {});
  return success();
}

/// The lane that issues the stores waits for them; its pass of the slot
/// follows.
LogicalResult NvvmEmitter::emit(tile::StoreWaitOp) {
  p_.ptxWhere(role_.elected, "cp.async.bulk.wait_group.read 0;", "", {});
  return success();
}

static constexpr int64_t kSlabRows = 16;
static constexpr int64_t kPanelBytes = 256; // of a slab: 16 rows of 16 bytes

/// The lane that starts a warp's copies waits for them, the others for it.
static void waitForSlabs(PtxBuilder &p, Value elected) {
  p.ptxWhere(elected, "cp.async.bulk.wait_group.read 0;", "", {});
  p.syncWarp();
}

LogicalResult NvvmEmitter::emit(tile::StoreStackedWaitOp) {
  waitForSlabs(p_, role_.elected);
  return success();
}

/// stmatrix of four 8 x 8 matrices: both row halves of two groups of eight
/// columns, which are 512 bytes of a slab, 16 of each lane's row after the
/// other.
LogicalResult NvvmEmitter::emit(tile::StoreStackedOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  if (!isPacked(type) || heldBy(type) != Held::Matrix)
    return op.emitOpError() << "expects 16-bit floats, got " << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  const View &view = views_[op.getView()];
  const int64_t own = type.getDimSize(1);
  const int64_t columns = *tile::getFixed(op.getColumns());
  const int64_t rows = *tile::getFixed(op.getRows());
  const int64_t bytes = kSlabRows * own * 2;
  // The thread's number is read anew: else addresses are kept, in registers
  // that a loop of dots around has not.
  Value number = p_.ptx("mov.u32 $0, %tid.x;", "=r", {}, p_.i32()).front();
  Value slab = p_.add(p_.mul(role_.warpgroup, 4),
                      p_.remainder(p_.divide(number, 32), 4));
  Value place = p_.add(slots_[op.getSlot()].address, p_.mul(slab, bytes));
  Value laneRow = p_.add(place, p_.mul(p_.remainder(number, 32), 16));
  waitForSlabs(p_, role_.elected);
  for (int64_t group = 0; group < own / 8; group += 2) {
    SmallVector<Value> operands{p_.add(laneRow, group * kPanelBytes)};
    llvm::append_range(operands, ArrayRef(*value).slice(2 * group, 4));
    p_.ptx("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
           "r,r,r,r,r,~{memory}", operands);
  }
  p_.ptx("fence.proxy.async.shared::cta;", "~{memory}", {});
  p_.syncWarp();
  Value starts = arith::AndIOp::create(b_, p_.location(), role_.elected,
                                       scalar(op.getWhere()));
  if (rows < type.getDimSize(0))
    starts =
        arith::AndIOp::create(b_, p_.location(), starts,
                              p_.less(slab, p_.constant(rows / kSlabRows)));
  Value piece = p_.add(p_.mul(p_.signExtend(scalar(op.getFirst())),
                              p_.constant64(kSlabRows * own)),
                       p_.signExtend(p_.mul(slab, kSlabRows * columns)));
  p_.ptxWhere(starts,
              "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;",
              "l,r,n",
              {p_.globalPointer(view.pointer, view.elementType, piece), place,
               p_.constant(bytes)});
  p_.ptxWhere(role_.elected, "cp.async.bulk.commit_group;", "", {});
  return success();
}

/// A slab begins where the swizzle does.
LogicalResult NvvmEmitter::emit(tile::StoreSlabsOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  SharedMatrix matrix(op.getSlot().getType());
  if (failed(expectSwizzled(op, matrix)))
    return failure();
  if (!isPacked(type) || heldBy(type) != Held::Matrix)
    return op.emitOpError() << "expects 16-bit floats, got " << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  const int64_t rows = *tile::getFixed(op.getRows());
  // Read anew, as above.
  Value number = p_.ptx("mov.u32 $0, %tid.x;", "=r", {}, p_.i32()).front();
  Value slab = p_.add(p_.mul(role_.warpgroup, 4),
                      p_.remainder(p_.divide(number, 32), 4));
  waitForSlabs(p_, role_.elected);
  Value address = slots_[op.getSlot()].address;
  Value firstRow = p_.mul(slab, kSlabRows);
  sparge::storeMatrix(p_, matrix, *value, address, firstRow,
                      p_.remainder(number, 32));
  p_.ptx("fence.proxy.async.shared::cta;", "~{memory}", {});
  p_.syncWarp();
  Value starts = role_.elected;
  if (rows < type.getDimSize(0))
    starts =
        arith::AndIOp::create(b_, p_.location(), starts,
                              p_.less(slab, p_.constant(rows / kSlabRows)));
  // Innermost first: the column, the row, and whose matrix it is.
  SmallVector<Value> place;
  for (Value index : llvm::reverse(op.getIndices()))
    place.push_back(scalar(index));
  const Value firstColumn = place[0];
  place[1] = p_.add(place[1], firstRow);
  Value first = p_.add(address, p_.mul(firstRow, matrix.swizzle));
  for (int64_t panel = 0; panel < matrix.panels(); ++panel) {
    place[0] = p_.add(firstColumn, panel * matrix.panelColumns());
    storePanel(p_, starts, p_.add(first, panel * matrix.panelBytes()),
               maps_[op.getMap()], place);
  }
  p_.ptxWhere(role_.elected, "cp.async.bulk.commit_group;", "", {});
  return success();
}

LogicalResult NvvmEmitter::emit(tile::GatherRunsOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix whole(op.getSlot().getType());
  int64_t runs = cast<RankedTensorType>(op.getFirsts().getType()).getDimSize(0);
  int64_t bytes = whole.bytes() / runs;
  if (whole.bytes() % runs != 0 || bytes % 16 != 0)
    return op.emitOpError() << "expects runs of a multiple of 16 bytes, got "
                            << runs << " in " << whole.bytes() << " bytes";
  FailureOr<Registers> firsts = registersOf(op.getFirsts());
  if (failed(firsts))
    return failure();
  const View &view = views_[op.getView()];
  Value full = barrier(slot.ring, slot.stage, 0);
  // What createpolicy.fractional.L2::evict_first makes for all of the accesses.
  Value policy = p_.constant64(0x12F0000000000000);
  for (int64_t i = 0; i < runs; ++i) {
    Value first = p_.fromLane(firsts->front(), p_.constant(i));
    p_.ptxWhere(
        role_.elected,
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
        "bytes.L2::cache_hint [$0], [$1], $3, [$2], $4;",
        "r,l,r,n,l",
        {p_.add(slot.address, i * bytes),
         p_.globalPointer(view.pointer, view.elementType, p_.signExtend(first)),
         full, p_.constant(bytes), policy});
  }
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Copies by the TMA. One lane issues them; a box is copied panel by panel,
// since a swizzled box is at most one panel wide.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

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
  SmallVector<Value> firstRows;
  for (int64_t i = 0; i < boxes; ++i)
    firstRows.push_back(p_.fromLane(rows->front(), p_.constant(i)));
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
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
  for (int64_t i = 0; i < whole.columns / box.columns; ++i)
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

LogicalResult NvvmEmitter::emit(tile::StoreAsyncOp op) {
  const Slot &slot = slots_[op.getSlot()];
  SharedMatrix box(op.getSlot().getType());
  if (failed(expectSwizzled(op, box)))
    return failure();
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalar(index));
  size_t rank = indices.size() + 1;
  std::string text = "cp.async.bulk.tensor." + std::to_string(rank) +
                     "d.global.shared::cta.bulk_group [$1, " +
                     coordinateList(2, rank) + "], [$0];";
  std::string constraints = "r,l";
  for (size_t i = 0; i < rank; ++i)
    constraints += ",r";
  for (int64_t panel = 0; panel < box.panels(); ++panel) {
    SmallVector<Value> operands{p_.add(slot.address, panel * box.panelBytes()),
                                maps_[op.getMap()]};
    llvm::append_range(operands,
                       coordinates(p_, panel * box.panelColumns(), indices));
    p_.ptxWhere(role_.elected, text, constraints, operands);
  }
  p_.ptxWhere(role_.elected, "cp.async.bulk.commit_group;", "", {});
  return success();
}

/// The lane that issues the stores waits for them; its pass of the slot
/// follows.
LogicalResult NvvmEmitter::emit(tile::StoreWaitOp) {
  p_.ptxWhere(role_.elected, "cp.async.bulk.wait_group.read 0;", "", {});
  return success();
}

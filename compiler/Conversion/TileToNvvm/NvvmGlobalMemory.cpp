// SPDX-License-Identifier: Apache-2.0
//
// The grid, and ordinary accesses to global memory: scalars, lists, one value a
// row.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::sparge;

const NvvmEmitter::Global &NvvmEmitter::grid() {
  return globals_[kernel_.getBody().getArgument(kernel_.getGridArgument())];
}

/// Tiles of the grid's rows.
Value NvvmEmitter::programTiles() {
  int64_t rows = kernel_->getAttrOfType<IntegerAttr>("grid_tile").getInt();
  return p_.divide(p_.add(grid().sizes[2], rows - 1), rows);
}

LogicalResult NvvmEmitter::emit(tile::ProgramsOp op) {
  Location loc = p_.location();
  isPersistent_ = true;
  Value first = NVVM::BlockIdXOp::create(b_, loc, p_.i32());
  Value step = NVVM::GridDimXOp::create(b_, loc, p_.i32());
  Value rows = p_.mul(grid().sizes[0], grid().sizes[1]);
  scalars_.map(op.getFirst(), first);
  scalars_.map(op.getStep(), step);
  scalars_.map(op.getEnd(), p_.mul(rows, programTiles()));
  return success();
}

/// Each CTA starts with a program of its own and is refused once, so that there
/// are as many requests as programs; after the last, atom.inc wraps to 0.
LogicalResult NvvmEmitter::emit(tile::NextProgramOp op) {
  Location loc = p_.location();
  const Global &counter = globals_[op.getCounter()];
  Value isElected = role_.elected;
  // Read anew: else it is kept, in a register that a role of one warp may lack.
  Value step = p_.ptx("mov.u32 $0, %nctaid.x;", "=r", {}, p_.i32()).front();
  Value programs =
      p_.mul(p_.mul(grid().sizes[0], grid().sizes[1]), programTiles());
  auto branch = scf::IfOp::create(b_, loc, p_.i32(), isPresent(counter),
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  Value given =
      p_.ptx("{ mov.u32 $0, 0; @$3 atom.relaxed.gpu.global.inc.u32 $0, [$1], "
             "$2; }",
             "=&r,l,r,b,~{memory}",
             {counter.pointer, p_.add(programs, -1), isElected}, p_.i32())
          .front();
  // The other lanes hold 0.
  scf::YieldOp::create(b_, loc, p_.add(p_.uniform(given), step));
  b_.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b_, loc, p_.add(scalar(op.getProgram()), step));
  scalars_.map(op.getResult(), branch.getResult(0));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::ProgramPlaceOp op) {
  Value program = scalar(op.getProgram()), tiles = programTiles();
  Value heads = grid().sizes[1];
  Value row = p_.divide(program, tiles);
  Value batch = p_.divide(row, heads);
  scalars_.map(op.getTile(), p_.sub(program, p_.mul(row, tiles)));
  scalars_.map(op.getBatch(), batch);
  scalars_.map(op.getHead(), p_.sub(row, p_.mul(batch, heads)));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::DimOp op) {
  scalars_.map(op.getResult(),
               globals_[op.getSource()].sizes[op.getDimension()]);
  return success();
}

Value NvvmEmitter::isPresent(const Global &global) {
  Value null =
      LLVM::ZeroOp::create(b_, p_.location(), global.pointer.getType());
  return LLVM::ICmpOp::create(b_, p_.location(), LLVM::ICmpPredicate::ne,
                              global.pointer, null);
}

LogicalResult NvvmEmitter::emit(tile::IsPresentOp op) {
  scalars_.map(op.getResult(), isPresent(globals_[op.getSource()]));
  return success();
}

/// Offsets are 64 bits: an index of 32 times a stride of 64.
LogicalResult NvvmEmitter::emit(tile::SliceOp op) {
  const Global &global = globals_[op.getSource()];
  Value offset = p_.constant64(0);
  for (auto [i, index] : llvm::enumerate(op.getIndices()))
    offset =
        p_.add(offset, p_.mul(p_.signExtend(scalar(index)), global.strides[i]));
  View view;
  view.elementType = op.getResult().getType().getElementType();
  view.pointer = p_.globalPointer(global.pointer, view.elementType, offset);
  view.rows = global.sizes[op.getIndices().size()];
  if (op.getResult().getType().getRank() == 2) {
    view.rowStride = global.strides[op.getIndices().size()];
    view.columns = global.sizes[op.getIndices().size() + 1];
  }
  views_[op.getResult()] = view;
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadScalarOp op) {
  const View &view = views_[op.getView()];
  Value pointer = p_.globalPointer(view.pointer, view.elementType,
                                   p_.signExtend(scalar(op.getIndex())));
  scalars_.map(op.getResult(), p_.loadGlobal(view.elementType, pointer));
  return success();
}

/// The largest number's highest bit is the first to be tried: a bit belongs to
/// the number looked for if more than n numbers are not below it with that bit.
/// Then those above it are counted, which leaves the rank among its equals.
/// What the first pass reads, four numbers a lane at a time, the others find in
/// L1.
LogicalResult NvvmEmitter::emit(tile::NthLargestOp op) {
  const char *ptx =
      "{ .reg .pred is, more, there<4>; .reg .b32 most, value, bit, least, at, "
      "i, x<4>, votes, above, left; .reg .b64 a; "
      "mov.b32 most, 0; mov.b32 at, 0; "
      // Its largest number.
      "largest: add.u32 i, at, $4; mad.wide.u32 a, i, 4, $1; "
      "setp.lt.u32 there0, i, $3; add.u32 i, i, 32; "
      "setp.lt.u32 there1, i, $3; add.u32 i, i, 32; "
      "setp.lt.u32 there2, i, $3; add.u32 i, i, 32; "
      "setp.lt.u32 there3, i, $3; "
      "mov.b32 x0, 0; mov.b32 x1, 0; mov.b32 x2, 0; mov.b32 x3, 0; "
      "@there0 ld.global.b32 x0, [a]; @there1 ld.global.b32 x1, [a+128]; "
      "@there2 ld.global.b32 x2, [a+256]; @there3 ld.global.b32 x3, [a+384]; "
      "max.s32 x0, x0, x1; max.s32 x2, x2, x3; max.s32 x0, x0, x2; "
      "max.s32 most, most, x0; add.u32 at, at, 128; "
      "setp.lt.u32 more, at, $3; @more bra.uni largest; "
      "redux.sync.max.s32 most, most, -1; min.s32 most, most, 1073741823; "
      "bfind.u32 i, most; mov.b32 bit, 1; shl.b32 bit, bit, i; "
      "mov.b32 value, 0; "
      // How many are at least `least`.
      "next: setp.eq.u32 is, bit, 0; selp.b32 least, 1, bit, is; "
      "add.u32 least, least, value; mov.b32 above, 0; mov.b32 at, 0; "
      "count: add.u32 i, at, $4; setp.lt.u32 there0, i, $3; "
      "mad.wide.u32 a, i, 4, $1; mov.b32 x0, 0; "
      "@there0 ld.global.b32 x0, [a]; setp.ge.s32 there1, x0, least; "
      "vote.sync.ballot.b32 votes, there1, -1; popc.b32 votes, votes; "
      "add.u32 above, above, votes; add.u32 at, at, 32; "
      "setp.lt.u32 more, at, $3; @more bra.uni count; "
      "@is bra.uni counted; "
      "setp.gt.u32 is, above, $2; @is mov.b32 value, least; "
      "shr.u32 bit, bit, 1; bra.uni next; "
      // The one that has so many equals before it.
      "counted: sub.u32 left, $2, above; mov.b32 at, 0; "
      "look: add.u32 i, at, $4; setp.lt.u32 there0, i, $3; "
      "mad.wide.u32 a, i, 4, $1; mov.b32 x0, 0; "
      "@there0 ld.global.b32 x0, [a]; max.s32 x0, x0, 0; "
      "min.s32 x0, x0, 1073741823; setp.eq.and.u32 is, x0, value, there0; "
      "vote.sync.ballot.b32 votes, is, -1; popc.b32 above, votes; "
      "setp.gt.u32 more, above, left; @more bra.uni found; "
      "sub.u32 left, left, above; add.u32 at, at, 32; "
      "setp.lt.u32 more, at, $3; @more bra.uni look; "
      "found: mov.u32 i, %lanemask_lt; and.b32 i, i, votes; popc.b32 i, i; "
      "setp.eq.and.u32 is, i, left, is; vote.sync.ballot.b32 votes, is, -1; "
      "bfind.u32 i, votes; add.u32 $0, at, i; }";
  const View &view = views_[op.getView()];
  Value place =
      p_.ptx(ptx, "=&r,l,r,r,r,~{memory}",
             {view.pointer, scalar(op.getN()), scalar(op.getLength()), lane_},
             p_.i32())
          .front();
  scalars_.map(op.getResult(), p_.uniform(place));
  return success();
}

/// Lane i finds box number first + i.
LogicalResult NvvmEmitter::emit(tile::ListBoxesOp op) {
  if (!role_.isOneWarp())
    return op.emitOpError() << "expects a one-warp role, got warpgroups";
  constexpr int64_t kNowhere = int64_t(1) << 30;
  int64_t boxes = cast<RankedTensorType>(op.getType()).getDimSize(0);
  const View &list = views_[op.getList()];
  Value block = scalar(op.getBlock()), box = scalar(op.getBox());
  Value perBlock = p_.divide(block, box);
  Value number = p_.add(scalar(op.getFirst()), lane_);
  Value entry = p_.divide(number, perBlock);
  Value inBlock = p_.sub(number, p_.mul(entry, perBlock));
  Value isListed = arith::AndIOp::create(b_, p_.location(),
                                         p_.less(entry, scalar(op.getCount())),
                                         p_.less(lane_, p_.constant(boxes)));
  auto load = scf::IfOp::create(b_, p_.location(), p_.i32(), isListed,
                                /*withElse=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(load.thenBlock());
    Value pointer =
        p_.globalPointer(list.pointer, list.elementType, p_.signExtend(entry));
    scf::YieldOp::create(b_, p_.location(), p_.loadGlobal(p_.i32(), pointer));
    b_.setInsertionPointToStart(load.elseBlock());
    scf::YieldOp::create(b_, p_.location(), p_.constant(-1));
  }
  // Unsigned, so that negative entries are too large; the product of an entry
  // that is not cannot overflow.
  Value limit = scalar(op.getLimit());
  Value blocks = p_.divide(p_.add(limit, p_.add(block, -1)), block);
  Value row = p_.add(p_.mul(load.getResult(0), block), p_.mul(inBlock, box));
  Value isThere = arith::AndIOp::create(
      b_, p_.location(), p_.lessUnsigned(load.getResult(0), blocks),
      p_.less(row, limit));
  hold(op.getResult(), {p_.select(isThere, row, p_.constant(kNowhere))});
  return success();
}

/// Elements beyond the end are read at the last one instead, and replaced.
LogicalResult NvvmEmitter::emit(tile::LoadValuesOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  const View &view = views_[op.getView()];
  if (role_.isTeam && type.getElementType().isF32())
    return loadFloats(op);
  if (view.elementType.getIntOrFloatBitWidth() != 32)
    return op.emitOpError()
           << "expects 32-bit elements in a role, got " << view.elementType;
  Held held = heldBy(type);
  Value last = p_.add(view.rows, -1);
  Registers registers;
  for (Value element : numbers(type, held)) {
    Value index = p_.add(scalar(op.getFirst()), element);
    Value inside = p_.lessUnsigned(index, view.rows);
    Value pointer =
        p_.globalPointer(view.pointer, view.elementType,
                         p_.signExtend(p_.select(inside, index, last)));
    registers.push_back(p_.select(inside,
                                  p_.loadGlobal(view.elementType, pointer),
                                  scalar(op.getOtherwise())));
  }
  hold(op.getResult(), std::move(registers));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadColumnsOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (type.getDimSize(0) % 8 != 0)
    return op.emitOpError() << "expects a multiple of 8 elements, got " << type;
  const View &view = views_[op.getView()];
  // One address, and distances that are known.
  Value own = p_.add(scalar(op.getFirst()), p_.mul(p_.remainder(lane_, 4), 2));
  Value base =
      p_.globalPointer(view.pointer, view.elementType, p_.signExtend(own));
  Registers registers;
  for (int64_t i = 0; i < registerCount(type, Held::Columns); ++i) {
    Value pointer = p_.globalPointer(base, view.elementType,
                                     p_.constant64(i / 2 * 8 + i % 2));
    registers.push_back(p_.loadGlobal(view.elementType, pointer));
  }
  tiles_[op.getResult()] = {Held::Columns, std::move(registers)};
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadRowsOp op) {
  const View &view = views_[op.getView()];
  const bool isFloat = view.elementType.isF32();
  Registers registers;
  for (int64_t half = 0; half < 2; ++half) {
    Value row = p_.add(scalar(op.getFirst()), rowInTile(half));
    registers.push_back(
        p_.ptx("{ mov.b32 $0, 0; @$2 ld.global.b32 $0, [$1]; }",
               isFloat ? "=&f,l,b,~{memory}" : "=&r,l,b,~{memory}",
               {p_.globalPointer(view.pointer, view.elementType,
                                 p_.signExtend(row)),
                p_.less(row, view.rows)},
               view.elementType)
            .front());
  }
  tiles_[op.getResult()] = {Held::Rows, std::move(registers)};
  return success();
}

/// Of four groups of eight columns, of which each lane of four holds two
/// columns, every lane gets one group whole: word i goes to the i-th of the
/// four lanes.
static void exchangeGroups(PtxBuilder &p, Value inFour,
                           MutableArrayRef<Value> words) {
  for (size_t bit : {1U, 2U}) {
    const auto distance = static_cast<int64_t>(bit);
    Value isUpper = p.equals(p.remainder(p.divide(inFour, distance), 2), 1);
    for (size_t i = 0; i < 4; ++i) {
      if ((i & bit) != 0)
        continue;
      Value &low = words[i], &high = words[i + bit];
      Value other = p.fromLaneXor(p.select(isUpper, low, high), distance);
      low = p.select(isUpper, other, low);
      high = p.select(isUpper, high, other);
    }
  }
}

/// A thread's two neighbouring elements at a time; a row's start and stride are
/// multiples of two elements, as the host checks.
LogicalResult NvvmEmitter::storeTile(tile::StoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  const View &view = views_[op.getView()];
  if (role_.isOneWarp() || !isPacked(type) ||
      type.getElementType() != view.elementType || op.getOffsets().size() != 2)
    return op.emitOpError() << "expects 16-bit floats of the view's type in a "
                               "role of warpgroups, got "
                            << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  const int64_t groups = type.getDimSize(1) / 8;
  auto store = [&](bool exchanges) {
    Value inFour = p_.remainder(lane_, 4);
    Value first =
        p_.add(scalar(op.getOffsets()[1]), p_.mul(inFour, exchanges ? 8 : 2));
    for (int64_t half = 0; half < 2; ++half) {
      Value row = p_.add(scalar(op.getOffsets()[0]), rowInTile(half));
      Value isRow = p_.less(row, view.rows);
      if (op.getBelow())
        isRow = arith::AndIOp::create(b_, p_.location(), isRow,
                                      p_.less(row, scalar(op.getBelow())));
      Value offset = p_.add(p_.mul(p_.signExtend(row), view.rowStride),
                            p_.signExtend(first));
      Value pointer = p_.globalPointer(view.pointer, view.elementType, offset);
      auto word = [&](int64_t group) {
        return group < groups ? (*value)[2 * group + half] : p_.constant(0);
      };
      for (int64_t group = 0; group < groups; group += exchanges ? 4 : 1) {
        Value place = p_.globalPointer(pointer, view.elementType,
                                       p_.constant64(8 * group));
        Value stores = arith::AndIOp::create(
            b_, p_.location(), isRow,
            p_.less(p_.add(first, 8 * group), view.columns));
        if (!exchanges) {
          p_.storeGlobalWhere(stores, word(group), place);
          continue;
        }
        Registers words{word(group), word(group + 1), word(group + 2),
                        word(group + 3)};
        exchangeGroups(p_, inFour, words);
        if (groups - group < 4)
          stores = arith::AndIOp::create(
              b_, p_.location(), stores,
              p_.less(inFour, p_.constant(groups - group)));
        p_.ptxWhere(stores, "st.global.v4.b32 [$0], {$1, $2, $3, $4};",
                    "l,r,r,r,r",
                    {place, words[0], words[1], words[2], words[3]});
      }
    }
  };
  if (!op->hasAttr("tile.exchanged")) {
    store(/*exchanges=*/false);
    return success();
  }
  // Where a thread's elements go is formed anew: kept, it would take registers
  // beside the loops before.
  Value thread = p_.ptx("mov.u32 $0, %tid.x;", "=r", {}, p_.i32()).front();
  const llvm::SaveAndRestore lane(lane_, p_.remainder(thread, 32));
  const llvm::SaveAndRestore warp(warp_,
                                  p_.divide(p_.remainder(thread, 128), 32));
  auto branch = scf::IfOp::create(b_, p_.location(), isAligned(view),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  store(/*exchanges=*/true);
  b_.setInsertionPointToStart(branch.elseBlock());
  store(/*exchanges=*/false);
  return success();
}

/// One value a row: of the four lanes that hold it, the first stores it.
LogicalResult NvvmEmitter::emit(tile::StoreOp op) {
  if (role_.isTeam)
    return op.getOffsets().size() == 1 ? storeFloats(op) : storeRow(op);
  auto type = cast<RankedTensorType>(op.getValue().getType());
  if (type.getRank() == 2)
    return storeTile(op);
  const View &view = views_[op.getView()];
  if (op.getOffsets().size() != 1 || role_.isOneWarp() ||
      type.getElementType() != view.elementType ||
      type.getElementTypeBitWidth() != 32)
    return op.emitOpError()
           << "expects one 32-bit value a row, of the view's type, got "
           << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  Value isFirst = p_.equals(p_.remainder(lane_, 4), 0);
  for (int64_t half = 0; half < 2; ++half) {
    Value row = p_.add(scalar(op.getOffsets().front()), rowInTile(half));
    Value stores = arith::AndIOp::create(b_, p_.location(), isFirst,
                                         p_.less(row, view.rows));
    p_.storeGlobalWhere(
        stores, (*value)[half],
        p_.globalPointer(view.pointer, view.elementType, p_.signExtend(row)));
  }
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Rows of 16-bit floats to f8E4M3FN: streams, as in Teams/NvvmRowSums.cpp,
// whose lanes hold eight columns of a row at a time, and sixteen rows to the
// core matrices of an image, where a lane holds a few neighbouring columns of
// all.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kPiece = 8;
/// Loads of a lane that are under way at once. A piece that is not aligned is
/// eight loads.
static constexpr int64_t kLoads = 8, kUnalignedLoads = 2;
static constexpr int64_t kCoreRows = 8, kCoreColumns = 16;

using Words = SmallVector<Value>;

/// Code for both values of a condition that is known when the kernel runs, and
/// what either gives.
static SmallVector<Value>
inBothBranches(OpBuilder &b, Location loc, Value condition, TypeRange types,
               function_ref<SmallVector<Value>(bool)> emitBranch) {
  auto branch = scf::IfOp::create(b, loc, types, condition,
                                  /*withElseRegion=*/true);
  for (bool holds : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(holds ? branch.thenBlock() : branch.elseBlock());
    SmallVector<Value> results = emitBranch(holds);
    if (!types.empty())
      scf::YieldOp::create(b, loc, results);
  }
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// Four f32 as the bytes of a word, lowest first.
static Value toFour(PtxBuilder &p, ArrayRef<Value> elements) {
  return p
      .purePtx("{ .reg .b16 low, high; "
               "cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; "
               "cvt.rn.satfinite.e4m3x2.f32 high, $4, $3; "
               "mov.b32 $0, {low, high}; }",
               "=r,f,f,f,f", elements, p.i32())
      .front();
}

/// Gathers in `seen`, in the highest bit of each byte, which of a word's codes
/// are 448, -448 or NaN: those from 0x7e on, but for the sign.
static Value noteLimits(OpBuilder &b, PtxBuilder &p, Value seen, Value word) {
  Value sizes = p.bitAnd(word, p.constant(0x7f7f7f7f));
  return arith::OrIOp::create(b, p.location(), seen, p.add(sizes, 0x02020202));
}

/// Whether any lane has noted any.
Value NvvmEmitter::anyLimit(Value seen) {
  Value highest = p_.bitAnd(seen, p_.constant(int32_t(0x80808080)));
  return vote(arith::CmpIOp::create(b_, p_.location(), arith::CmpIPredicate::ne,
                                    highest, p_.constant(0)));
}

/// Rows of `into` start at multiples of 8 bytes, as the host checks: its
/// strides are a tensor map's. Gives the sums of this lane's columns, added up
/// as tile.sum_rows does, and what noteLimits() gathers, where either
/// is asked for.
SmallVector<Value> NvvmEmitter::scaleLanes(tile::ScaleRowsOp op,
                                           bool isAligned) {
  Location loc = p_.location();
  const View view = views_[op.getView()], into = views_[op.getInto()];
  int64_t pieces = *tile::getFixed(op.getColumns()) / kPiece;
  const int64_t rows = 32 / pieces;
  const int64_t loads = isAligned ? kLoads : kUnalignedLoads;
  Value first = scalar(op.getFirst()), end = scalar(op.getEnd());
  Value factor = scalar(op.getFactor());
  Value ownRow = p_.divide(lane_, pieces);
  Value column = p_.mul(p_.remainder(lane_, pieces), kPiece);
  Value last = p_.add(end, -1);
  SmallVector<Value> none;
  if (op.getSum())
    none.assign(kPiece, p_.constantLike(p_.f32(), b_.getF32FloatAttr(0)));
  if (op.getSaturates())
    none.push_back(p_.constant(0));
  auto loop =
      scf::ForOp::create(b_, loc, first, end, p_.constant(rows * loads), none);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  SmallVector<SmallVector<Value>> loaded;
  SmallVector<Value> rowNumbers, areThere;
  for (int64_t i = 0; i < loads; ++i) {
    Value row = p_.add(p_.add(loop.getInductionVar(), ownRow), i * rows);
    Value isThere = p_.less(row, end);
    if (rows * pieces < 32)
      isThere = arith::AndIOp::create(b_, loc, isThere,
                                      p_.less(ownRow, p_.constant(rows)));
    rowNumbers.push_back(row);
    areThere.push_back(isThere);
    loaded.push_back(loadEight(view, arith::MinSIOp::create(b_, loc, row, last),
                               column, isThere, isAligned));
  }
  auto state = llvm::to_vector_of<Value>(loop.getRegionIterArgs());
  MutableArrayRef<Value> sums(state);
  sums = sums.take_front(op.getSum() ? kPiece : 0);
  for (int64_t i = 0; i < loads; ++i) {
    auto at = static_cast<size_t>(i);
    for (auto [c, sum] : llvm::enumerate(sums))
      sum = sumOf(sum, loaded[at][c]);
    for (Value &element : loaded[at])
      element = arith::MulFOp::create(b_, loc, element, factor);
    ArrayRef<Value> elements = loaded[at];
    Value offset = p_.add(p_.mul(p_.signExtend(rowNumbers[at]), into.rowStride),
                          p_.signExtend(column));
    Value low = toFour(p_, elements.take_front(4)),
          high = toFour(p_, elements.drop_front(4));
    p_.ptxWhere(
        areThere[at], "st.global.v2.b32 [$0], {$1, $2};", "l,r,r",
        {p_.globalPointer(into.pointer, b_.getI8Type(), offset), low, high});
    // Rows that are not there are zeros.
    if (op.getSaturates())
      for (Value word : {low, high})
        state.back() = noteLimits(b_, p_, state.back(), word);
  }
  if (!state.empty())
    scf::YieldOp::create(b_, loc, state);
  return llvm::to_vector_of<Value>(loop.getResults());
}

LogicalResult NvvmEmitter::emit(tile::ScaleRowsOp op) {
  SmallVector<Type> types;
  if (op.getSum())
    types.assign(kPiece, p_.f32());
  if (op.getSaturates())
    types.push_back(p_.i32());
  SmallVector<Value> parts =
      inBothBranches(b_, p_.location(), isAligned(views_[op.getView()]), types,
                     [&](bool aligned) { return scaleLanes(op, aligned); });
  if (op.getSaturates())
    scalars_.map(op.getSaturates(), anyLimit(parts.pop_back_val()));
  if (op.getSum())
    hold(op.getSum(), gatherRow(parts, *tile::getFixed(op.getColumns()),
                                [&](Value a, Value b) { return sumOf(a, b); }));
  return success();
}

/// `count` (1, 2 or 4) neighbouring elements as f32; 0 where not `isThere`.
SmallVector<Value> NvvmEmitter::loadRun(const View &view, Value row,
                                        Value column, int64_t count,
                                        Value isThere, bool isAligned) {
  Location loc = p_.location();
  Value offset =
      p_.add(p_.mul(p_.signExtend(row), view.rowStride), p_.signExtend(column));
  Value pointer = p_.globalPointer(view.pointer, view.elementType, offset);
  auto run = VectorType::get({count}, view.elementType);
  Value loaded = LLVM::LoadOp::create(
      b_, loc, run, pointer, static_cast<unsigned>(isAligned ? 2 * count : 2));
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  SmallVector<Value> elements;
  for (int64_t i = 0; i < count; ++i) {
    Value element =
        LLVM::ExtractElementOp::create(b_, loc, loaded, p_.constant(i));
    Value wide = LLVM::FPExtOp::create(b_, loc, p_.f32(), element);
    elements.push_back(p_.select(isThere, wide, zero));
  }
  return elements;
}

/// A lane's two or four columns, four words each, against its neighbour's, so
/// that one of the two then has the even ones of both, in order, the other the
/// odd ones: their stores fill whole sectors.
static SmallVector<Words> exchangeColumns(PtxBuilder &p, Value lane,
                                          ArrayRef<Words> own) {
  Value isOdd = p.equals(p.remainder(lane, 2), 1);
  SmallVector<Words> kept, got;
  for (size_t c = 0; c < own.size(); c += 2) {
    Words keeps, gets;
    for (auto [even, odd] : llvm::zip(own[c], own[c + 1])) {
      keeps.push_back(p.select(isOdd, odd, even));
      gets.push_back(p.fromLaneXor(p.select(isOdd, even, odd), 1));
    }
    kept.push_back(std::move(keeps));
    got.push_back(std::move(gets));
  }
  SmallVector<Words> columns;
  for (auto *half : {&kept, &got})
    for (size_t c = 0; c < half->size(); ++c) {
      Words words;
      auto &other = half == &kept ? got : kept;
      for (auto [even, odd] : llvm::zip((*half)[c], other[c]))
        words.push_back(p.select(isOdd, odd, even));
      columns.push_back(std::move(words));
    }
  return columns;
}

/// A column's sixteen rows: word t has those whose places are 4 t to 4 t + 3.
static Words coreWords(PtxBuilder &p, ArrayRef<Value> byRow) {
  Words words;
  for (size_t t = 0; t < 4; ++t)
    words.push_back(toFour(p, {byRow[2 * t], byRow[2 * t + 1], byRow[2 * t + 8],
                               byRow[2 * t + 9]}));
  return words;
}

/// A lane's columns of all sixteen rows: sixteen bytes each, and the rows of
/// ones. What noteLimits() gathers, or nothing.
SmallVector<Value> NvvmEmitter::scaleColumns(tile::ScaleCoresOp op,
                                             ArrayRef<Value> factors,
                                             bool isAligned) {
  Location loc = p_.location();
  const View view = views_[op.getView()], image = views_[op.getImage()];
  int64_t columns =
      cast<RankedTensorType>(op.getFactors().getType()).getDimSize(0);
  RowPlace place(columns);
  Value first = scalar(op.getFirst()), end = scalar(op.getEnd());
  Value last = p_.add(end, -1);
  SmallVector<Value> rows, areThere;
  for (int64_t i = 0; i < kCoreColumns; ++i) {
    Value row = p_.add(first, i);
    areThere.push_back(p_.less(row, end));
    rows.push_back(arith::MinSIOp::create(b_, loc, row, last));
  }
  auto store = [&](ArrayRef<Value> words, Value column, Value where) {
    Value core =
        p_.add(p_.mul(p_.divide(first, kCoreColumns), columns / kCoreRows + 1),
               p_.divide(column, kCoreRows));
    Value offset = p_.add(
        p_.mul(p_.signExtend(core), image.rowStride),
        p_.signExtend(p_.mul(p_.remainder(column, kCoreRows), kCoreColumns)));
    SmallVector<Value> operands{
        p_.globalPointer(image.pointer, b_.getI8Type(), offset)};
    llvm::append_range(operands, words);
    p_.ptxWhere(where, "st.global.v4.b32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r",
                operands);
  };
  Value seen = p_.constant(0);
  for (int64_t group = 0; group < place.groups; ++group) {
    int64_t firstRegister = group * place.perLane;
    Value column = rowIndex(place, firstRegister);
    Value isInside = p_.less(column, p_.constant(columns));
    Value inside = p_.select(isInside, column, p_.constant(0));
    SmallVector<SmallVector<Value>> loaded;
    for (size_t i = 0; i < rows.size(); ++i)
      loaded.push_back(loadRun(view, rows[i], inside, place.perLane,
                               areThere[i], isAligned));
    SmallVector<Words> own;
    for (int64_t c = 0; c < place.perLane; ++c) {
      SmallVector<Value> byRow;
      for (ArrayRef<Value> row : loaded)
        byRow.push_back(arith::MulFOp::create(
            b_, loc, row[static_cast<size_t>(c)],
            factors[static_cast<size_t>(firstRegister + c)]));
      own.push_back(coreWords(p_, byRow));
    }
    if (op.getSaturates())
      for (const Words &words : own)
        for (Value word : words)
          seen = noteLimits(b_, p_, seen,
                            place.isWhole()
                                ? word
                                : p_.select(isInside, word, p_.constant(0)));
    if (place.perLane == 1) {
      store(own.front(), inside, isInside);
      continue;
    }
    // Columns are a multiple of eight: both neighbours' are there, or none.
    Value pair = p_.sub(inside, p_.mul(p_.remainder(lane_, 2), place.perLane));
    Value shifted = p_.add(pair, p_.remainder(lane_, 2));
    Value from = p_.select(isInside, shifted, p_.constant(0));
    for (auto [i, words] : llvm::enumerate(exchangeColumns(p_, lane_, own)))
      store(words, p_.add(from, 2 * static_cast<int64_t>(i)), isInside);
  }
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  Value one = p_.constantLike(p_.f32(), b_.getF32FloatAttr(1));
  SmallVector<Value> ones;
  for (Value isThere : areThere)
    ones.push_back(p_.select(isThere, one, zero));
  store(coreWords(p_, ones), p_.add(p_.remainder(lane_, kCoreRows), columns),
        p_.less(lane_, p_.constant(kCoreRows)));
  return op.getSaturates() ? SmallVector<Value>{seen} : SmallVector<Value>();
}

LogicalResult NvvmEmitter::emit(tile::ScaleCoresOp op) {
  FailureOr<Registers> factors = registersOf(op.getFactors());
  if (failed(factors))
    return failure();
  SmallVector<Type> types;
  if (op.getSaturates())
    types.push_back(p_.i32());
  SmallVector<Value> seen = inBothBranches(
      b_, p_.location(), isAligned(views_[op.getView()]), types,
      [&](bool aligned) { return scaleColumns(op, *factors, aligned); });
  if (op.getSaturates())
    scalars_.map(op.getSaturates(), anyLimit(seen.front()));
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Streams: sums of neighbouring rows of 16-bit floats, products of the rows of
// two tensors, and rank-1 tensors from and to vectors of floats. What counts is
// how many loads of several elements are under way. Lane p + L r of a warp
// holds columns 8 p … of every G-th row from row r, with L = columns / 8 (for
// products rounded up to a power of two) and G = 32 / L. A rank-1 tensor's
// elements move as each lane holds them, neighbours in one access where the
// vector starts and ends at a multiple of that access's size.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kPiece = 8;
/// Loads of a lane that are under way at once; passes over two tensors.
static constexpr int64_t kLoads = 8, kPasses = 8;
/// The same of pieces that are not aligned, each of which is eight loads.
static constexpr int64_t kUnalignedLoads = 2;

static int64_t loadsOf(int64_t streamLoads, bool isAligned) {
  return !isAligned ? kUnalignedLoads : streamLoads ? streamLoads : kLoads;
}

/// Eight 16-bit elements in four words as f32; 0 where not `isThere`.
SmallVector<Value> NvvmEmitter::widen(Type element, Value words,
                                      Value isThere) {
  Location loc = p_.location();
  auto pair = VectorType::get({2}, element);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < kPiece / 2; ++i) {
    Value word = LLVM::ExtractElementOp::create(b_, loc, words, p_.constant(i));
    word = p_.select(isThere, word, p_.constant(0));
    if (element.isBF16()) {
      // The upper half of a float32.
      for (Value bits : {p_.mul(word, int64_t(1) << 16),
                         p_.bitAnd(word, p_.constant(-65536))})
        elements.push_back(arith::BitcastOp::create(b_, loc, p_.f32(), bits));
      continue;
    }
    Value halves = LLVM::BitcastOp::create(b_, loc, pair, word);
    for (int64_t half : {0, 1}) {
      Value part =
          LLVM::ExtractElementOp::create(b_, loc, halves, p_.constant(half));
      elements.push_back(LLVM::FPExtOp::create(b_, loc, p_.f32(), part));
    }
  }
  return elements;
}

/// Eight elements as f32; 0 where not `isThere`. `row` and `column` are in the
/// tensor in any case.
SmallVector<Value> NvvmEmitter::loadEight(const View &view, Value row,
                                          Value column, Value isThere,
                                          bool isAligned) {
  Location loc = p_.location();
  Value offset =
      p_.add(p_.mul(p_.signExtend(row), view.rowStride), p_.signExtend(column));
  Value pointer = p_.globalPointer(view.pointer, view.elementType, offset);
  auto words = VectorType::get({kPiece / 2}, p_.i32());
  if (isAligned && view.streamLoads) {
    Value loaded = LLVM::UndefOp::create(b_, loc, words);
    for (auto [i, word] : llvm::enumerate(
             p_.ptx("ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];",
                    "=r,=r,=r,=r,l", {pointer},
                    SmallVector<Type>(kPiece / 2, p_.i32()))))
      loaded = LLVM::InsertElementOp::create(
          b_, loc, loaded, word, p_.constant(static_cast<int64_t>(i)));
    return widen(view.elementType, loaded, isThere);
  }
  if (isAligned)
    return widen(view.elementType,
                 LLVM::LoadOp::create(b_, loc, words, pointer, 16), isThere);
  auto eight = VectorType::get({kPiece}, view.elementType);
  Value elements = LLVM::UndefOp::create(b_, loc, eight);
  for (int64_t i = 0; i < kPiece; ++i) {
    Value element = p_.loadGlobal(
        view.elementType,
        p_.globalPointer(pointer, view.elementType, p_.constant64(i)));
    elements = LLVM::InsertElementOp::create(b_, loc, elements, element,
                                             p_.constant(i));
  }
  return widen(view.elementType,
               LLVM::BitcastOp::create(b_, loc, words, elements), isThere);
}

/// Adds (as `fold` says) to eight columns' sums a round's rows from `first`;
/// where it `isPartial`, those before `end`.
SmallVector<Value> NvvmEmitter::addRound(const View &view, Value first,
                                         Value end, int64_t pieces,
                                         bool isAligned, bool isPartial,
                                         ValueRange sums, Fold fold) {
  Location loc = p_.location();
  const int64_t rows = 32 / pieces;
  Value ownRow = p_.divide(lane_, pieces);
  Value column = p_.mul(p_.remainder(lane_, pieces), kPiece);
  // Lanes beyond the last whole row have none of their own.
  Value isOwn = p_.constantLike(p_.i1(), b_.getBoolAttr(true));
  if (rows * pieces < 32) {
    isOwn = p_.less(ownRow, p_.constant(rows));
    ownRow = p_.select(isOwn, ownRow, p_.constant(0));
  }
  Value last = p_.add(end, -1);
  SmallVector<Value> result(sums);
  for (int64_t i = 0; i < loadsOf(view.streamLoads, isAligned); ++i) {
    Value row = p_.add(p_.add(first, ownRow), i * rows), isThere = isOwn;
    if (isPartial) {
      isThere = arith::AndIOp::create(b_, loc, isOwn, p_.less(row, end));
      row = arith::MinSIOp::create(b_, loc, row, last);
    }
    fold(result, loadEight(view, row, column, isThere, isAligned));
  }
  return result;
}

/// `count` sums (of what is not negative the largest element, as `fold` says),
/// eight columns' or two of each, over this lane's rows of [first, end), which
/// holds at least one: whole rounds, and what is left.
SmallVector<Value> NvvmEmitter::combineLanes(const View &view, Value first,
                                             Value end, int64_t pieces,
                                             bool isAligned, size_t count,
                                             Fold fold) {
  Location loc = p_.location();
  const int64_t roundRows = 32 / pieces * loadsOf(view.streamLoads, isAligned);
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  Value rounds = p_.divide(p_.sub(end, first), roundRows);
  Value wholeEnd = p_.add(first, p_.mul(rounds, roundRows));
  auto loop =
      scf::ForOp::create(b_, loc, first, wholeEnd, p_.constant(roundRows),
                         SmallVector<Value>(count, zero));
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(b_, loc,
                         addRound(view, loop.getInductionVar(), end, pieces,
                                  isAligned, /*isPartial=*/false,
                                  loop.getRegionIterArgs(), fold));
  }
  auto rest = scf::IfOp::create(b_, loc, SmallVector<Type>(count, p_.f32()),
                                p_.less(wholeEnd, end), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(rest.thenBlock());
  scf::YieldOp::create(b_, loc,
                       addRound(view, wholeEnd, end, pieces, isAligned,
                                /*isPartial=*/true, loop.getResults(), fold));
  b_.setInsertionPointToStart(rest.elseBlock());
  scf::YieldOp::create(b_, loc, loop.getResults());
  return rest.getResults();
}

/// Whether each row starts at a multiple of 16 bytes.
Value NvvmEmitter::isAligned(const View &view) {
  Location loc = p_.location();
  Value base = LLVM::PtrToIntOp::create(b_, loc, p_.i64(), view.pointer);
  Value stride = p_.mul(view.rowStride, p_.constant64(2));
  Value low = arith::AndIOp::create(
      b_, loc, arith::OrIOp::create(b_, loc, base, stride), p_.constant64(15));
  return arith::CmpIOp::create(b_, loc, arith::CmpIPredicate::eq, low,
                               p_.constant64(0));
}

/// Each lane's sums over its rows of [first, end), as in combineLanes.
SmallVector<Value> NvvmEmitter::combineRows(const View &view, Value first,
                                            Value end, int64_t size,
                                            size_t count, Fold fold) {
  Location loc = p_.location();
  int64_t pieces = size / kPiece;

  // For 16-byte loads.
  auto branch = scf::IfOp::create(b_, loc, SmallVector<Type>(count, p_.f32()),
                                  isAligned(view), /*withElse=*/true);
  for (bool aligned : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(aligned ? branch.thenBlock()
                                        : branch.elseBlock());
    SmallVector<Value> sums =
        combineLanes(view, first, end, pieces, aligned, count, fold);
    scf::YieldOp::create(b_, loc, sums);
  }
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// All lanes' sums of their eight columns together, then each element to the
/// lane that holds it.
NvvmEmitter::Registers NvvmEmitter::gatherRow(ArrayRef<Value> parts,
                                              int64_t size, Combine add) {
  const int64_t pieces = size / kPiece, rows = 32 / pieces;
  Value piece = p_.remainder(lane_, pieces);
  SmallVector<Value> sums;
  for (Value part : parts) {
    Value sum;
    for (int64_t row = 0; row < rows; ++row) {
      Value other = p_.fromLane(part, p_.add(piece, row * pieces));
      sum = row == 0 ? other : add(sum, other);
    }
    sums.push_back(sum);
  }
  RowPlace place(size);
  Registers registers;
  for (int64_t i = 0; i < place.registers(); ++i) {
    Value element = rowIndex(place, i);
    Value from = p_.divide(element, kPiece),
          inPiece = p_.remainder(element, kPiece);
    Value found;
    // The register of the piece that this lane wants, out of those that some
    // lane wants.
    for (int64_t j = i % place.perLane; j < kPiece; j += place.perLane) {
      Value candidate = p_.fromLane(sums[static_cast<size_t>(j)], from);
      found = found ? p_.select(p_.equals(inPiece, j), candidate, found)
                    : candidate;
    }
    registers.push_back(found);
  }
  return registers;
}

Value NvvmEmitter::sumOf(Value a, Value b) {
  return arith::AddFOp::create(b_, p_.location(), a, b);
}

Value NvvmEmitter::peakOf(Value a, Value b) {
  return arith::MaxNumFOp::create(b_, p_.location(), a,
                                  LLVM::FAbsOp::create(b_, p_.location(), b));
}

LogicalResult NvvmEmitter::emit(tile::SumRowsOp op) {
  auto add = [&](Value a, Value b) { return sumOf(a, b); };
  auto fold = [&](SmallVectorImpl<Value> &sums, ArrayRef<Value> elements) {
    for (auto [sum, element] : llvm::zip(sums, elements))
      sum = add(sum, element);
  };
  int64_t size = cast<RankedTensorType>(op.getType()).getDimSize(0);
  // 50.1 for 54.0 us at 12 x 32 760 rows of 128, and as fast at 40 x 75 600
  // (bench/results/2026-11-30-h200-selection.md).
  View view = views_[op.getView()];
  view.streamLoads = tile::getFixed(op.getLoads()).value_or(kLoads);
  hold(op.getResult(),
       gatherRow(combineRows(view, scalar(op.getFirst()), scalar(op.getEnd()),
                             size, kPiece, fold),
                 size, add));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::PeakRowsOp op) {
  auto larger = [&](Value a, Value b) { return peakOf(a, b); };
  auto add = [&](Value a, Value b) { return sumOf(a, b); };
  const bool sums = static_cast<bool>(op.getSum());
  auto fold = [&](SmallVectorImpl<Value> &state, ArrayRef<Value> elements) {
    for (auto [i, element] : llvm::enumerate(elements)) {
      state[i] = larger(state[i], element);
      if (sums)
        state[kPiece + i] = add(state[kPiece + i], element);
    }
  };
  int64_t size = cast<RankedTensorType>(op.getResult().getType()).getDimSize(0);
  SmallVector<Value> parts =
      combineRows(views_[op.getView()], scalar(op.getFirst()),
                  scalar(op.getEnd()), size, sums ? 2 * kPiece : kPiece, fold);
  ArrayRef<Value> all = parts;
  hold(op.getResult(), gatherRow(all.take_front(kPiece), size, larger));
  if (sums)
    hold(op.getSum(), gatherRow(all.drop_front(kPiece), size, add));
  return success();
}

/// A row a lane, line by line. Beyond the end the last row is asked for again.
LogicalResult NvvmEmitter::emit(tile::PrefetchRowsOp op) {
  constexpr int64_t kLanes = 32, kLineBytes = 128;
  const View view = views_[op.getView()];
  const int64_t bytes = view.elementType.getIntOrFloatBitWidth() / 8;
  Value first = p_.add(scalar(op.getRow()), lane_);
  for (int64_t i = 0; i < *tile::getFixed(op.getCount()); i += kLanes) {
    Value row = arith::MinSIOp::create(b_, p_.location(), p_.add(first, i),
                                       p_.add(view.rows, -1));
    for (int64_t at = 0; at < *tile::getFixed(op.getColumns());
         at += kLineBytes / bytes) {
      Value offset =
          p_.add(p_.mul(p_.signExtend(row), view.rowStride), p_.constant64(at));
      p_.ptx("prefetch.global.L2 [$0];", "l",
             p_.globalPointer(view.pointer, view.elementType, offset));
    }
  }
  return success();
}

/// `sum` and the product of eight columns, or of none beyond the last one.
Value NvvmEmitter::addProduct(const View &a, const View &b, Value row,
                              Value column, Value columns, bool isAligned,
                              Value sum) {
  Value isThere = p_.less(column, columns);
  column = p_.select(isThere, column, p_.constant(0));
  for (auto [x, y] : llvm::zip(loadEight(a, row, column, isThere, isAligned),
                               loadEight(b, row, column, isThere, isAligned)))
    sum = LLVM::FMAOp::create(b_, p_.location(), x, y, sum);
  return sum;
}

/// The product of this lane's row from `row`. In a team, which has many warps,
/// a lane takes one piece of a row, and several rows one after the other. A
/// role has few warps and registers: a lane takes four pieces of a row, so that
/// fewer sums are exchanged, or fewer, which takes fewer registers, where rows
/// are long or end amid the lanes' pieces; and nothing is unrolled beyond that.
Value NvvmEmitter::dotLanes(const View &a, const View &b, Value row,
                            int64_t columns, bool isAligned) {
  const bool isRole = !role_.isTeam;
  Location loc = p_.location();
  int64_t lanes = static_cast<int64_t>(llvm::PowerOf2Ceil(columns / kPiece));
  if (isRole) {
    const bool isEven = columns == 64 || columns == 128;
    const int64_t together = isEven ? 4 : columns > 240 ? 1 : 2;
    lanes = std::max<int64_t>(lanes / together, 1);
  }
  int64_t rows = 32 / lanes, pieces = llvm::divideCeil(columns / kPiece, lanes);
  Value firstColumn = p_.mul(p_.remainder(lane_, lanes), kPiece);
  Value last = p_.add(a.rows, -1);
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  auto makeLoop = [&](int64_t count, int64_t step, Value start) {
    // What LLVM does not know it does not unroll.
    Value end = isRole
                    ? p_.purePtx("mov.b32 $0, " + std::to_string(count) + ";",
                                 "=r", {}, p_.i32())
                          .front()
                    : p_.constant(count);
    auto loop =
        scf::ForOp::create(b_, loc, p_.constant(0), end, p_.constant(step),
                           SmallVector<Value>{start});
    b_.setInsertionPointToStart(loop.getBody());
    if (isRole)
      p_.ptx(".pragma \"nounroll\";", "", {});
    return loop;
  };
  OpBuilder::InsertionGuard guard(b_);
  const int64_t together = isRole ? 1 : std::min(lanes, kPasses);
  scf::ForOp loop = makeLoop(lanes, together, zero);
  Value result = loop.getRegionIterArg(0);
  for (int64_t i = 0; i < together; ++i) {
    Value pass = p_.add(loop.getInductionVar(), i);
    Value own =
        p_.add(p_.add(row, p_.divide(lane_, lanes)), p_.mul(pass, rows));
    Value inside = arith::MinSIOp::create(b_, loc, own, last);
    Value sum = zero;
    if (isRole && !isAligned) {
      OpBuilder::InsertionGuard inner(b_);
      scf::ForOp inRow =
          makeLoop(pieces * lanes * kPiece, lanes * kPiece, zero);
      scf::YieldOp::create(
          b_, loc,
          addProduct(a, b, inside, p_.add(firstColumn, inRow.getInductionVar()),
                     p_.constant(columns), isAligned,
                     inRow.getRegionIterArg(0)));
      sum = inRow.getResult(0);
    } else {
      for (int64_t piece = 0; piece < pieces; ++piece)
        sum = addProduct(a, b, inside,
                         p_.add(firstColumn, piece * lanes * kPiece),
                         p_.constant(columns), isAligned, sum);
    }
    sum = p_.select(p_.less(own, a.rows), sum, zero);
    for (int64_t mask = 1; mask < lanes; mask *= 2)
      sum = arith::AddFOp::create(b_, loc, sum, p_.fromLaneXor(sum, mask));
    // Row i of the pass goes to lane pass * rows + i.
    Value from = p_.mul(p_.remainder(lane_, rows), lanes);
    Value isOwn = arith::CmpIOp::create(b_, loc, arith::CmpIPredicate::eq,
                                        p_.divide(lane_, rows), pass);
    result = p_.select(isOwn, p_.fromLane(sum, from), result);
  }
  scf::YieldOp::create(b_, loc, result);
  return loop.getResult(0);
}

LogicalResult NvvmEmitter::emit(tile::RowDotsOp op) {
  Location loc = p_.location();
  const View a = views_[op.getA()], b = views_[op.getB()];
  Value bothAligned =
      arith::AndIOp::create(b_, loc, isAligned(a), isAligned(b));
  auto branch = scf::IfOp::create(b_, loc, p_.f32(), bothAligned,
                                  /*withElse=*/true);
  for (bool aligned : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(aligned ? branch.thenBlock()
                                        : branch.elseBlock());
    scf::YieldOp::create(b_, loc,
                         dotLanes(a, b, scalar(op.getRow()),
                                  *tile::getFixed(op.getColumns()), aligned));
  }
  hold(op.getResult(), {branch.getResult(0)});
  return success();
}

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// Whether `perLane` elements from view[first + i], for every i that is a
/// multiple of `perLane`, lie at a multiple of their size, and all inside the
/// view or all outside.
Value NvvmEmitter::movesWhole(const View &view, Value first, int64_t perLane) {
  Location loc = p_.location();
  const int64_t bytes = bytesOf(view.elementType);
  Value base = LLVM::PtrToIntOp::create(b_, loc, p_.i64(), view.pointer);
  Value ends = arith::OrIOp::create(b_, loc, p_.mul(first, bytes),
                                    p_.mul(view.rows, bytes));
  Value low = arith::AndIOp::create(
      b_, loc, arith::OrIOp::create(b_, loc, base, p_.signExtend(ends)),
      p_.constant64(perLane * bytes - 1));
  return arith::CmpIOp::create(b_, loc, arith::CmpIPredicate::eq, low,
                               p_.constant64(0));
}

/// A lane's `perLane` elements at `pointer` as f32.
NvvmEmitter::Registers NvvmEmitter::loadTogether(Type element, Value pointer,
                                                 int64_t perLane) {
  Location loc = p_.location();
  const int64_t bytes = perLane * bytesOf(element);
  Type word = isa<Float32Type>(element) ? p_.f32() : p_.i32();
  auto loaded = [&](Type type) -> Value {
    return LLVM::LoadOp::create(b_, loc, type, pointer,
                                static_cast<unsigned>(bytes));
  };
  Registers words;
  if (bytes == 4) {
    words.push_back(loaded(word));
  } else {
    Value all = loaded(VectorType::get({bytes / 4}, word));
    for (int64_t i = 0; i < bytes / 4; ++i)
      words.push_back(
          LLVM::ExtractElementOp::create(b_, loc, all, p_.constant(i)));
  }
  return element.isF32() ? words : widenPairs(words, element);
}

/// Elements beyond the end are read at the view's first one instead, and
/// replaced.
NvvmEmitter::Registers NvvmEmitter::loadRow(const View &view, Value first,
                                            const RowPlace &place,
                                            Value otherwise, bool together) {
  Location loc = p_.location();
  Type element = view.elementType;
  const int64_t step = together ? place.perLane : 1;
  Registers registers;
  for (int64_t i = 0; i < place.registers(); i += step) {
    Value index = p_.add(first, rowIndex(place, i));
    Value inside = p_.lessUnsigned(index, view.rows);
    Value safe = p_.select(inside, index, p_.constant(0));
    Value pointer =
        p_.globalPointer(view.pointer, element, p_.signExtend(safe));
    Registers found;
    if (together) {
      found = loadTogether(element, pointer, step);
    } else {
      Value one = p_.loadGlobal(element, pointer);
      found.push_back(element.isF32() ? one
                                      : Value(LLVM::FPExtOp::create(
                                            b_, loc, p_.f32(), one)));
    }
    for (Value value : found)
      registers.push_back(p_.select(inside, value, otherwise));
  }
  return registers;
}

LogicalResult NvvmEmitter::loadFloats(tile::LoadValuesOp op) {
  Location loc = p_.location();
  auto type = cast<RankedTensorType>(op.getType());
  RowPlace place(type.getDimSize(0));
  const View view = views_[op.getView()];
  Value first = scalar(op.getFirst()), otherwise = scalar(op.getOtherwise());
  if (place.perLane == 1) {
    hold(op.getResult(), loadRow(view, first, place, otherwise, false));
    return success();
  }
  SmallVector<Type> types(static_cast<size_t>(place.registers()), p_.f32());
  auto branch =
      scf::IfOp::create(b_, loc, types, movesWhole(view, first, place.perLane),
                        /*withElse=*/true);
  for (bool together : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(together ? branch.thenBlock()
                                         : branch.elseBlock());
    scf::YieldOp::create(b_, loc,
                         loadRow(view, first, place, otherwise, together));
  }
  hold(op.getResult(), Registers(branch.getResults()));
  return success();
}

/// A lane's neighbouring `values` to `pointer`, where `stores`.
void NvvmEmitter::storeTogether(Value stores, ArrayRef<Value> values,
                                Type element, Value pointer) {
  SmallVector<Value> operands{pointer};
  if (element.isF32())
    llvm::append_range(operands, values);
  else
    llvm::append_range(operands, narrow(values, element));
  const char *kind = element.isF32() ? "f" : "r";
  const size_t words = operands.size() - 1;
  std::string text = "st.global", list, constraints = "l";
  for (size_t i = 1; i <= words; ++i) {
    list += (i > 1 ? ", $" : "$") + std::to_string(i);
    constraints += std::string(",") + kind;
  }
  if (words > 1) {
    text += ".v" + std::to_string(words);
    list = "{" + list + "}";
  }
  p_.ptxWhere(stores, text + ".b32 [$0], " + list + ";", constraints, operands);
}

void NvvmEmitter::storeOne(Value stores, Value value, Type element,
                           Value pointer) {
  if (element.isF32()) {
    p_.storeGlobalWhere(stores, value, pointer);
    return;
  }
  Value low = arith::TruncIOp::create(b_, p_.location(), b_.getI16Type(),
                                      narrow({value, value}, element).front());
  p_.ptxWhere(stores, "st.global.b16 [$0], $1;", "l,h", {pointer, low});
}

/// A vector of f32 into a vector of floats.
LogicalResult NvvmEmitter::storeFloats(tile::StoreOp op) {
  Location loc = p_.location();
  auto type = cast<RankedTensorType>(op.getValue().getType());
  RowPlace place(type.getDimSize(0));
  const View view = views_[op.getView()];
  Type element = view.elementType;
  if (!type.getElementType().isF32() || place.size % place.perLane != 0 ||
      !(element.isF32() || element.isBF16() || element.isF16()))
    return op.emitOpError()
           << "expects f32, equally many in each lane that has "
              "any, for a view of floats, got "
           << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  Value first = scalar(op.getOffsets()[0]);
  auto branch =
      scf::IfOp::create(b_, loc, movesWhole(view, first, place.perLane),
                        /*withElseRegion=*/true);
  for (bool together : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(together ? branch.thenBlock()
                                         : branch.elseBlock());
    const int64_t step = together ? place.perLane : 1;
    for (int64_t i = 0; i < place.registers(); i += step) {
      Value index = p_.add(first, rowIndex(place, i));
      Value stores = arith::AndIOp::create(
          b_, loc, p_.lessUnsigned(index, view.rows), inRow(place, i));
      Value pointer =
          p_.globalPointer(view.pointer, element, p_.signExtend(index));
      ArrayRef<Value> own = ArrayRef(*value).slice(static_cast<size_t>(i),
                                                   static_cast<size_t>(step));
      if (together && step > 1)
        storeTogether(stores, own, element, pointer);
      else
        storeOne(stores, own.front(), element, pointer);
    }
  }
  return success();
}

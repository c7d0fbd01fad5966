// SPDX-License-Identifier: Apache-2.0
//
// Products of float32 rows on the tensor core, in float16 parts.
//
// A row x is scaled by a power of two, y = x 2^e with the largest |y| in
// [2^14, 2^15), and split, y = high + low, high = float16(y), low = float16(y -
// high): low is exact to 2^-22 of y, and to 2^-39 of the largest where y is so
// small that low is denormal. The tensor core multiplies parts exactly and sums
// in float32; low · low, 2^-22 of the product, is left out.
//
// mma.m16n8k16 sums over k in any order that both operands share: a lane's
// elements 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of step s are here the
// neighbouring columns 16 s + 4 t + {0, 1, 2, 3}, one 16-byte load.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kStepColumns = 16, kPiece = 4;

/// This lane's pieces of a row: four columns of each step, 0 beyond `columns`.
SmallVector<Value> NvvmEmitter::loadPieces(const View &view, Value row,
                                           int64_t columns) {
  Location loc = p_.location();
  auto piece = VectorType::get({kPiece}, p_.f32());
  Value first = p_.mul(p_.remainder(lane_, 4), kPiece);
  Value offset = p_.mul(p_.signExtend(row), view.rowStride);
  Value base = p_.globalPointer(view.pointer, view.elementType, offset);
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  SmallVector<Value> values;
  for (int64_t step = 0; step * kStepColumns < columns; ++step) {
    Value column = p_.add(first, step * kStepColumns);
    bool isPartial = (step + 1) * kStepColumns > columns;
    Value isThere;
    if (isPartial) {
      isThere = p_.less(column, p_.constant(columns));
      column = p_.select(isThere, column, p_.constant(0));
    }
    Value loaded = LLVM::LoadOp::create(
        b_, loc, piece,
        p_.globalPointer(base, view.elementType, p_.signExtend(column)),
        /*alignment=*/16);
    for (int64_t i = 0; i < kPiece; ++i) {
      Value element =
          LLVM::ExtractElementOp::create(b_, loc, loaded, p_.constant(i));
      values.push_back(isPartial ? p_.select(isThere, element, zero) : element);
    }
  }
  return values;
}

/// Both parts of two neighbouring elements, as pairs.
std::pair<Value, Value> NvvmEmitter::splitPair(Value first, Value second,
                                               Value scale) {
  Location loc = p_.location();
  auto halves = VectorType::get({2}, b_.getF16Type());
  auto pack = [&](Value a, Value b) {
    return p_.intrinsic("llvm.nvvm.ff2f16x2.rn", halves, {b, a});
  };
  Value a = arith::MulFOp::create(b_, loc, first, scale);
  Value b = arith::MulFOp::create(b_, loc, second, scale);
  Value high = pack(a, b);
  auto rest = [&](Value whole, int64_t index) -> Value {
    Value part =
        LLVM::ExtractElementOp::create(b_, loc, high, p_.constant(index));
    Value wide = LLVM::FPExtOp::create(b_, loc, p_.f32(), part);
    return arith::SubFOp::create(b_, loc, whole, wide);
  };
  Value low = pack(rest(a, 0), rest(b, 1));
  return {LLVM::BitcastOp::create(b_, loc, p_.i32(), high),
          LLVM::BitcastOp::create(b_, loc, p_.i32(), low)};
}

/// Splits this lane's pieces of a row, whose other pieces the lanes t have.
NvvmEmitter::SplitRow NvvmEmitter::split(ArrayRef<Value> values) {
  Location loc = p_.location();
  SmallVector<Value> sizes;
  for (Value value : values)
    sizes.push_back(LLVM::FAbsOp::create(b_, loc, value));
  Value largest = combineAll(tile::ReduceKind::Max, sizes);
  for (int64_t mask : {1, 2})
    largest =
        combine(tile::ReduceKind::Max, largest, p_.fromLaneXor(largest, mask));
  // Exponent fields: of the largest, of 2^(14 - exponent), and of its inverse.
  constexpr int64_t kMantissaBits = 23, kBias = 127, kTop = 14;
  Value bits = arith::BitcastOp::create(b_, loc, p_.i32(), largest);
  Value exponent = p_.divide(bits, int64_t(1) << kMantissaBits);
  exponent = arith::MaxUIOp::create(b_, loc, exponent, p_.constant(kTop + 1));
  exponent = arith::MinUIOp::create(b_, loc, exponent, p_.constant(254));
  auto power = [&](Value field) -> Value {
    Value shifted = p_.mul(field, int64_t(1) << kMantissaBits);
    return arith::BitcastOp::create(b_, loc, p_.f32(), shifted);
  };
  Value scale = power(p_.sub(p_.constant(2 * kBias + kTop), exponent));
  SplitRow result;
  result.factor = power(p_.add(exponent, -kTop));
  for (size_t i = 0; i < values.size(); i += 2) {
    auto [high, low] = splitPair(values[i], values[i + 1], scale);
    result.high.push_back(high);
    result.low.push_back(low);
  }
  return result;
}

/// Eight rows to a warp at a time; lane 4 r + t works on row r.
LogicalResult NvvmEmitter::emit(tile::StageOp op) {
  Location loc = p_.location();
  const Staged staged = staged_[op.getResult()];
  const View view = views_[op.getView()];
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  auto loop =
      scf::ForOp::create(b_, loc, warp_, p_.constant(staged.rows / 8),
                         p_.constant(*tile::getFixed(team_.getWarps())));
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    Value eight = loop.getInductionVar();
    Value inTile = p_.add(p_.mul(eight, 8), p_.divide(lane_, 4));
    Value row = p_.add(scalar(op.getRow()), inTile);
    Value isThere = p_.less(row, view.rows);
    SmallVector<Value> values = loadPieces(
        view, p_.select(isThere, row, p_.add(view.rows, -1)), staged.columns);
    for (Value &value : values)
      value = p_.select(isThere, value, zero);
    SplitRow parts = split(values);
    Value place =
        p_.add(staged.address,
               p_.add(p_.mul(eight, staged.steps() * 512), p_.mul(lane_, 16)));
    for (int64_t step = 0; step < staged.steps(); ++step) {
      size_t pair = static_cast<size_t>(2 * step);
      p_.ptx("st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}",
             {p_.add(place, step * 512), parts.high[pair], parts.high[pair + 1],
              parts.low[pair], parts.low[pair + 1]});
    }
    p_.storeSharedWhere(p_.equals(p_.remainder(lane_, 4), 0), parts.factor,
                        p_.add(p_.add(staged.address, staged.factorBytes()),
                               p_.mul(inTile, 4)));
  }
  NVVM::Barrier0Op::create(b_, loc);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::DotStagedOp op) {
  Location loc = p_.location();
  const Staged staged = staged_[op.getStaged()];
  const View view = views_[op.getView()];
  Value last = p_.add(view.rows, -1);
  SmallVector<SplitRow> halves;
  SmallVector<SmallVector<Value>> loaded;
  for (int64_t half : {0, 1}) {
    Value row =
        p_.add(p_.add(scalar(op.getRow()), p_.divide(lane_, 4)), 8 * half);
    row = arith::MinSIOp::create(b_, loc, row, last);
    loaded.push_back(loadPieces(view, row, staged.columns));
  }
  for (ArrayRef<Value> values : loaded)
    halves.push_back(split(values));

  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  Registers sums(static_cast<size_t>(staged.rows / 2), zero);
  auto multiply = [&](int64_t tile, ArrayRef<Value> a, ArrayRef<Value> b) {
    SmallVector<Value> operands(a);
    llvm::append_range(operands, b);
    for (int64_t i = 0; i < 4; ++i)
      operands.push_back(sums[static_cast<size_t>(4 * tile + i)]);
    SmallVector<Value> results = p_.purePtx(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, "
        "{$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};",
        "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", operands,
        SmallVector<Type>(4, p_.f32()));
    for (auto [i, result] : llvm::enumerate(results))
      sums[static_cast<size_t>(4 * tile) + i] = result;
  };
  Value place = p_.add(staged.address, p_.mul(lane_, 16));
  for (int64_t step = 0; step < staged.steps(); ++step) {
    size_t pair = static_cast<size_t>(2 * step);
    auto fragment = [&](bool isHigh) {
      SmallVector<Value> registers;
      for (size_t i : {pair, pair + 1})
        for (const SplitRow &half : halves)
          registers.push_back(isHigh ? half.high[i] : half.low[i]);
      return registers;
    };
    SmallVector<Value> high = fragment(true), low = fragment(false);
    for (int64_t tile = 0; tile < staged.rows / 8; ++tile) {
      SmallVector<Value> b = p_.loadSharedWords(
          p_.add(place, (tile * staged.steps() + step) * 512), 4);
      multiply(tile, high, {b[2], b[3]});
      multiply(tile, low, {b[0], b[1]});
      multiply(tile, high, {b[0], b[1]});
    }
  }
  Value factors = p_.add(p_.add(staged.address, staged.factorBytes()),
                         p_.mul(p_.remainder(lane_, 4), 8));
  for (int64_t i = 0; i < staged.rows / 2; ++i) {
    auto at = static_cast<size_t>(i);
    Value other =
        p_.loadShared(p_.f32(), p_.add(factors, i / 4 * 32 + i % 2 * 4));
    Value scaled = arith::MulFOp::create(
        b_, loc, sums[at], halves[static_cast<size_t>(i / 2 % 2)].factor);
    sums[at] = arith::MulFOp::create(b_, loc, scaled, other);
  }
  hold(op.getResult(), std::move(sums));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::SpreadOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  const Scratch scratch = scratches_[op.getScratch()];
  if (type.getDimSize(1) != scratch.rows * members())
    return op.emitOpError()
           << "expects a column for each of the team's "
           << scratch.rows * members() << " rows of scratch, got " << type;
  // An even row and the one after it belong to one member.
  Value even = p_.mul(p_.remainder(lane_, 4), 2);
  Value column = p_.add(scalar(op.getCol()), p_.divide(lane_, 4));
  for (int64_t tile = 0; tile < type.getDimSize(1) / 8; ++tile) {
    Value row = p_.add(even, 8 * tile);
    Value owner = p_.divide(row, scratch.rows);
    Value local = p_.sub(row, p_.mul(owner, scratch.rows));
    Value word = p_.add(p_.mul(local, scratch.stride), column);
    Value address = p_.add(scratch.address, p_.mul(word, 4));
    if (members() > 1)
      address = p_.purePtx("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                           {address, owner}, p_.i32())
                    .front();
    for (int64_t i = 0; i < 4; ++i) {
      Value to = i % 2 ? p_.add(address, p_.mul(scratch.stride, 4)) : address;
      p_.ptx("st.shared::cluster.f32 [$0], $1;", "r,f,~{memory}",
             {p_.add(to, i / 2 * 32),
              (*value)[static_cast<size_t>(4 * tile + i)]});
    }
  }
  return success();
}

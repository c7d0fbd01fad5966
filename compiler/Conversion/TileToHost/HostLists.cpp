// SPDX-License-Identifier: Apache-2.0
//
// Writing block lists: appending kept columns, closing the tails.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::sparge;

/// Few columns are kept, so each column's 16 flags become a bit mask and only
/// its set bits are visited.
LogicalResult HostEmitter::emitAppendIndices(tile::AppendIndicesOp op) {
  const View &view = views_[op.getView()];
  auto type = cast<RankedTensorType>(op.getKeep().getType());
  auto countsType = cast<RankedTensorType>(op.getCounts().getType());
  Type i32 = b_.getI32Type(), i16 = b_.getI16Type();
  Value counts;
  if (buffers_.contains(op.getCounts()) && canReuse(op.getCounts(), op)) {
    counts = buffers_[op.getCounts()];
  } else {
    counts = allocate(countsType);
    if (failed(materialiseInto(op.getCounts(), counts)))
      return failure();
  }
  Value row = scalar(op.getRow());
  Value first =
      arith::IndexCastOp::create(b_, loc_, i32, scalar(op.getFirstColumn()));
  LogicalResult result = success();
  auto appendLane = [&](Value lane, Value number) {
    Value at = pointerAt(counts, i32, lane);
    Value n = load(i32, at, 4);
    Value slot = arith::IndexCastOp::create(b_, loc_, b_.getIndexType(), n);
    Value position = add(mul(add(row, lane), view.rowStride), slot);
    store(number, pointerAt(view.pointer, i32, position), 4);
    Value one = arith::ConstantOp::create(b_, loc_, b_.getI32IntegerAttr(1));
    store(add(n, one), at, 4);
  };
  forEach(llvm::divideCeil(type.getDimSize(0), kHostLanes), [&](Value panel) {
    Value firstLane = mul(panel, kHostLanes);
    // Lanes of rows that the view has; the others' flags are dropped.
    Value lanes =
        minimum(sub(view.rows, add(row, firstLane)), index(kHostLanes));
    lanes = arith::MaxSIOp::create(b_, loc_, lanes, index(0));
    Value one = arith::ConstantOp::create(b_, loc_, b_.getI32IntegerAttr(1));
    Value shift = arith::IndexCastOp::create(b_, loc_, i32, lanes);
    Value inside = sub(arith::ShLIOp::create(b_, loc_, one, shift), one);
    forEach(type.getDimSize(1), [&](Value column) {
      Evaluated done;
      FailureOr<Value> keep =
          evaluate(op.getKeep(), {Point::Kind::Matrix, panel, column}, done);
      if (failed(keep)) {
        result = failure();
        return;
      }
      Value packed = LLVM::BitcastOp::create(b_, loc_, i16, *keep);
      Value bits = arith::AndIOp::create(
          b_, loc_, arith::ExtUIOp::create(b_, loc_, i32, packed), inside);
      Value number =
          add(first, arith::IndexCastOp::create(b_, loc_, i32, column));
      scf::WhileOp::create(
          b_, loc_, TypeRange{i32}, ValueRange{bits},
          [&](OpBuilder &, Location, ValueRange state) {
            Value any = arith::CmpIOp::create(
                b_, loc_, arith::CmpIPredicate::ne, state[0], zero(i32));
            scf::ConditionOp::create(b_, loc_, any, state);
          },
          [&](OpBuilder &, Location, ValueRange state) {
            Value lowest = LLVM::CountTrailingZerosOp::create(
                b_, loc_, i32, state[0], /*is_zero_poison=*/true);
            Value lane =
                add(firstLane, arith::IndexCastOp::create(
                                   b_, loc_, b_.getIndexType(), lowest));
            appendLane(lane, number);
            // x & (x - 1) clears the lowest set bit.
            Value rest =
                arith::AndIOp::create(b_, loc_, state[0], sub(state[0], one));
            scf::YieldOp::create(b_, loc_, rest);
          });
    });
  });
  buffers_[op.getResult()] = counts;
  return result;
}

LogicalResult HostEmitter::emitFillTail(tile::FillTailOp op) {
  const View &view = views_[op.getView()];
  Type i32 = b_.getI32Type();
  FailureOr<Value> counts = materialise(op.getCounts());
  if (failed(counts))
    return failure();
  int64_t rows = cast<RankedTensorType>(op.getCounts().getType()).getDimSize(0);
  Value row = scalar(op.getRow());
  Value end = minimum(sub(view.rows, row), index(rows));
  forLoop(index(0), end, 1, {}, [&](Value r, ValueRange) {
    Value n = load(i32, pointerAt(*counts, i32, r), 4);
    Value start = arith::IndexCastOp::create(b_, loc_, b_.getIndexType(), n);
    Value base = mul(add(row, r), view.rowStride);
    forLoop(start, view.columns, 1, {}, [&](Value slot, ValueRange) {
      store(scalar(op.getValue()),
            pointerAt(view.pointer, i32, add(base, slot)), 4);
      return SmallVector<Value>{};
    });
    return SmallVector<Value>{};
  });
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Sums and maxima along rows. A thread combines its own registers in a tree of
// pairs; the four lanes of a row then meet by shuffles.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

Value NvvmEmitter::combine(tile::ReduceKind kind, Value a, Value b) {
  bool isFloat = isa<FloatType>(a.getType());
  Location loc = p_.location();
  if (kind == tile::ReduceKind::Sum)
    return isFloat ? Value(arith::AddFOp::create(b_, loc, a, b))
                   : Value(arith::AddIOp::create(b_, loc, a, b));
  return isFloat ? Value(arith::MaxNumFOp::create(b_, loc, a, b))
                 : Value(arith::MaxSIOp::create(b_, loc, a, b));
}

Value NvvmEmitter::combineAll(tile::ReduceKind kind,
                              SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      pairs.push_back(combine(kind, values[i], values[i + 1]));
    if (values.size() % 2)
      pairs.push_back(values.back());
    values = std::move(pairs);
  }
  return values.front();
}

LogicalResult NvvmEmitter::emit(tile::ReducePartialOp op) {
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  auto type = cast<RankedTensorType>(op.getSource().getType());
  if (isPacked(type) || isBytes(type))
    return op.emitOpError() << "expects 32-bit elements, got " << type;
  Registers parts;
  for (size_t half = 0; half < 2; ++half) {
    SmallVector<Value> own;
    for (size_t i = 0; i < source->size(); ++i)
      if (i / 2 % 2 == half)
        own.push_back((*source)[i]);
    parts.push_back(combineAll(op.getKind(), own));
  }
  hold(op.getResult(), std::move(parts));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::ReduceOp op) {
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  auto type = cast<RankedTensorType>(op.getSource().getType());
  if (isPacked(type) || isBytes(type)) {
    if (!type.getElementType().isF16() || op.getKind() != tile::ReduceKind::Max)
      return op.emitOpError() << "expects 32-bit elements, or the maximum of "
                                 "f16, got "
                              << type;
    hold(op.getResult(), maxOfRows(*source));
    return success();
  }
  bool isParts = heldBy(type) == Held::Parts;
  Registers rows;
  for (size_t half = 0; half < 2; ++half) {
    SmallVector<Value> own;
    for (size_t i = 0; i < source->size(); ++i)
      if ((isParts ? i : i / 2 % 2) == half)
        own.push_back((*source)[i]);
    Value row = combineAll(op.getKind(), own);
    for (int64_t mask : {1, 2})
      row = combine(op.getKind(), row, p_.fromLaneXor(row, mask));
    rows.push_back(row);
  }
  hold(op.getResult(), std::move(rows));
  return success();
}

/// Whether `here` holds in any lane.
Value NvvmEmitter::vote(Value here) {
  return NVVM::VoteSyncOp::create(b_, p_.location(), p_.i1(), p_.constant(-1),
                                  here, NVVM::VoteSyncKind::any);
}

LogicalResult NvvmEmitter::emit(tile::AnyOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  RowPlace place(type.getDimSize(0));
  Value here;
  for (auto [index, element] : llvm::enumerate(*source)) {
    Value inside =
        role_.isTeam ? inRow(place, static_cast<int64_t>(index))
                     : p_.less(p_.add(lane_, 32 * static_cast<int64_t>(index)),
                               p_.constant(type.getDimSize(0)));
    Value there = arith::AndIOp::create(b_, p_.location(), element, inside);
    here = here ? arith::OrIOp::create(b_, p_.location(), here, there) : there;
  }
  scalars_.map(op.getResult(), vote(here));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::WarpAnyOp op) {
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  Value here = source->front();
  for (Value more : ArrayRef(*source).drop_front())
    here = arith::OrIOp::create(b_, p_.location(), here, more);
  scalars_.map(op.getResult(), vote(here));
  return success();
}

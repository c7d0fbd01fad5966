// SPDX-License-Identifier: Apache-2.0
//
// Elements of which a register holds several: arithmetic on pairs of float16,
// and fours of f8E4M3FN, which are made and handed to a dot, no more.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::sparge;

/// One instruction on pairs; null where there is none.
static const char *pairInstruction(Operation *op) {
  if (isa<math::FmaOp>(op))
    return "fma.rn.f16x2 $0, $1, $2, $3;";
  if (isa<tile::FmaReluOp>(op))
    return "fma.rn.relu.f16x2 $0, $1, $2, $3;";
  if (isa<math::Exp2Op>(op)) // two of the special function unit's
    return "ex2.approx.f16x2 $0, $1;";
  if (isa<arith::AddFOp>(op))
    return "add.rn.f16x2 $0, $1, $2;";
  if (isa<arith::SubFOp>(op))
    return "sub.rn.f16x2 $0, $1, $2;";
  if (isa<arith::MulFOp>(op))
    return "mul.rn.f16x2 $0, $1, $2;";
  if (isa<arith::MaxNumFOp>(op))
    return "max.f16x2 $0, $1, $2;";
  if (isa<math::AbsFOp>(op))
    return "abs.f16x2 $0, $1;";
  return nullptr;
}

FailureOr<NvvmEmitter::Registers> NvvmEmitter::emitPairs(Operation *op,
                                                         Held held) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return selectPairs(select, held);
  const char *text = pairInstruction(op);
  if (!text)
    return op->emitOpError()
           << "expects arithmetic that pairs of f16 have, got " << type;
  std::string constraints = "=r";
  SmallVector<Registers> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Registers> registers = registersOf(operand, held);
    if (failed(registers))
      return failure();
    operands.push_back(std::move(*registers));
    constraints += ",r";
  }
  Registers results;
  for (size_t i = 0; i < operands.front().size(); ++i) {
    SmallVector<Value> inputs;
    for (const Registers &operand : operands)
      inputs.push_back(operand[i]);
    results.push_back(p_.purePtx(text, constraints, inputs, p_.i32()).front());
  }
  return results;
}

/// Of a tile, with a condition of one register an element, or a scalar.
FailureOr<NvvmEmitter::Registers> NvvmEmitter::selectPairs(arith::SelectOp op,
                                                           Held held) {
  FailureOr<Registers> yes = registersOf(op.getTrueValue(), held);
  FailureOr<Registers> no = registersOf(op.getFalseValue(), held);
  if (failed(yes) || failed(no))
    return failure();
  bool isScalar = !isTile(op.getCondition());
  if (!isScalar && held != Held::Matrix)
    return op.emitOpError() << "expects a matrix of f16, got " << op.getType();
  Registers conditions;
  if (!isScalar) {
    FailureOr<Registers> found = registersOf(op.getCondition(), held);
    if (failed(found))
      return failure();
    conditions = std::move(*found);
  }
  Value none = p_.constant(0);
  Registers results;
  for (size_t i = 0; i < yes->size(); ++i) {
    if (isScalar) {
      results.push_back(
          p_.select(scalar(op.getCondition()), (*yes)[i], (*no)[i]));
      continue;
    }
    Value low = p_.select(conditions[2 * i], p_.constant(0xFFFF), none);
    Value high = p_.select(conditions[2 * i + 1], p_.constant(-65536), none);
    Value mask = arith::OrIOp::create(b_, p_.location(), low, high);
    Value differing = p_.bitXor((*yes)[i], (*no)[i]);
    results.push_back(p_.bitXor((*no)[i], p_.bitAnd(differing, mask)));
  }
  return results;
}

LogicalResult NvvmEmitter::emit(tile::FmaReluOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (!type.getElementType().isF16()) // C1
    return op.emitOpError() << "expects f16 elements, got " << type;
  FailureOr<Registers> results = emitPairs(op, heldBy(type));
  if (failed(results))
    return failure();
  hold(op.getResult(), std::move(*results));
  return success();
}

Value NvvmEmitter::maxPairs(Value a, Value b) {
  return p_.purePtx("max.f16x2 $0, $1, $2;", "=r,r,r", {a, b}, p_.i32())
      .front();
}

/// The maximum of each row half, in both halves of its register.
NvvmEmitter::Registers NvvmEmitter::maxOfRows(ArrayRef<Value> pairs) {
  Registers rows;
  for (size_t half = 0; half < 2; ++half) {
    SmallVector<Value> own;
    for (size_t i = half; i < pairs.size(); i += 2)
      own.push_back(pairs[i]);
    while (own.size() > 1) {
      SmallVector<Value> fewer;
      for (size_t i = 0; i + 1 < own.size(); i += 2)
        fewer.push_back(maxPairs(own[i], own[i + 1]));
      if (own.size() % 2)
        fewer.push_back(own.back());
      own = std::move(fewer);
    }
    Value row = own.front();
    for (int64_t mask : {1, 2})
      row = maxPairs(row, p_.fromLaneXor(row, mask));
    Value swapped =
        p_.purePtx("prmt.b32 $0, $1, $1, 0x1032;", "=r,r", row, p_.i32())
            .front();
    rows.push_back(maxPairs(row, swapped));
  }
  return rows;
}

/// f32 and f16, one value a row.
NvvmEmitter::Registers NvvmEmitter::convertRows(ArrayRef<Value> source,
                                                Type from, Type to) {
  Registers rows;
  for (Value value : source)
    rows.push_back(from.isF32() ? narrow({value, value}, to).front()
                                : widenPairs(value, from).front());
  return rows;
}

/// Fours of f8E4M3FN from f32 or f16, as a dot's left operand takes them: of
/// two groups of eight columns, what the thread has of the first, then of the
/// second.
NvvmEmitter::Registers NvvmEmitter::toBytes(ArrayRef<Value> source, Type from) {
  Registers bytes;
  size_t group = from.isF32() ? 8 : 4; // registers of sixteen columns
  for (size_t first = 0; first < source.size(); first += group)
    for (size_t half = 0; half < 2; ++half) {
      if (from.isF32()) {
        size_t low = first + 2 * half, high = low + 4;
        bytes.push_back(p_.purePtx("{ .reg .b16 low, high; "
                                   "cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; "
                                   "cvt.rn.satfinite.e4m3x2.f32 high, $4, $3; "
                                   "mov.b32 $0, {low, high}; }",
                                   "=r,f,f,f,f",
                                   {source[low], source[low + 1], source[high],
                                    source[high + 1]},
                                   p_.i32())
                            .front());
        continue;
      }
      bytes.push_back(
          p_.purePtx("{ .reg .b16 low, high; "
                     "cvt.rn.satfinite.e4m3x2.f16x2 low, $1; "
                     "cvt.rn.satfinite.e4m3x2.f16x2 high, $2; "
                     "mov.b32 $0, {low, high}; }",
                     "=r,r,r", {source[first + half], source[first + half + 2]},
                     p_.i32())
              .front());
    }
  return bytes;
}

LogicalResult NvvmEmitter::emit(tile::LowBitsOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  if (!type.getElementType().isF16()) // C2
    return op.emitOpError() << "expects f16 elements, got " << type;
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  Registers bytes;
  for (size_t first = 0; first < source->size(); first += 4)
    for (size_t half = 0; half < 2; ++half)
      bytes.push_back(
          p_.purePtx("prmt.b32 $0, $1, $2, 0x6420;", "=r,r,r",
                     {(*source)[first + half], (*source)[first + half + 2]},
                     p_.i32())
              .front());
  hold(op.getResult(), std::move(bytes));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::ColumnsOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  auto sourceType = cast<RankedTensorType>(op.getSource().getType());
  if (heldBy(type) != Held::Matrix || isBytes(type))
    return op.emitOpError() << "expects elements of 16 or 32 bits in a role of "
                               "warpgroups, got "
                            << type;
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  int64_t perGroup =
      registerCount(sourceType, Held::Matrix) * 8 / sourceType.getDimSize(1);
  int64_t first = *tile::getFixed(op.getFirst()) / 8 * perGroup;
  hold(op.getResult(),
       llvm::to_vector(ArrayRef(*source).slice(
           static_cast<size_t>(first),
           static_cast<size_t>(registerCount(type, Held::Matrix)))));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::FirstColumnsOp op) {
  RankedTensorType type = op.getType();
  if (heldBy(type) != Held::Matrix || isBytes(type))
    return op.emitOpError() << "expects elements of 16 or 32 bits in a role of "
                               "warpgroups, got "
                            << type; // C2
  FailureOr<Registers> source = registersOf(op.getSource());
  FailureOr<Registers> otherwise = registersOf(op.getOtherwise());
  if (failed(source) || failed(otherwise))
    return failure();
  constexpr int64_t kTogether = 16;
  const size_t perGroup =
      source->size() * kTogether / static_cast<size_t>(type.getDimSize(1));
  Registers result;
  Value isBefore;
  for (size_t i = 0; i < source->size(); ++i) {
    if (i % perGroup == 0)
      isBefore =
          p_.less(p_.constant(static_cast<int64_t>(i / perGroup) * kTogether),
                  scalar(op.getEnd()));
    result.push_back(p_.select(isBefore, (*source)[i], (*otherwise)[i]));
  }
  hold(op.getResult(), std::move(result));
  return success();
}

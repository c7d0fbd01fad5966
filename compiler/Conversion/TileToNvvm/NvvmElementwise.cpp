// SPDX-License-Identifier: Apache-2.0
//
// arith and math on tiles: once for each register. exp2, log2 and, in roles,
// division use the approximate instructions (2 ulp), which is what a softmax
// needs.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::sparge;

bool NvvmEmitter::isElementwise(Operation *op) {
  return isa_and_present<arith::ArithDialect, math::MathDialect>(
             op->getDialect()) &&
         op->getNumResults() == 1 && isTile(op->getResult(0));
}

/// Its registers are there, so that its layout is settled.
bool NvvmEmitter::isKnown(Value value) const {
  return !isTile(value) || tiles_.contains(value);
}

LogicalResult NvvmEmitter::emitElementwise(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // A vector made of constants and numbers alone may be needed along rows or
  // along columns: its readers make it.
  auto tiles = llvm::make_filter_range(op->getOperands(), isTile);
  if (type.getRank() == 1 && !role_.isOneWarp() &&
      llvm::none_of(tiles, [&](Value v) { return isKnown(v); }))
    return success();
  FailureOr<Registers> registers = emitPointwise(op, heldBy(type));
  if (failed(registers))
    return failure();
  hold(op->getResult(0), std::move(*registers));
  return success();
}

FailureOr<NvvmEmitter::Registers> NvvmEmitter::emitPointwise(Operation *op,
                                                             Held held) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (type.getElementType().isF16())
    return emitPairs(op, held);
  auto isNarrow = [](Type operand) {
    auto tensor = dyn_cast<RankedTensorType>(operand);
    return tensor && (isPacked(tensor) || isBytes(tensor));
  };
  if (isNarrow(type) || llvm::any_of(op->getOperandTypes(), isNarrow))
    return op->emitOpError() << "expects 32-bit elements, got " << type;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!dense)
      return op->emitOpError() << "expects one value everywhere, got several";
    Value value =
        p_.constantLike(type.getElementType(),
                        cast<TypedAttr>(dense.getSplatValue<Attribute>()));
    return Registers(registerCount(type, held), value);
  }
  DenseMap<Value, Registers> operands;
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    if (!isTile(operand)) {
      mapping.map(operand, scalar(operand));
      continue;
    }
    FailureOr<Registers> registers = registersOf(operand, held);
    if (failed(registers))
      return failure();
    operands[operand] = std::move(*registers);
  }
  Registers registers;
  for (int64_t i = 0; i < registerCount(type, held); ++i) {
    for (auto &[operand, parts] : operands)
      mapping.map(operand, parts[i]);
    registers.push_back(emitOne(op, mapping, type.getElementType()));
  }
  return registers;
}

Value NvvmEmitter::emitOne(Operation *op, const IRMapping &operands,
                           Type type) {
  auto operand = [&](unsigned i) { return operands.lookup(op->getOperand(i)); };
  if (isa<math::Exp2Op>(op))
    return p_.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", type, operand(0));
  if (isa<math::Log2Op>(op))
    return p_.intrinsic("llvm.nvvm.lg2.approx.ftz.f", type, operand(0));
  if (isa<math::FmaOp>(op))
    return LLVM::FMAOp::create(b_, p_.location(), operand(0), operand(1),
                               operand(2));
  if (isa<arith::DivFOp>(op) && !role_.isTeam) {
    Value reciprocal =
        p_.intrinsic("llvm.nvvm.rcp.approx.ftz.f", type, operand(1));
    if (matchPattern(operand(0), m_OneFloat()))
      return reciprocal;
    return arith::MulFOp::create(b_, p_.location(), operand(0), reciprocal);
  }
  Operation *copy = b_.clone(*op, const_cast<IRMapping &>(operands));
  copy->getResult(0).setType(type);
  return copy->getResult(0);
}

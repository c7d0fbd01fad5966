// SPDX-License-Identifier: Apache-2.0
//
// Type inference and verifiers of AttentionOps.td.
#include "compiler/Dialect/Sparge/Sparge.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::sparge;

LogicalResult AttentionOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
    OpaqueProperties, RegionRange, SmallVectorImpl<Type> &inferredReturnTypes) {
  // C4
  inferredReturnTypes.push_back(CallTensorType::get(context, Role::Output));
  inferredReturnTypes.push_back(LseType::get(context));
  return success();
}

/// An operand that must have one role.
struct RoledOperand {
  StringLiteral name;
  Type type;
  Role role;
};

static LogicalResult verifyRoles(Operation *op,
                                 ArrayRef<RoledOperand> operands) {
  for (const auto &[name, type, role] : operands) {
    auto expected = CallTensorType::get(op->getContext(), role);
    if (type != expected)
      return op->emitOpError() << "expects " << name << " of type " << expected
                               << ", got " << type;
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyRoles(*this, {{"q", getQ().getType(), Role::Query},   // C1
                             {"k", getK().getType(), Role::Key},     // C2
                             {"v", getV().getType(), Role::Value}}); // C3
}

LogicalResult AttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
    OpaqueProperties, RegionRange, SmallVectorImpl<Type> &inferredReturnTypes) {
  // C7
  for (Role role : {Role::DQuery, Role::DKey, Role::DValue})
    inferredReturnTypes.push_back(CallTensorType::get(context, role));
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyRoles(*this,
                         {{"q", getQ().getType(), Role::Query},         // C1
                          {"k", getK().getType(), Role::Key},           // C2
                          {"v", getV().getType(), Role::Value},         // C3
                          {"o", getO().getType(), Role::Output},        // C4
                          {"d_o", getDO().getType(), Role::DOutput}}))) // C5
    return failure();
  if (!getLists() != !getKeyLists()) // C6
    return emitOpError() << "expects lists and key_lists together, got "
                         << (getLists() ? "lists" : "key_lists") << " alone";
  if (getKeeps() &&
      !(getKeyLists() && getKeyLists().getDefiningOp<InvertBlocksOp>())) // C8
    return emitOpError() << "expects key_lists of a sparge.invert_blocks for "
                            "what it keeps, got others or none";
  return success();
}

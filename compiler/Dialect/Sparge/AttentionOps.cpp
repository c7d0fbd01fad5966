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

LogicalResult AttentionOp::verify() {
  const struct {
    StringLiteral name;
    Type type;
    Role role;
  } operands[] = {{"q", getQ().getType(), Role::Query},  // C1
                  {"k", getK().getType(), Role::Key},    // C2
                  {"v", getV().getType(), Role::Value}}; // C3
  for (const auto &[name, type, role] : operands) {
    auto expected = CallTensorType::get(getContext(), role);
    if (type != expected)
      return emitOpError() << "expects " << name << " of type " << expected
                           << ", got " << type;
  }
  return success();
}

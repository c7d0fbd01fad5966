// SPDX-License-Identifier: Apache-2.0
//
// Type inference and verifiers of SelectionOps.td.
#include "compiler/Dialect/Sparge/SelectionChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::sparge;

LogicalResult
PoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                         ValueRange operands, DictionaryAttr attributes,
                         OpaqueProperties properties, RegionRange regions,
                         SmallVectorImpl<Type> &inferredReturnTypes) {
  Adaptor adaptor(operands, attributes, properties, regions);
  Type x = adaptor.getX().getType();
  auto type = dyn_cast<CallTensorType>(x);
  if (!type ||
      (type.getRole() != Role::Query && type.getRole() != Role::Key)) // C1
    return emitOptionalError(
        location, "expects x to be the query or the key of the call, got ", x);
  inferredReturnTypes.push_back(PooledType::get(context, type.getRole())); // C2
  return success();
}

LogicalResult BlockScoresOp::verify() {
  if (failed(verifyPooledRole(*this, "pooled_q", getPooledQ().getType(),
                              Role::Query))) // C1
    return failure();
  return verifyPooledRole(*this, "pooled_k", getPooledK().getType(),
                          Role::Key); // C2
}

LogicalResult SelectBlocksOp::verify() {
  if (failed(verifyKeepFirst(*this))) // C2
    return failure();
  return verifyHasRule(*this); // C1
}

LogicalResult ScoreAndSelectOp::verify() {
  if (failed(verifyPooledRole(*this, "pooled_q", getPooledQ().getType(),
                              Role::Query)) || // C1
      failed(verifyPooledRole(*this, "pooled_k", getPooledK().getType(),
                              Role::Key)) || // C2
      failed(verifyKeepFirst(*this)))        // C4
    return failure();
  return verifyHasRule(*this); // C3
}

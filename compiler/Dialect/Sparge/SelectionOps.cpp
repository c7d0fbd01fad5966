// SPDX-License-Identifier: Apache-2.0
//
// Type inference and verifiers of SelectionOps.td.
#include "compiler/Dialect/Sparge/Sparge.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::sparge;

namespace {

LogicalResult verifyPooledRole(Operation *op, StringRef name, Type type,
                               Role role) {
  auto expected = PooledType::get(op->getContext(), role);
  if (type != expected)
    return op->emitOpError()
           << "expects " << name << " of type " << expected << ", got " << type;
  return success();
}

/// The selection rules of select_blocks and score_and_select.
template <typename OpTy>
LogicalResult verifyHasRule(OpTy op) {
  if (!op.getTopK() && !op.getTopP() && !op.getKeepDiagonal() &&
      op.getKeepFirst() == 0)
    return op.emitOpError() << "expects top_k, top_p, keep_diagonal or "
                               "keep_first, got no selection rule";
  return success();
}

template <typename OpTy>
LogicalResult verifyKeepFirst(OpTy op) {
  // The generated accessor returns an unsigned integer.
  auto keepFirst = static_cast<int64_t>(op.getKeepFirst());
  if (keepFirst < 0)
    return op.emitOpError() << "expects keep_first >= 0, got " << keepFirst;
  return success();
}

} // namespace

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

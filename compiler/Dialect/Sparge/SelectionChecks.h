// SPDX-License-Identifier: Apache-2.0
//
// Checks that the verifiers of several selection ops share.
#pragma once

#include "compiler/Dialect/Sparge/Sparge.h"

namespace mlir::sparge {

inline LogicalResult verifyPooledRole(Operation *op, StringRef name, Type type,
                                      Role role) {
  auto expected = PooledType::get(op->getContext(), role);
  if (type != expected)
    return op->emitOpError()
           << "expects " << name << " of type " << expected << ", got " << type;
  return success();
}

/// There is a selection rule.
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

} // namespace mlir::sparge

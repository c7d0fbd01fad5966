// SPDX-License-Identifier: Apache-2.0
//
// How a warp of a team holds a tensor of rank 1.
#pragma once

#include "llvm/Support/MathExtras.h"

#include <cstdint>

namespace mlir::sparge {

/// How the elements of a Row lie.
struct RowPlace {
  int64_t size, perLane, groups;
  explicit RowPlace(int64_t n)
      : size(n), perLane(n <= 32   ? 1
                         : n <= 64 ? 2
                                   : 4),
        groups(llvm::divideCeil(n, 32 * perLane)) {}
  int64_t registers() const { return groups * perLane; }
  bool isWhole() const { return size == groups * 32 * perLane; }
};

} // namespace mlir::sparge

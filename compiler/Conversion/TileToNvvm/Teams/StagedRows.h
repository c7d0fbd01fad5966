// SPDX-License-Identifier: Apache-2.0
//
// Rows of a team in shared memory, as operands of the tensor core.
#pragma once

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Value.h"

#include <cstdint>

namespace mlir::sparge {

/// In tiles of 16 rows: for each step 16 bytes of each lane, the high parts of
/// row r, of row r + 8, of row r and of row r + 8, then the low ones; then the
/// factors that undo the rows' scaling, and an mbarrier.
struct StagedRows {
  int64_t rows = 0, columns = 0;
  Value address;
  int64_t steps() const {
    return static_cast<int64_t>(llvm::divideCeil(columns, 16));
  }
  int64_t tiles() const {
    return static_cast<int64_t>(llvm::divideCeil(rows, 16));
  }
  int64_t tileBytes() const { return steps() * 1024; }
  int64_t factorBytes() const { return tiles() * tileBytes(); }
  int64_t barrierBytes() const { return factorBytes() + rows * 4; }
  int64_t bytes() const { return barrierBytes() + 8; }
};

/// A row of which a lane has products: its factor, and where its owner's scores
/// and barrier are.
struct SpreadRow {
  Value factor, scores, barrier;
};

} // namespace mlir::sparge

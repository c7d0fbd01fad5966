// SPDX-License-Identifier: Apache-2.0
//
// A warp's 16 rows of a matrix from registers to shared memory.
#pragma once

#include "compiler/Conversion/TileToNvvm/PtxBuilder.h"
#include "compiler/Conversion/TileToNvvm/SharedPlan.h"

namespace mlir::sparge {

/// Writes what the warp holds (Held::Matrix in NvvmEmitter.h, 16-bit elements)
/// to the rows from `firstRow` on of swizzled panels at `address`. Neither the
/// TMA nor the tensor core sees it yet.
void storeMatrix(PtxBuilder &p, const SharedMatrix &matrix,
                 ArrayRef<Value> value, Value address, Value firstRow,
                 Value lane);

} // namespace mlir::sparge

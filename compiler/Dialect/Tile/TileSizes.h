// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a tile that may still be symbolic, so that verifiers hold before and
// after specialisation.
#pragma once

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/SmallVector.h"

#include <string>

namespace mlir::tile {

/// One attribute a dimension: StringAttr for a symbolic size, an i64
/// IntegerAttr for a fixed one. Equal attributes mean equal sizes.
SmallVector<Attribute> getSizes(RankedTensorType type);

/// "tile_q x 64", for messages.
std::string printSizes(ArrayRef<Attribute> sizes);

} // namespace mlir::tile

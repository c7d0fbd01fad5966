// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a tile that may still be symbolic, so that verifiers hold before and
// after specialisation.
#pragma once

#include "compiler/Dialect/Tile/TileDialect.h"

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace mlir::tile {

/// One attribute a dimension: StringAttr for a symbolic size, an i64
/// IntegerAttr for a fixed one. Equal attributes mean equal sizes.
SmallVector<Attribute> getSizes(RankedTensorType type);

/// "tile_q x 64", for messages.
std::string printSizes(ArrayRef<Attribute> sizes);

/// Text of one size: a symbolic one is a bare word, a fixed one an integer.
FailureOr<Attribute> parseSizeEntry(AsmParser &parser);
void printSizeEntry(AsmPrinter &printer, Attribute size);

/// The size as a number, if it is fixed.
std::optional<int64_t> getFixed(Attribute size);
/// The same for a `#tile.sizes` of one entry.
std::optional<int64_t> getFixed(SizesAttr size);

} // namespace mlir::tile

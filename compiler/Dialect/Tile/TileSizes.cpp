// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a tile, symbolic or fixed.
#include "compiler/Dialect/Tile/TileSizes.h"

#include "compiler/Dialect/Tile/TileDialect.h"

#include "llvm/Support/raw_ostream.h"

namespace mlir::tile {

SmallVector<Attribute> getSizes(RankedTensorType type) {
  if (auto symbolic = dyn_cast_if_present<SizesAttr>(type.getEncoding()))
    return llvm::to_vector(symbolic.getSizes());
  Builder builder(type.getContext());
  SmallVector<Attribute> sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getI64IntegerAttr(size));
  return sizes;
}

std::string printSizes(ArrayRef<Attribute> sizes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      sizes, stream,
      [&](Attribute size) {
        if (auto name = dyn_cast<StringAttr>(size))
          stream << name.getValue();
        else
          stream << cast<IntegerAttr>(size).getInt();
      },
      " x ");
  return text;
}

FailureOr<Attribute> parseSizeEntry(AsmParser &parser) {
  int64_t fixed = 0;
  OptionalParseResult integer = parser.parseOptionalInteger(fixed);
  if (integer.has_value()) {
    if (failed(*integer))
      return failure();
    return Attribute(parser.getBuilder().getI64IntegerAttr(fixed));
  }
  StringRef word;
  if (failed(parser.parseKeyword(&word)))
    return failure();
  return Attribute(parser.getBuilder().getStringAttr(word));
}

void printSizeEntry(AsmPrinter &printer, Attribute size) {
  if (auto name = dyn_cast<StringAttr>(size))
    printer << name.getValue();
  else
    printer << cast<IntegerAttr>(size).getInt();
}

std::optional<int64_t> getFixed(Attribute size) {
  auto fixed = dyn_cast<IntegerAttr>(size);
  return fixed ? std::optional(fixed.getInt()) : std::nullopt;
}

std::optional<int64_t> getFixed(SizesAttr size) {
  return getFixed(size.getSizes().front());
}

} // namespace mlir::tile

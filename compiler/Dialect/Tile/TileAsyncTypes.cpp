// SPDX-License-Identifier: Apache-2.0
//
// Text forms and invariants of the types of hand-scheduled kernels.
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::tile;

/// Appends one size to `sizes`.
static ParseResult parseInto(AsmParser &parser, SmallVector<Attribute> &sizes) {
  FailureOr<Attribute> size = parseSizeEntry(parser);
  if (failed(size))
    return failure();
  sizes.push_back(*size);
  return success();
}

ParseResult mlir::tile::parseSize(OpAsmParser &parser, SizesAttr &size) {
  SmallVector<Attribute> entries;
  if (parseInto(parser, entries))
    return failure();
  size = SizesAttr::get(parser.getContext(), entries);
  return success();
}

void mlir::tile::printSize(OpAsmPrinter &printer, Operation *, SizesAttr size) {
  printSizeEntry(printer, size.getSizes().front());
}

ParseResult mlir::tile::parseSizeList(OpAsmParser &parser, SizesAttr &sizes) {
  SmallVector<Attribute> entries;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseInto(parser, entries);
      }))
    return failure();
  sizes = SizesAttr::get(parser.getContext(), entries);
  return success();
}

void mlir::tile::printSizeList(OpAsmPrinter &printer, Operation *,
                               SizesAttr sizes) {
  printer << "[";
  llvm::interleaveComma(sizes.getSizes(), printer,
                        [&](Attribute size) { printSizeEntry(printer, size); });
  printer << "]";
}

/// `<` (size `x`)+ type (`,` `swizzle` size)? `>`
Type SharedType::parse(AsmParser &parser) {
  SmallVector<Attribute> sizes, swizzle;
  Type element;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  while (true) {
    OptionalParseResult type = parser.parseOptionalType(element);
    if (type.has_value()) {
      if (failed(*type))
        return {};
      break;
    }
    if (parseInto(parser, sizes) || parser.parseKeyword("x"))
      return {};
  }
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("swizzle") || parseInto(parser, swizzle)))
    return {};
  if (parser.parseGreater())
    return {};
  MLIRContext *context = parser.getContext();
  return parser.getChecked<SharedType>(
      location, context, SizesAttr::get(context, sizes), element,
      swizzle.empty() ? SizesAttr() : SizesAttr::get(context, swizzle));
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  for (Attribute size : getSizes().getSizes()) {
    printSizeEntry(printer, size);
    printer << " x ";
  }
  printer << getElementType();
  if (getSwizzle()) {
    printer << ", swizzle ";
    printSizeEntry(printer, getSwizzle().getSizes().front());
  }
  printer << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 SizesAttr sizes, Type, SizesAttr swizzle) {
  size_t rank = sizes.getSizes().size();
  if (!(rank == 1 && !swizzle) && !(rank == 2 && swizzle)) // C1
    return emitError() << "expects rank 1 without a swizzle or rank 2 with "
                          "one, got rank "
                       << rank << (swizzle ? " with" : " without") << " one";
  if (swizzle)
    if (std::optional<int64_t> bytes = getFixed(swizzle);
        bytes && !llvm::is_contained({16, 32, 64, 128}, *bytes)) // C2
      return emitError() << "expects a swizzle of 16, 32, 64 or 128 bytes, got "
                         << *bytes;
  for (auto [dimension, size] : llvm::enumerate(sizes.getSizes())) { // C3
    std::optional<int64_t> fixed = getFixed(size);
    bool isRows = rank == 2 && dimension == 0;
    if (fixed && (*fixed <= 0 || (isRows && *fixed % 8 != 0)))
      return emitError()
             << "expects positive sizes and a matrix's rows to be a "
                "multiple of 8, got "
             << printSizes(sizes.getSizes());
  }
  return success();
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<Type> pieces) {
  if (pieces.empty() || !llvm::all_of(pieces, llvm::IsaPred<SharedType>)) // C1
    return emitError() << "expects one or more !tile.shared, got "
                       << (pieces.empty() ? "none" : "another type");
  return success();
}

LogicalResult
TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t rank, SharedType box) {
  size_t boxRank = box.getSizes().getSizes().size();
  if (rank < 2 || rank > 5 || boxRank != 2) // C1
    return emitError() << "expects a rank from 2 to 5 and a box of rank 2, got "
                       << rank << " and " << boxRank;
  std::optional<int64_t> rows = getFixed(box.getSizes().getSizes()[0]);
  std::optional<int64_t> columns = getFixed(box.getSizes().getSizes()[1]);
  if (box.getSwizzle() && getFixed(box.getSwizzle()) == 16) {
    if (rows && columns && *rows / 8 * (*columns / 16) > 256) // C2
      return emitError() << "expects a box of at most 256 core matrices, got "
                         << *rows / 8 * (*columns / 16);
  } else if (rows && *rows > 256) { // C2
    return emitError() << "expects a box of at most 256 rows, got " << *rows;
  }
  return success();
}

LogicalResult PendingType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  RankedTensorType tensor) {
  Type element = tensor.getElementType();
  if (tensor.getRank() != 2 ||
      !(element.isF32() || element.isF16() || isa<ElementType>(element))) // C1
    return emitError() << "expects a tensor of rank 2 and f32 or f16, got "
                       << tensor;
  return success();
}

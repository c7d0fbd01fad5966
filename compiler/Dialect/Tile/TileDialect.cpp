// SPDX-License-Identifier: Apache-2.0
//
// Registration, types and attributes of the tile dialect.
#include "compiler/Dialect/Tile/TileDialect.h"

#include "compiler/Dialect/Tile/TileSizes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::tile;

#include "compiler/Dialect/Tile/TileDialectDialect.cpp.inc"
#include "compiler/Dialect/Tile/TileTypesEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/Dialect/Tile/TileTypesAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/Dialect/Tile/TileTypesTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/Dialect/Tile/TileOps.cpp.inc"
      >();
}

Attribute SizesAttr::parse(AsmParser &parser, Type) {
  SmallVector<Attribute> sizes;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<Attribute> size = parseSizeEntry(parser);
    if (failed(size))
      return failure();
    sizes.push_back(*size);
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                            parseOne)))
    return {};
  return SizesAttr::get(parser.getContext(), sizes);
}

void SizesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getSizes(), printer,
                        [&](Attribute size) { printSizeEntry(printer, size); });
  printer << ">";
}

LogicalResult
SizesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getSizes().size())
    return emitError() << "expects one symbolic size a dimension, got "
                       << getSizes().size() << " for rank " << shape.size();
  if (llvm::any_of(shape, ShapedType::isStatic))
    return emitError() << "expects every size of a tensor with symbolic sizes "
                          "to be ?";
  return success();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || llvm::any_of(shape, ShapedType::isDynamic))
    return emitError() << "expects a layout on a tensor of two fixed sizes";
  return success();
}

static LogicalResult verifyRank(function_ref<InFlightDiagnostic()> emitError,
                                int64_t rank, int64_t most) {
  if (rank < 1 || rank > most)
    return emitError() << "expects a rank from 1 to " << most << ", got "
                       << rank;
  return success();
}

LogicalResult GlobalType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t rank, Type) {
  return verifyRank(emitError, rank, 4);
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t rank, Type) {
  return verifyRank(emitError, rank, 2);
}

Type ScratchType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<Attribute> rows = parseSizeEntry(parser);
  Type element;
  if (failed(rows) || parser.parseComma() || parser.parseType(element) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ScratchType>(parser.getContext(), *rows, element);
}

void ScratchType::print(AsmPrinter &printer) const {
  printer << "<";
  printSizeEntry(printer, getRows());
  printer << ", " << getElementType() << ">";
}

LogicalResult ScratchType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  Attribute rows, Type element) {
  auto fixed = dyn_cast<IntegerAttr>(rows);
  if (fixed && fixed.getInt() <= 0)
    return emitError() << "expects a positive number of rows, got "
                       << fixed.getInt();
  if (!element.isIntOrFloat())
    return emitError() << "expects an integer or float element type, got "
                       << element;
  return success();
}

#define GET_OP_CLASSES
#include "compiler/Dialect/Tile/TileOps.cpp.inc"

// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileNarrow.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult LowBitsOp::verify() {
  RankedTensorType source = tensorType(getSource()), result = getType();
  if (source.getRank() != 2 || getSizes(source) != getSizes(result)) // C1
    return emitOpError() << "expects source and result of rank 2 and the same "
                            "sizes, got "
                         << source << " and " << result;
  if (!isa<Float8E4M3FNType>(result.getElementType())) // C2
    return emitOpError() << "expects a result of f8E4M3FN, got "
                         << result.getElementType();
  return success();
}

LogicalResult ColumnsOp::verify() {
  RankedTensorType source = tensorType(getSource()), result = getType();
  if (source.getRank() != 2 || result.getRank() != 2 ||
      source.getElementType() != result.getElementType() ||
      getSizes(source)[0] != getSizes(result)[0]) // C1
    return emitOpError() << "expects rank 2 and the source's rows and "
                            "elements, got "
                         << source << " to " << result;
  std::optional<int64_t> first = getFixed(getFirst());
  std::optional<int64_t> columns = getFixed(getSizes(result)[1]);
  std::optional<int64_t> all = getFixed(getSizes(source)[1]);
  bool fits = (!first || *first % 8 == 0) && (!columns || *columns % 8 == 0) &&
              (!first || !columns || !all || *first + *columns <= *all);
  if (!fits) // C2
    return emitOpError() << "expects multiples of 8 columns inside the source, "
                            "got "
                         << printSizes(getSizes(result)[1]) << " from "
                         << printSizes(getFirst().getSizes()) << " of "
                         << printSizes(getSizes(source)[1]);
  return success();
}

LogicalResult FirstColumnsOp::verify() {
  RankedTensorType type = getType();
  std::optional<int64_t> columns =
      type.getRank() == 2 ? getFixed(getSizes(type)[1]) : 1;
  if (columns && *columns % 16 != 0) // C1
    return emitOpError() << "expects rank 2 and a multiple of 16 columns, got "
                         << type;
  return success();
}

/// Of tile.load_columns and tile.load_rows.
static LogicalResult verifyVectorLoad(Operation *op, ViewType view,
                                      RankedTensorType result) {
  if (view.getRank() != 1 || result.getRank() != 1 ||
      view.getElementType() != result.getElementType() ||
      !view.getElementType().isIntOrFloat() ||
      view.getElementType().getIntOrFloatBitWidth() != 32) // C1
    return op->emitOpError() << "expects a rank-1 view and tensor of the same "
                                "32-bit elements, got "
                             << view << " and " << result;
  return verifyInWarpgroupRole(op); // C2
}

LogicalResult LoadColumnsOp::verify() {
  return verifyVectorLoad(*this, getView().getType(), getType());
}

LogicalResult LoadRowsOp::verify() {
  return verifyVectorLoad(*this, getView().getType(), getType());
}

/// A view of rank 2 of 16-bit floats, which a parameter may still name.
static bool isWideView(ViewType view) {
  Type element = view.getElementType();
  return view.getRank() == 2 &&
         (isa<ElementType>(element) || element.isBF16() || element.isF16());
}

static bool isChannelVector(RankedTensorType type) {
  if (type.getRank() != 1 || !type.getElementType().isF32())
    return false;
  std::optional<int64_t> size = getFixed(getSizes(type)[0]);
  return !size || (*size % 8 == 0 && *size <= 256);
}

static LogicalResult verifyNarrowing(Operation *op, ViewType view,
                                     ViewType narrow) {
  if (!isWideView(view) || narrow.getRank() != 2 ||
      !isa<Float8E4M3FNType>(narrow.getElementType()))
    return op->emitOpError()
           << "expects views of rank 2, of bf16 or f16 and of f8E4M3FN, got "
           << view << " and " << narrow;
  return success();
}

LogicalResult PeakRowsOp::verify() {
  if (!isWideView(getView().getType())) // C1
    return emitOpError() << "expects a view of rank 2 and bf16 or f16, got "
                         << getView().getType();
  if (!isChannelVector(tensorType(getResult()))) // C2
    return emitOpError()
           << "expects a rank-1 tensor of f32 and a multiple of 8 "
              "elements up to 256, got "
           << getResult().getType();
  if (getSum() && getSum().getType() != getResult().getType()) // C3
    return emitOpError() << "expects a sum of the same type, got "
                         << getSum().getType() << " beside "
                         << getResult().getType();
  return success();
}

LogicalResult ScaleRowsOp::verify() {
  if (failed(verifyNarrowing(*this, getView().getType(),
                             getInto().getType()))) // C1
    return failure();
  std::optional<int64_t> columns = getFixed(getColumns());
  if (columns && (*columns <= 0 || *columns % 8 != 0 || *columns > 256)) // C2
    return emitOpError() << "expects a multiple of 8 columns up to 256, got "
                         << *columns;
  if (!getSum())
    return success();
  auto sum = tensorType(getSum());
  if (sum.getRank() != 1 || !sum.getElementType().isF32() ||
      getSizes(sum)[0] != getColumns().getSizes().front()) // C3
    return emitOpError() << "expects a sum of f32, one a column, got " << sum;
  return success();
}

LogicalResult ScaleCoresOp::verify() {
  if (failed(verifyNarrowing(*this, getView().getType(),
                             getImage().getType()))) // C1
    return failure();
  if (!isChannelVector(tensorType(getFactors()))) // C2
    return emitOpError()
           << "expects factors of f32, a multiple of 8 up to 256, "
              "got "
           << getFactors().getType();
  return success();
}

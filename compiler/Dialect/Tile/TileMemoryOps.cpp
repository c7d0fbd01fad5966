// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileMemoryOps.td.
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A rank-1 view of i32.
static LogicalResult verifyList(Operation *op, ViewType list) {
  if (list.getRank() != 1 || !list.getElementType().isInteger(32))
    return op->emitOpError()
           << "expects the list to be a rank-1 view of i32, got " << list;
  return success();
}

LogicalResult SliceOp::verify() {
  GlobalType source = getSource().getType();
  ViewType result = getResult().getType();
  int64_t indices = static_cast<int64_t>(getIndices().size());
  if (source.getRank() != indices + result.getRank()) // C1
    return emitOpError()
           << "expects rank(source) = indices + rank(result), got "
           << source.getRank() << " and " << indices << " + "
           << result.getRank();
  if (source.getElementType() != result.getElementType()) // C2
    return emitOpError() << "expects the source's element type "
                         << source.getElementType() << ", got "
                         << result.getElementType();
  return success();
}

/// Shared by load and gather: rank-2 view into a rank-2 tile.
static LogicalResult verifyMatrixRead(Operation *op, ViewType view,
                                      RankedTensorType result) {
  if (view.getRank() != 2)
    return op->emitOpError() << "expects a view of rank 2, got " << view;
  if (result.getRank() != 2)
    return op->emitOpError() << "expects a result of rank 2, got " << result;
  return success();
}

LogicalResult LoadOp::verify() {
  ViewType view = getView().getType();
  RankedTensorType result = tensorType(getResult());
  if (failed(verifyMatrixRead(*this, view, result))) // C1, C2
    return failure();
  if (result.getElementType() != view.getElementType() &&
      !result.getElementType().isF32()) // C3
    return emitOpError() << "expects elements of f32 or of the view's type "
                         << view.getElementType() << ", got "
                         << result.getElementType();
  return success();
}

LogicalResult LoadScalarOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 1 || view.getElementType() != getType()) // C1
    return emitOpError() << "expects a rank-1 view of " << getType() << ", got "
                         << view;
  return success();
}

LogicalResult LoadValuesOp::verify() {
  ViewType view = getView().getType();
  Type element = view.getElementType();
  const bool isNarrow =
      isa<ElementType>(element) || element.isBF16() || element.isF16();
  if (view.getRank() != 1 ||
      !(isNarrow || (element.isIntOrFloat() &&
                     element.getIntOrFloatBitWidth() == 32))) // C1
    return emitOpError() << "expects a rank-1 view of 32-bit elements, bf16 or "
                            "f16, got "
                         << view;
  Type loaded = isNarrow ? Float32Type::get(getContext()) : element;
  RankedTensorType result = tensorType(getResult());
  if (result.getRank() != 1 || result.getElementType() != loaded ||
      getOtherwise().getType() != loaded) // C2
    return emitOpError() << "expects a rank-1 tensor and a scalar of " << loaded
                         << ", got " << result << " and "
                         << getOtherwise().getType();
  return success();
}

LogicalResult StoreOp::verify() {
  ViewType view = getView().getType();
  if (static_cast<int64_t>(getOffsets().size()) != view.getRank()) // C1
    return emitOpError() << "expects " << view.getRank()
                         << " offsets, one a dimension of the view, got "
                         << getOffsets().size();
  int64_t rank = tensorType(getValue()).getRank();
  if (rank < 1 || rank > view.getRank()) // C2
    return emitOpError() << "expects a value of rank 1 to " << view.getRank()
                         << ", got " << rank;
  if (getBelow() && rank != 2) // C3
    return emitOpError() << "expects a value of rank 2 with a last row, got "
                         << rank;
  return success();
}

LogicalResult GatherOp::verify() {
  if (failed(verifyList(*this, getList().getType()))) // C1
    return failure();
  return verifyMatrixRead(*this, getView().getType(),
                          tensorType(getResult())); // C1, C2
}

/// A rank-1 tensor of i32.
static LogicalResult verifyIndexVector(Operation *op, StringRef what,
                                       RankedTensorType type) {
  if (type.getRank() != 1 || !type.getElementType().isInteger(32))
    return op->emitOpError() << "expects " << what
                             << " to be a rank-1 tensor of i32, got " << type;
  return success();
}

LogicalResult GatherPositionsOp::verify() {
  if (failed(verifyList(*this, getList().getType()))) // C1
    return failure();
  return verifyIndexVector(*this, "the result", tensorType(getResult())); // C2
}

/// A rank-2 view of i32.
static LogicalResult verifyListMatrix(Operation *op, ViewType view) {
  if (view.getRank() != 2 || !view.getElementType().isInteger(32))
    return op->emitOpError()
           << "expects the lists to be a rank-2 view of i32, got " << view;
  return success();
}

LogicalResult AppendIndicesOp::verify() {
  RankedTensorType keep = tensorType(getKeep());
  RankedTensorType counts = tensorType(getCounts());
  if (keep.getRank() != 2 || !keep.getElementType().isInteger(1)) // C1
    return emitOpError() << "expects keep to be a rank-2 tensor of i1, got "
                         << keep;
  if (failed(verifyIndexVector(*this, "counts", counts))) // C1
    return failure();
  if (getSizes(keep)[0] != getSizes(counts)[0]) // C1
    return emitOpError() << "expects as many counts as keep has rows, got "
                         << printSizes(getSizes(counts)) << " for "
                         << printSizes(getSizes(keep));
  if (getResult().getType() != counts) // C1
    return emitOpError() << "expects a result of the counts' type, got "
                         << getResult().getType();
  return verifyListMatrix(*this, getView().getType()); // C2
}

LogicalResult FillTailOp::verify() {
  if (failed(verifyIndexVector(*this, "counts", tensorType(getCounts())))) // C1
    return failure();
  return verifyListMatrix(*this, getView().getType()); // C1
}

LogicalResult ScratchOp::verify() {
  Operation *columns = getColumns().getDefiningOp();
  if (!isa_and_present<DimOp, arith::ConstantOp>(columns)) // C1
    return emitOpError() << "expects its columns to be a tile.dim or a "
                            "constant, got another value";
  Operation *multiple = getMultiple().getDefiningOp();
  if (!isa_and_present<ParameterOp, arith::ConstantOp>(multiple)) // C2
    return emitOpError() << "expects its multiple to be a tile.parameter or a "
                            "constant, got another value";
  return success();
}

static LogicalResult verifyScratchAccess(Operation *op, ScratchType scratch,
                                         RankedTensorType tile) {
  if (tile.getRank() != 2 || getSizes(tile)[0] != scratch.getRows() ||
      tile.getElementType() != scratch.getElementType()) // C1
    return op->emitOpError() << "expects a tile with the rows and elements of "
                             << scratch << ", got " << tile;
  return success();
}

LogicalResult ScratchLoadOp::verify() {
  return verifyScratchAccess(*this, getScratch().getType(),
                             tensorType(getResult()));
}

LogicalResult ScratchStoreOp::verify() {
  return verifyScratchAccess(*this, getScratch().getType(),
                             tensorType(getValue()));
}

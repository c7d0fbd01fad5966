// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileRows.td.
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult SumRowsOp::verify() {
  ViewType view = getView().getType();
  Type element = view.getElementType();
  if (view.getRank() != 2 ||
      !(isa<ElementType>(element) || element.isBF16() || element.isF16())) // C1
    return emitOpError() << "expects a view of rank 2 and bf16 or f16, got "
                         << view;
  RankedTensorType result = tensorType(getResult());
  if (result.getRank() != 1 || !result.getElementType().isF32()) // C2
    return emitOpError() << "expects a rank-1 tensor of f32, got " << result;
  std::optional<int64_t> size = getFixed(getSizes(result)[0]);
  if (size && (*size % 8 != 0 || *size > 256)) // C2
    return emitOpError() << "expects a multiple of 8 elements up to 256, got "
                         << *size;
  if (std::optional<int64_t> loads = getFixed(getLoads());
      loads && (*loads < 1 || *loads > 32)) // C3
    return emitOpError() << "expects 1 to 32 loads, got " << *loads;
  return success();
}

LogicalResult PrefetchRowsOp::verify() {
  if (getView().getType().getRank() != 2) // C1
    return emitOpError() << "expects a view of rank 2, got "
                         << getView().getType();
  if (std::optional<int64_t> count = getFixed(getCount());
      count && (*count < 1 || *count % 32 != 0)) // C2
    return emitOpError() << "expects a multiple of 32 rows, got " << *count;
  if (std::optional<int64_t> columns = getFixed(getColumns());
      columns && *columns < 1) // C2
    return emitOpError() << "expects at least one column, got " << *columns;
  return success();
}

LogicalResult RowDotsOp::verify() {
  ViewType a = getA().getType();
  Type element = a.getElementType();
  if (a != getB().getType() || a.getRank() != 2 ||
      !(isa<ElementType>(element) || element.isBF16() || element.isF16())) // C1
    return emitOpError() << "expects two views of rank 2 and bf16 or f16, got "
                         << a << " and " << getB().getType();
  RankedTensorType result = tensorType(getResult());
  if (result.getRank() != 1 || !result.getElementType().isF32() ||
      getFixed(getSizes(result)[0]) != 32) // C2
    return emitOpError() << "expects a rank-1 tensor of 32 f32, got " << result;
  std::optional<int64_t> columns = getFixed(getColumns());
  if (columns && (*columns <= 0 || *columns % 8 != 0 || *columns > 256)) // C3
    return emitOpError() << "expects a multiple of 8 columns up to 256, got "
                         << *columns;
  return success();
}

LogicalResult LoadRunOp::verify() {
  ViewType view = getView().getType();
  Type element = view.getElementType();
  if (view.getRank() != 1 ||
      !(element.isInteger(8) || element.isInteger(32))) // C1
    return emitOpError() << "expects a view of rank 1 and i8 or i32, got "
                         << view;
  RankedTensorType result = tensorType(getResult());
  if (result.getRank() != 1 || !result.getElementType().isInteger(32)) // C2
    return emitOpError() << "expects a rank-1 tensor of i32, got " << result;
  return success();
}

LogicalResult TotalOp::verify() {
  RankedTensorType source = tensorType(getSource());
  Type element = source.getElementType();
  if (source.getRank() != 1 ||
      !(element.isInteger(32) || element.isF32() || element.isF64()) ||
      getResult().getType() != element) // C1
    return emitOpError() << "expects a rank-1 tensor of i32, f32 or f64 and "
                            "one of its elements, got "
                         << source << " and " << getResult().getType();
  return success();
}

LogicalResult AddProductsOp::verify() {
  RankedTensorType a = tensorType(getA()), b = tensorType(getB());
  if (a.getRank() != 1 || !a.getElementType().isF32() || b.getRank() != 1 ||
      !b.getElementType().isF32() || getSizes(a) != getSizes(b)) // C1
    return emitOpError()
           << "expects two rank-1 tensors of f32 of one size, got " << a
           << " and " << b;
  RankedTensorType sums = tensorType(getSums());
  if (sums.getRank() != 1 || !sums.getElementType().isF32() ||
      getFixed(getSizes(sums)[0]) != 32 || getResult().getType() != sums) // C2
    return emitOpError() << "expects sums and a result of 32 f32, got " << sums
                         << " and " << getResult().getType();
  return success();
}

LogicalResult PickOp::verify() {
  RankedTensorType source = tensorType(getSource());
  Type element = source.getElementType();
  std::optional<int64_t> size = getFixed(getSizes(source)[0]);
  if (source.getRank() != 1 || (size && *size > 32) ||
      !(element.isInteger(32) || element.isF32()) ||
      getResult().getType() != element) // C1
    return emitOpError() << "expects a rank-1 tensor of at most 32 i32 or f32 "
                            "and one of its elements, got "
                         << source << " and " << getResult().getType();
  return success();
}

LogicalResult SumUpToOp::verify() {
  RankedTensorType source = tensorType(getSource());
  std::optional<int64_t> size = getFixed(getSizes(source)[0]);
  if (source.getRank() != 1 || (size && *size > 32) ||
      !source.getElementType().isInteger(32) || getType() != source) // C1
    return emitOpError() << "expects a rank-1 tensor of at most 32 i32 and its "
                            "like, got "
                         << source << " and " << getType();
  return success();
}

LogicalResult RankOp::verify() {
  RankedTensorType source = tensorType(getSource());
  RankedTensorType result = tensorType(getResult());
  if (source.getRank() != 1 || !source.getElementType().isInteger(1) ||
      result.getRank() != 1 || !result.getElementType().isInteger(32) ||
      getSizes(source) != getSizes(result)) // C1
    return emitOpError() << "expects a rank-1 tensor of i1 and one of i32 of "
                            "its size, got "
                         << source << " and " << result;
  return success();
}

/// C1 and C2 of scatter and row_scatter.
static LogicalResult verifyScatter(Operation *op, Type element,
                                   RankedTensorType values,
                                   RankedTensorType positions,
                                   RankedTensorType where) {
  if (values.getElementType() != element ||
      values.getElementTypeBitWidth() != 32) // C1
    return op->emitOpError() << "expects values of the 32-bit elements "
                             << element << ", got " << values;
  if (values.getRank() != 1 || positions.getRank() != 1 ||
      where.getRank() != 1 || !positions.getElementType().isInteger(32) ||
      !where.getElementType().isInteger(1) ||
      getSizes(positions) != getSizes(values) ||
      getSizes(where) != getSizes(values)) // C2
    return op->emitOpError() << "expects positions of i32 and a mask of i1 of "
                                "the values' size, got "
                             << positions << " and " << where;
  return success();
}

LogicalResult ScatterOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 1) // C1
    return emitOpError() << "expects a view of rank 1, got " << view;
  return verifyScatter(*this, view.getElementType(), tensorType(getValues()),
                       tensorType(getPositions()), tensorType(getWhere()));
}

LogicalResult ScatterAtOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 2) // C1
    return emitOpError() << "expects a view of rank 2, got " << view;
  for (Value positions : {getRows(), getColumns()}) // C1, C2
    if (failed(verifyScatter(*this, view.getElementType(),
                             tensorType(getValues()), tensorType(positions),
                             tensorType(getWhere()))))
      return failure();
  return success();
}

LogicalResult RowScatterOp::verify() {
  return verifyScatter(*this, getScratch().getType().getElementType(),
                       tensorType(getValues()), tensorType(getPositions()),
                       tensorType(getWhere()));
}

LogicalResult RowGatherOp::verify() {
  RankedTensorType result = tensorType(getResult());
  RankedTensorType positions = tensorType(getPositions());
  if (result.getRank() != 1 || result.getElementTypeBitWidth() != 32 ||
      result.getElementType() != getScratch().getType().getElementType()) // C1
    return emitOpError() << "expects a rank-1 tensor of 32-bit elements like "
                            "those of "
                         << getScratch().getType() << ", got " << result;
  if (positions.getRank() != 1 || !positions.getElementType().isInteger(32) ||
      getSizes(positions) != getSizes(result)) // C2
    return emitOpError()
           << "expects positions of i32 of the result's size, got "
           << positions;
  return success();
}

/// C1 of the ops on flags.
static LogicalResult verifyFlags(Operation *op, ScratchType scratch) {
  if (!scratch.getElementType().isInteger(1))
    return op->emitOpError() << "expects scratch of i1, got " << scratch;
  return success();
}

LogicalResult SetTrueOp::verify() {
  if (failed(verifyFlags(*this, getScratch().getType()))) // C1
    return failure();
  RankedTensorType positions = tensorType(getPositions());
  RankedTensorType where = tensorType(getWhere());
  if (positions.getRank() != 1 || where.getRank() != 1 ||
      !positions.getElementType().isInteger(32) ||
      !where.getElementType().isInteger(1) ||
      getSizes(where) != getSizes(positions)) // C2
    return emitOpError()
           << "expects positions of i32 and a mask of i1 of their "
              "size, got "
           << positions << " and " << where;
  return success();
}

LogicalResult SetRunTrueOp::verify() {
  return verifyFlags(*this, getScratch().getType()); // C1
}

LogicalResult ListTrueOp::verify() {
  if (failed(verifyFlags(*this, getScratch().getType()))) // C1
    return failure();
  ViewType view = getView().getType();
  if (view.getRank() != 1 || !view.getElementType().isInteger(32)) // C2
    return emitOpError() << "expects a view of rank 1 and i32, got " << view;
  return success();
}

LogicalResult RowListTrueOp::verify() {
  if (failed(verifyFlags(*this, getScratch().getType()))) // C1
    return failure();
  if (!getTarget().getType().getElementType().isInteger(32)) // C2
    return emitOpError() << "expects a target of i32, got "
                         << getTarget().getType();
  return success();
}

/// C1 of fill_rest and store_scalar.
static LogicalResult verifyScalarStore(Operation *op, Type value,
                                       ViewType view) {
  if (view.getRank() != 1 || view.getElementType() != value ||
      !value.isIntOrFloat() || value.getIntOrFloatBitWidth() != 32)
    return op->emitOpError() << "expects a value and a rank-1 view of 32-bit "
                                "elements of its type, got "
                             << value << " and " << view;
  return success();
}

LogicalResult FillRestOp::verify() {
  return verifyScalarStore(*this, getValue().getType(), getView().getType());
}

LogicalResult StoreScalarOp::verify() {
  return verifyScalarStore(*this, getValue().getType(), getView().getType());
}

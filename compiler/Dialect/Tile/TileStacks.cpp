// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileStacks.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

static LogicalResult verifyRun(Operation *op, ViewType view, Type element) {
  if (view.getRank() != 1 || view.getElementType() != element)
    return op->emitOpError()
           << "expects a view of rank 1 and " << element << ", got " << view;
  return success();
}

LogicalResult StoreStackedOp::verify() {
  RankedTensorType value = getValue().getType();
  if (failed(verifyRun(*this, getView().getType(),
                       value.getElementType()))) // C1
    return failure();
  if (value.getRank() != 2) // C2
    return emitOpError() << "expects a value of rank 2, got " << value;
  std::optional<int64_t> own = getFixed(getSizes(value)[1]);
  std::optional<int64_t> all = getFixed(getColumns());
  std::optional<int64_t> rows = getFixed(getRows());
  if ((own && *own % 16 != 0) || (own && all && *all % *own != 0) ||
      (rows && *rows % 16 != 0)) // C2
    return emitOpError() << "expects columns in multiples of 16, a part of the "
                            "stack's, and rows of 16, got "
                         << value << " in " << all.value_or(0)
                         << " columns and " << rows.value_or(0) << " rows";
  if (failed(verifyInWarpgroupRole(*this))) // C3
    return failure();
  SharedType slot = getSlot().getType();
  ArrayRef<Attribute> sizes = slot.getSizes().getSizes();
  bool matches = sizes.size() == 2 && getFixed(slot.getSwizzle()) == 16 &&
                 getFixed(sizes[0]) == 16 &&
                 slot.getElementType() == value.getElementType();
  if (matches) {
    std::optional<int64_t> each = getFixed(sizes[1]);
    std::optional<int64_t> keys = getFixed(getSizes(value)[0]);
    matches = !each || !own || !keys || *each * 16 == *own * *keys;
  }
  if (!matches) // C4
    return emitOpError()
           << "expects a slot of 16 rows in panels of 16 bytes for " << value
           << ", got " << slot;
  return success();
}

LogicalResult StoreSlabsOp::verify() {
  RankedTensorType value = getValue().getType();
  SharedType slot = getSlot().getType(), box = getMap().getType().getBox();
  if (static_cast<int64_t>(getIndices().size()) !=
      getMap().getType().getRank()) // C1
    return emitOpError() << "expects " << getMap().getType().getRank()
                         << " indices, got " << getIndices().size();
  ArrayRef<Attribute> sizes = slot.getSizes().getSizes();
  if (sizes.size() != 2 || ArrayRef(getSizes(value)) != sizes ||
      value.getElementType() != slot.getElementType()) // C2
    return emitOpError() << "expects a matrix and a slot of its sizes and "
                            "elements, got "
                         << value << " and " << slot;
  ArrayRef<Attribute> boxSizes = box.getSizes().getSizes();
  std::optional<int64_t> rows = getFixed(getRows());
  if (getFixed(boxSizes[0]) != 16 || boxSizes[1] != sizes[1] ||
      box.getElementType() != slot.getElementType() ||
      box.getSwizzle() != slot.getSwizzle() || (rows && *rows % 16 != 0)) // C3
    return emitOpError() << "expects rows in multiples of 16 and a box of 16 "
                            "rows of "
                         << slot << ", got " << rows.value_or(0) << " and "
                         << box;
  return verifyInWarpgroupRole(*this); // C4
}

LogicalResult StoreStackedWaitOp::verify() {
  return verifyInWarpgroupRole(*this); // C1
}

LogicalResult GatherRunsOp::verify() {
  SharedType slot = getSlot().getType();
  if (failed(verifyRun(*this, getView().getType(),
                       slot.getElementType()))) // C1
    return failure();
  RankedTensorType firsts = getFirsts().getType();
  if (firsts.getRank() != 1 || !firsts.getElementType().isInteger(32)) // C2
    return emitOpError() << "expects firsts to be a rank-1 tensor of i32, got "
                         << firsts;
  if (!getSlot().getDefiningOp<RingAcquireOp>()) // C3
    return emitOpError()
           << "expects a slot from a tile.ring_acquire, got another";
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileAsyncCopies.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isIndexVector(RankedTensorType type) {
  return type.getRank() == 1 && type.getElementType().isInteger(32);
}

LogicalResult TensorMapOp::verify() {
  auto argument = dyn_cast<BlockArgument>(getSource());
  bool isArgument =
      argument && isa<KernelOp>(argument.getOwner()->getParentOp());
  TensorMapType map = getType();
  if (!isArgument || getSource().getType().getRank() != map.getRank()) // C1
    return emitOpError() << "expects an argument of the kernel of rank "
                         << map.getRank() << ", got " << getSource().getType();
  if (getSource().getType().getElementType() !=
      map.getBox().getElementType()) // C2
    return emitOpError() << "expects a box of the source's elements "
                         << getSource().getType().getElementType() << ", got "
                         << map.getBox().getElementType();
  if (failed(TensorMapType::verify([&] { return emitOpError(); }, map.getRank(),
                                   map.getBox())))
    return failure();
  return verifyShared(*this, map.getBox());
}

static LogicalResult verifyIndices(Operation *op, size_t indices,
                                   int64_t expected) {
  if (static_cast<int64_t>(indices) != expected)
    return op->emitOpError()
           << "expects " << expected << " indices, got " << indices;
  return success();
}

static LogicalResult verifyAcquired(Operation *op, Value slot) {
  if (!slot.getDefiningOp<RingAcquireOp>())
    return op->emitOpError()
           << "expects a slot from a tile.ring_acquire, got another";
  return success();
}

static LogicalResult verifyBox(Operation *op, TensorMapType map,
                               SharedType slot) {
  if (map.getBox() != slot)
    return op->emitOpError()
           << "expects the map's box " << map.getBox() << ", got " << slot;
  return success();
}

LogicalResult LoadAsyncOp::verify() {
  TensorMapType map = getMap().getType();
  if (failed(verifyIndices(*this, getIndices().size(),
                           map.getRank() - 1)) ||         // C1
      failed(verifyBox(*this, map, getSlot().getType()))) // C2
    return failure();
  return verifyAcquired(*this, getSlot()); // C3
}

LogicalResult GatherAsyncOp::verify() {
  TensorMapType map = getMap().getType();
  if (failed(verifyIndices(*this, getIndices().size(),
                           map.getRank() - 2))) // C1
    return failure();
  RankedTensorType rows = tensorType(getRows());
  if (!isIndexVector(rows)) // C2
    return emitOpError() << "expects rows to be a rank-1 tensor of i32, got "
                         << rows;
  SharedType box = map.getBox(), slot = getSlot().getType();
  bool matches =
      slot.getSizes().getSizes().size() == 2 &&
      box.getSizes().getSizes()[1] == slot.getSizes().getSizes()[1] &&
      box.getElementType() == slot.getElementType() &&
      box.getSwizzle() == slot.getSwizzle();
  if (matches) {
    std::optional<int64_t> slotRows = getFixed(slot.getSizes().getSizes()[0]);
    std::optional<int64_t> boxRows = getFixed(box.getSizes().getSizes()[0]);
    std::optional<int64_t> boxes = getFixed(getSizes(rows)[0]);
    matches = !slotRows || !boxRows || !boxes || *slotRows == *boxRows * *boxes;
  }
  if (!matches) // C3
    return emitOpError() << "expects the slot to be "
                         << printSizes(getSizes(rows)) << " boxes of " << box
                         << ", got " << slot;
  return verifyAcquired(*this, getSlot()); // C4
}

static Attribute columnsOf(SharedType type) {
  return type.getSizes().getSizes()[1];
}

LogicalResult GatherPanelsOp::verify() {
  TensorMapType map = getMap().getType();
  if (failed(verifyIndices(*this, getIndices().size(),
                           map.getRank() - 2))) // C1
    return failure();
  RankedTensorType columns = tensorType(getColumns());
  if (!isIndexVector(columns)) // C2
    return emitOpError() << "expects columns to be a rank-1 tensor of i32, got "
                         << columns;
  SharedType box = map.getBox(), slot = getSlot().getType();
  Type element = slot.getElementType();
  bool matches =
      slot.getSizes().getSizes().size() == 2 &&
      box.getSizes().getSizes()[0] == slot.getSizes().getSizes()[0] &&
      box.getElementType() == element && element.isIntOrFloat() &&
      element.getIntOrFloatBitWidth() == 8 &&
      getFixed(slot.getSwizzle()) == 16 && getFixed(box.getSwizzle()) == 16;
  if (matches) {
    std::optional<int64_t> all = getFixed(columnsOf(slot));
    std::optional<int64_t> some = getFixed(columnsOf(box));
    std::optional<int64_t> boxes = getFixed(getSizes(columns)[0]);
    matches = (!some || *some % 16 == 0) &&
              (!all || !some || !boxes || *all == *some * *boxes);
  }
  if (!matches) // C3
    return emitOpError() << "expects the slot to be "
                         << printSizes(getSizes(columns))
                         << " boxes of bytes in panels of 16, side by side, of "
                         << box << ", got " << slot;
  return verifyAcquired(*this, getSlot()); // C4
}

LogicalResult StoreAsyncOp::verify() {
  TensorMapType map = getMap().getType();
  if (failed(verifyIndices(*this, getIndices().size(),
                           map.getRank() - 1)) ||         // C1
      failed(verifyBox(*this, map, getSlot().getType()))) // C2
    return failure();
  return verifyInOneWarpRole(*this); // C3
}

LogicalResult StoreWaitOp::verify() {
  return verifyInOneWarpRole(*this); // C1
}

static LogicalResult verifySameTile(Operation *op, RankedTensorType tensor,
                                    SharedType slot) {
  if (ArrayRef(getSizes(tensor)) != slot.getSizes().getSizes() ||
      tensor.getElementType() != slot.getElementType())
    return op->emitOpError()
           << "expects tensor and slot of the same sizes and elements, got "
           << tensor << " and " << slot;
  return success();
}

LogicalResult StoreSharedOp::verify() {
  return verifySameTile(*this, tensorType(getValue()),
                        getSlot().getType()); // C1
}

LogicalResult LoadSharedOp::verify() {
  if (getSlot().getType().getSwizzle()) // C1
    return emitOpError() << "expects a slot of rank 1, got "
                         << getSlot().getType();
  return verifySameTile(*this, tensorType(getResult()),
                        getSlot().getType()); // C2
}

LogicalResult SharedColumnsOp::verify() {
  SharedType slot = getSlot().getType(), result = getType();
  if (!slot.getSwizzle() || slot.getSwizzle() != result.getSwizzle() ||
      slot.getElementType() != result.getElementType() ||
      slot.getSizes().getSizes()[0] != result.getSizes().getSizes()[0]) // C1
    return emitOpError() << "expects a matrix with the rows, elements and "
                            "swizzle of "
                         << slot << ", got " << result;
  std::optional<int64_t> first = getConstantIntValue(getFirst());
  std::optional<int64_t> swizzle = getFixed(slot.getSwizzle());
  Type element = slot.getElementType();
  if (!first || !swizzle || !element.isIntOrFloat())
    return success();
  int64_t columns = *swizzle * 8 / element.getIntOrFloatBitWidth();
  if (*first % columns != 0) // C2
    return emitOpError() << "expects to start at a multiple of " << columns
                         << " columns, got " << *first;
  return success();
}

LogicalResult SharedPositionsOp::verify() {
  SharedType slot = getSlot().getType();
  if (slot.getSwizzle() || !slot.getElementType().isInteger(32)) // C1
    return emitOpError() << "expects a slot of rank 1 and i32, got " << slot;
  RankedTensorType result = tensorType(getResult());
  bool fits = isIndexVector(result);
  if (fits) {
    std::optional<int64_t> boxes = getFixed(slot.getSizes());
    std::optional<int64_t> rows = getFixed(getSizes(result)[0]);
    fits = !boxes || !rows || *rows % (*boxes * 8) == 0;
  }
  if (!fits) // C2
    return emitOpError() << "expects a rank-1 tensor of i32 with a multiple of "
                            "eight elements for each of "
                         << printSizes(slot.getSizes().getSizes())
                         << " boxes, got " << result;
  return success();
}

LogicalResult ListBoxesOp::verify() {
  ViewType list = getList().getType();
  if (list.getRank() != 1 || !list.getElementType().isInteger(32)) // C1
    return emitOpError() << "expects the list to be a rank-1 view of i32, got "
                         << list;
  if (!isIndexVector(tensorType(getResult()))) // C2
    return emitOpError() << "expects the result to be a rank-1 tensor of i32, "
                            "got "
                         << getResult().getType();
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileTeams.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Where fixed, the size lies in [1, most].
static LogicalResult verifyCount(Operation *op, StringRef what, SizesAttr size,
                                 int64_t most) {
  std::optional<int64_t> fixed = getFixed(size);
  if (fixed && (*fixed < 1 || *fixed > most))
    return op->emitOpError()
           << "expects 1 to " << most << " " << what << ", got " << *fixed;
  return success();
}

LogicalResult TeamOp::verify() {
  auto kernel = dyn_cast_if_present<KernelOp>((*this)->getParentOp());
  if (!kernel) // C1
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  if (!llvm::hasSingleElement(kernel.getBody().getOps<TeamOp>()) ||
      !kernel.getBody().getOps<RoleOp>().empty()) // C1
    return emitOpError() << "expects to be alone in its kernel, got another "
                            "tile.team or a tile.role";
  if (failed(verifyCount(*this, "members", getMembers(), 8)) ||
      failed(verifyCount(*this, "warps", getWarps(), 32)) ||
      failed(verifyCount(*this, "CTAs", getCtas(), 32))) // C2
    return failure();
  return success();
}

LogicalResult LaunchWaitOp::verify() {
  Region *region = (*this)->getParentRegion();
  auto isLoop = [&](Operation *around) {
    auto loop = dyn_cast_if_present<scf::WhileOp>(around);
    return !isa_and_present<RoleOp, scf::IfOp>(around) &&
           !(loop && region == &loop.getBefore());
  };
  while (region && !isLoop(region->getParentOp()))
    region = region->getParentOp()->getParentRegion();
  if (!region || !isa_and_present<KernelOp>(region->getParentOp())) // C1
    return emitOpError()
           << "expects to stand in a tile.kernel and no loop that may not run, "
              "got another op around it";
  return success();
}

/// An argument of the kernel, of rank 1 and i32.
static LogicalResult verifyCounter(Operation *op, Value counter) {
  auto type = cast<GlobalType>(counter.getType());
  if (type.getRank() != 1 || !type.getElementType().isInteger(32))
    return op->emitOpError()
           << "expects a counter of rank 1 and i32, got " << type;
  return success();
}

LogicalResult NextPartOp::verify() {
  if (failed(verifyCounter(*this, getCounter()))) // C1
    return failure();
  Operation *around = (*this)->getParentOp();
  if (!isa_and_present<scf::ForOp, scf::WhileOp>(around) ||
      around->getParentOfType<RoleOp>() ||
      around->isAncestor(getParts().getParentBlock()->getParentOp()) ||
      around->isAncestor(getStep().getParentBlock()->getParentOp())) // C2
    return emitOpError() << "expects to stand in a loop in no role, and parts "
                            "and step from outside of it, got another place";
  return success();
}

LogicalResult SignalOp::verify() {
  return verifyCounter(*this, getCounter()); // C1
}

LogicalResult AwaitOp::verify() {
  if (failed(verifyCounter(*this, getCounter()))) // C1
    return failure();
  if (!isa_and_present<KernelOp>((*this)->getParentOp()) && // C2
      failed(verifyInOneWarpRole(*this)))
    return failure();
  return success();
}

/// A view of rank 2 and f32.
static LogicalResult verifyFloatRows(Operation *op, ViewType view) {
  if (view.getRank() != 2 || !view.getElementType().isF32())
    return op->emitOpError()
           << "expects a view of rank 2 and f32, got " << view;
  return success();
}

LogicalResult StoreSplitOp::verify() {
  RankedTensorType value = tensorType(getValue());
  if (value.getRank() != 1 || !value.getElementType().isF32()) // C1
    return emitOpError() << "expects a rank-1 tensor of f32, got " << value;
  std::optional<int64_t> size = getFixed(getSizes(value)[0]);
  if (size && (*size % 8 != 0 || *size > 256)) // C1
    return emitOpError() << "expects a multiple of 8 elements up to 256, got "
                         << *size;
  return verifyFloatRows(*this, getView().getType()); // C2
}

LogicalResult SpreadDotsOp::verify() {
  for (ViewType view : {getK().getType(), getQ().getType()})
    if (failed(verifyFloatRows(*this, view))) // C1
      return failure();
  if (!getScratch().getType().getElementType().isF32()) // C2
    return emitOpError() << "expects scratch of f32, got "
                         << getScratch().getType();
  std::optional<int64_t> columns = getFixed(getColumns());
  if (columns && (*columns <= 0 || *columns % 8 != 0 || *columns > 256)) // C3
    return emitOpError() << "expects a multiple of 8 columns up to 256, got "
                         << *columns;
  if (!isa_and_present<KernelOp>((*this)->getParentOp())) // C4
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  return success();
}

static LogicalResult verifyRowAccess(Operation *op, ScratchType scratch,
                                     RankedTensorType row) {
  if (row.getRank() != 1 || row.getElementType() != scratch.getElementType() ||
      row.getElementTypeBitWidth() != 32) // C1
    return op->emitOpError() << "expects a rank-1 tensor of 32-bit elements "
                                "like those of "
                             << scratch << ", got " << row;
  return success();
}

LogicalResult RowLoadOp::verify() {
  return verifyRowAccess(*this, getScratch().getType(),
                         tensorType(getResult()));
}

LogicalResult RowStoreOp::verify() {
  ScratchType scratch = getScratch().getType();
  RankedTensorType value = tensorType(getValue());
  if (scratch.getElementType().isInteger(1) && value.getRank() == 1 &&
      value.getElementType().isInteger(1)) // C1
    return success();
  return verifyRowAccess(*this, scratch, value);
}

// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileTeams.td, and the staged type.
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Type StagedType::parse(AsmParser &parser) {
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<Attribute> rows = parseSizeEntry(parser);
  if (failed(rows) || parser.parseKeyword("x"))
    return {};
  FailureOr<Attribute> columns = parseSizeEntry(parser);
  if (failed(columns) || parser.parseGreater())
    return {};
  MLIRContext *context = parser.getContext();
  return parser.getChecked<StagedType>(
      location, context, SizesAttr::get(context, {*rows, *columns}));
}

void StagedType::print(AsmPrinter &printer) const {
  printer << "<";
  printSizeEntry(printer, getSizes().getSizes()[0]);
  printer << " x ";
  printSizeEntry(printer, getSizes().getSizes()[1]);
  printer << ">";
}

LogicalResult StagedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 SizesAttr sizes) {
  if (sizes.getSizes().size() != 2) // C1
    return emitError() << "expects two sizes, got " << sizes.getSizes().size();
  std::optional<int64_t> rows = getFixed(sizes.getSizes()[0]);
  std::optional<int64_t> columns = getFixed(sizes.getSizes()[1]);
  if ((rows && (*rows <= 0 || *rows % 8 != 0)) ||
      (columns && (*columns <= 0 || *columns % 8 != 0 || *columns > 256))) // C1
    return emitError() << "expects rows that are a multiple of 8 and columns "
                          "that are one up to 256, got "
                       << printSizes(sizes.getSizes());
  return success();
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
  Operation *around = (*this)->getParentOp();
  while (isa_and_present<RoleOp, scf::IfOp>(around))
    around = around->getParentOp();
  if (!isa_and_present<KernelOp>(around)) // C1
    return emitOpError()
           << "expects to stand in a tile.kernel and no loop, got "
              "another op around it";
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

LogicalResult SignalOp::verify() {
  return verifyCounter(*this, getCounter()); // C1
}

LogicalResult AwaitOp::verify() {
  if (failed(verifyCounter(*this, getCounter()))) // C1
    return failure();
  if (!isa_and_present<KernelOp>((*this)->getParentOp())) // C2
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  return success();
}

/// A view of rank 2 and f32.
static LogicalResult verifyFloatRows(Operation *op, ViewType view) {
  if (view.getRank() != 2 || !view.getElementType().isF32())
    return op->emitOpError()
           << "expects a view of rank 2 and f32, got " << view;
  return success();
}

LogicalResult StageOp::verify() {
  if (failed(verifyFloatRows(*this, getView().getType()))) // C1
    return failure();
  if (!isa_and_present<KernelOp>((*this)->getParentOp())) // C2
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  return success();
}

LogicalResult DotStagedOp::verify() {
  if (failed(verifyFloatRows(*this, getView().getType()))) // C1
    return failure();
  RankedTensorType result = tensorType(getResult());
  Attribute rows = getStaged().getType().getSizes().getSizes()[0];
  if (result.getRank() != 2 || !result.getElementType().isF32() ||
      getFixed(getSizes(result)[0]) != 16 || getSizes(result)[1] != rows) // C2
    return emitOpError() << "expects a result of 16 x " << printSizes(rows)
                         << " of f32, got " << result;
  return success();
}

LogicalResult SpreadOp::verify() {
  RankedTensorType value = tensorType(getValue());
  if (value.getRank() != 2 || !value.getElementType().isF32() ||
      !getScratch().getType().getElementType().isF32()) // C1
    return emitOpError() << "expects a tile of rank 2 and f32, and such "
                            "scratch, got "
                         << value << " and " << getScratch().getType();
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

// SPDX-License-Identifier: Apache-2.0
//
// The function around a GPU kernel: arguments, launch, dispatch over ops.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "compiler/Conversion/TileToNvvm/LaunchAttributes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

/// Slots of an argument as in runtime/base/KernelSpec.h.
static int64_t slotCount(Type type) {
  auto global = dyn_cast<tile::GlobalType>(type);
  return global ? 1 + 2 * global.getRank() : 1;
}

LogicalResult NvvmEmitter::emit() {
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(kernel_);
  MLIRContext *context = b_.getContext();
  mapOps_ = llvm::to_vector(kernel_.getBody().getOps<tile::TensorMapOp>());
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(context),
      SmallVector<Type>(1 + mapOps_.size(), pointer));
  auto function = LLVM::LLVMFuncOp::create(b_, kernel_.getLoc(),
                                           kernel_.getSymName(), type);
  int64_t slots = 0;
  for (Type argument : kernel_.getBody().getArgumentTypes())
    slots += slotCount(argument);
  auto passByValue = [&](unsigned index, Type valueType, int64_t alignment) {
    function.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(valueType));
    function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                        b_.getI64IntegerAttr(alignment));
    function.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b_.getUnitAttr());
  };
  passByValue(0, LLVM::LLVMArrayType::get(p_.i64(), slots), 8);
  for (unsigned i = 0; i < mapOps_.size(); ++i)
    passByValue(1 + i, LLVM::LLVMArrayType::get(b_.getI8Type(), 128), 64);

  b_.setInsertionPointToStart(function.addEntryBlock(b_));
  emitArguments(&function.getBody().front());
  auto teams = kernel_.getBody().getOps<tile::TeamOp>();
  if (!teams.empty()) {
    team_ = *teams.begin();
    if (failed(emitTeam()))
      return failure();
    LLVM::ReturnOp::create(b_, p_.location(), ValueRange{});
    describeLaunch(function);
    describeTeam(function);
    return success();
  }
  for (Operation &op : kernel_.getBody().front().without_terminator())
    if (!isa<tile::RoleOp>(op) && failed(emitOp(&op)))
      return failure();
  if (failed(emitRoles()))
    return failure();
  LLVM::ReturnOp::create(b_, p_.location(), ValueRange{});
  describeLaunch(function);
  return success();
}

void NvvmEmitter::emitArguments(Block *entry) {
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  auto global = LLVM::LLVMPointerType::get(b_.getContext(), 1);
  int64_t slot = 0;
  auto nextSlot = [&](Type type) -> Value {
    Value address = LLVM::GEPOp::create(
        b_, p_.location(), pointer, p_.i64(), entry->getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(slot++)});
    return LLVM::LoadOp::create(b_, p_.location(), type, address);
  };
  for (BlockArgument argument : kernel_.getBody().getArguments()) {
    auto type = dyn_cast<tile::GlobalType>(argument.getType());
    if (!type) {
      Type scalarType = argument.getType().isIndex() ? p_.i32() : p_.f32();
      scalars_.map(argument, nextSlot(scalarType));
      continue;
    }
    Global &tensor = globals_[argument];
    tensor.pointer =
        LLVM::IntToPtrOp::create(b_, p_.location(), global, nextSlot(p_.i64()));
    for (int64_t i = 0; i < type.getRank(); ++i)
      tensor.sizes.push_back(nextSlot(p_.i32())); // the low half
    for (int64_t i = 0; i < type.getRank(); ++i)
      tensor.strides.push_back(nextSlot(p_.i64()));
  }
  for (auto [index, map] : llvm::enumerate(mapOps_))
    maps_[map.getResult()] = entry->getArgument(1 + index);
}

/// What the driver needs to make a LaunchInfo (LaunchAttributes.h).
void NvvmEmitter::describeLaunch(LLVM::LLVMFuncOp function) {
  auto i32Array = [&](ArrayRef<int32_t> values) {
    return b_.getDenseI32ArrayAttr(values);
  };
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b_.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    i32Array({static_cast<int32_t>(threads()), 1, 1}));
  function->setAttr(
      NVVM::NVVMDialect::getMinctasmAttrName(),
      b_.getI32IntegerAttr(static_cast<int32_t>(ctasPerMultiprocessor())));
  // exp2 and sums flush denormals, as ex2.approx does.
  function.setDenormalFpMathF32Attr(
      b_.getStringAttr("preserve-sign,preserve-sign"));
  function->setAttr(kThreadsAttr, b_.getI64IntegerAttr(threads()));
  function->setAttr(kSharedBytesAttr, b_.getI64IntegerAttr(plan_.bytes()));
  function->setAttr(kPersistentAttr, b_.getBoolAttr(isPersistent_));
  function->setAttr(kStartsEarlyAttr, b_.getBoolAttr(startsEarly_));
  if (IntegerAttr level = kernel_.getAssemblerLevelAttr())
    function->setAttr(kAssemblerLevelAttr, level);
  SmallVector<Attribute> maps;
  for (tile::TensorMapOp op : mapOps_) {
    SharedMatrix box(op.getType().getBox());
    auto argument = cast<BlockArgument>(op.getSource());
    auto number = static_cast<int64_t>(argument.getArgNumber());
    maps.push_back(b_.getDenseI64ArrayAttr(
        box.isCores() ? ArrayRef<int64_t>{number, box.cores(),
                                          SharedMatrix::kCoreBytes, 0}
                      : ArrayRef<int64_t>{number, box.rows, box.panelColumns(),
                                          box.swizzle}));
  }
  function->setAttr(kTensorMapsAttr, b_.getArrayAttr(maps));
}

LogicalResult NvvmEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

static LogicalResult emitNoLowering(Operation *op) {
  return op->emitOpError() << "expects an op that sm_90 can lower, got one "
                              "without a lowering";
}

LogicalResult NvvmEmitter::emitOp(Operation *op) {
  p_.setLocation(op->getLoc());
  if (role_.isTeam ? isForRoles(op) : isForTeams(op))
    return emitNoLowering(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tile::RingOp, tile::TensorMapOp, tile::SplatOp, tile::IotaOp>(
          [&](auto) { return success(); }) // planned, or made where read
      .Case<tile::ProgramsOp, tile::NextProgramOp, tile::ProgramPlaceOp,
            tile::DimOp, tile::IsPresentOp, tile::SliceOp, tile::LoadScalarOp,
            tile::ListBoxesOp, tile::NthLargestOp, tile::StoreOp,
            tile::RingStartOp, tile::RingNextOp, tile::RingAcquireOp,
            tile::RingCommitOp, tile::RingWaitOp, tile::RingPiecesOp,
            tile::RingReleaseOp, tile::TakeTurnOp, tile::PassTurnOp,
            tile::LoadValuesOp, tile::LoadColumnsOp, tile::LoadRowsOp,
            tile::FmaReluOp, tile::LowBitsOp, tile::PeakRowsOp,
            tile::ScaleRowsOp, tile::ScaleCoresOp, tile::ColumnsOp,
            tile::FirstColumnsOp, tile::StoreNoteOp, tile::LoadNoteOp,
            tile::LoadAsyncOp, tile::GatherAsyncOp, tile::GatherPanelsOp,
            tile::GatherRunsOp, tile::StoreStackedOp, tile::StoreStackedWaitOp,
            tile::StoreAsyncOp, tile::StoreWaitOp, tile::StoreSharedOp,
            tile::LoadSharedOp, tile::SharedColumnsOp, tile::ScatterAtOp,
            tile::PrefetchRowsOp, tile::RowDotsOp, tile::SharedPositionsOp,
            tile::DotAsyncOp, tile::DotWaitOp, tile::WarpDotOp, tile::ConvertOp,
            tile::ExpandOp, tile::ReduceOp, tile::ReducePartialOp, tile::AnyOp,
            tile::WarpAnyOp, tile::TeamOp, tile::TeamBarrierOp,
            tile::LaunchWaitOp, tile::LaunchNextOp, tile::NextPartOp,
            tile::SignalOp, tile::AwaitOp, tile::ProgramIdOp, tile::ScratchOp,
            tile::SpreadDotsOp, tile::RowLoadOp, tile::RowStoreOp,
            tile::TotalOp, tile::PickOp, tile::RankOp, tile::SumUpToOp,
            tile::ScatterOp, tile::RowScatterOp, tile::FillRestOp,
            tile::StoreScalarOp, tile::SumRowsOp, tile::LoadRunOp,
            tile::StoreSplitOp, tile::AddProductsOp, tile::RowGatherOp,
            tile::SetTrueOp, tile::SetRunTrueOp, tile::ListTrueOp,
            tile::RowListTrueOp, tile::StoreSlabsOp, scf::ForOp, scf::IfOp,
            scf::WhileOp>([&](auto o) { return emit(o); })
      .Default([&](Operation *o) {
        auto select = dyn_cast<arith::SelectOp>(o);
        if (select && isa<tile::CursorType>(select.getType()))
          return emitCursorSelect(select);
        return isElementwise(o) ? emitElementwise(o) : emitScalarOp(o);
      });
}

/// arith on scalars, with i32 for index.
LogicalResult NvvmEmitter::emitScalarOp(Operation *op) {
  bool onlyScalars = isa_and_present<arith::ArithDialect>(op->getDialect()) &&
                     op->getNumResults() == 1 && op->getNumRegions() == 0 &&
                     llvm::all_of(op->getOperands(), [&](Value v) {
                       return scalars_.contains(v);
                     });
  if (!onlyScalars)
    return emitNoLowering(op);
  Value result = op->getResult(0);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    if (!op->getOperand(0).getType().isInteger(32) &&
        !result.getType().isInteger(32))
      return op->emitOpError() << "expects a cast between index and i32";
    scalars_.map(result, scalar(op->getOperand(0)));
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
    scalars_.map(result, p_.constant(constant.value()));
    return success();
  }
  if (auto division = dyn_cast<arith::CeilDivUIOp>(op)) {
    Value divisor = scalar(division.getRhs());
    Value sum = p_.add(scalar(division.getLhs()), p_.add(divisor, -1));
    scalars_.map(result, p_.divide(sum, divisor));
    return success();
  }
  Operation *copy = b_.clone(*op, scalars_);
  if (result.getType().isIndex())
    copy->getResult(0).setType(p_.i32());
  return success();
}

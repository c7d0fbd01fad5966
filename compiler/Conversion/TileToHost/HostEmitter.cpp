// SPDX-License-Identifier: Apache-2.0
//
// The function around a host kernel: arguments, grid, dispatch over ops.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::sparge;

int64_t mlir::sparge::elementBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

Value HostEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b_, loc_, value);
}
Value HostEmitter::add(Value a, Value b) {
  return arith::AddIOp::create(b_, loc_, a, b);
}
Value HostEmitter::sub(Value a, Value b) {
  return arith::SubIOp::create(b_, loc_, a, b);
}
Value HostEmitter::mul(Value a, Value b) {
  return arith::MulIOp::create(b_, loc_, a, b);
}
Value HostEmitter::less(Value a, Value b) {
  return arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::slt, a, b);
}
Value HostEmitter::minimum(Value a, Value b) {
  return arith::MinSIOp::create(b_, loc_, a, b);
}
Value HostEmitter::zero(Type type) {
  return arith::ConstantOp::create(b_, loc_, b_.getZeroAttr(type));
}
Value HostEmitter::splat(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(
      b_, loc_, VectorType::get({lanes}, scalar.getType()), scalar);
}

Value HostEmitter::pointerAt(Value base, Type element, Value elementIndex) {
  Value offset =
      arith::IndexCastOp::create(b_, loc_, b_.getI64Type(), elementIndex);
  return LLVM::GEPOp::create(b_, loc_, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value HostEmitter::load(Type type, Value pointer, int64_t alignment) {
  return LLVM::LoadOp::create(b_, loc_, type, pointer,
                              static_cast<unsigned>(alignment));
}

void HostEmitter::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(b_, loc_, value, pointer,
                        static_cast<unsigned>(alignment));
}

SmallVector<Value> HostEmitter::forLoop(Value low, Value high, int64_t step,
                                        ValueRange init, LoopBody body) {
  auto loop = scf::ForOp::create(
      b_, loc_, low, high, index(step), init,
      [&](OpBuilder &, Location, Value iv, ValueRange carried) {
        scf::YieldOp::create(b_, loc_, body(iv, carried));
      });
  return llvm::to_vector_of<Value>(loop.getResults());
}

void HostEmitter::forEach(int64_t count, function_ref<void(Value)> body) {
  forLoop(index(0), index(count), 1, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>{};
  });
}

LogicalResult HostEmitter::emit() {
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(kernel_);
  Type pointer = LLVM::LLVMPointerType::get(b_.getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b_.getContext()),
                                  {pointer, b_.getI64Type(), pointer});
  auto function =
      LLVM::LLVMFuncOp::create(b_, loc_, kernel_.getSymName(), type);
  // Kernel arguments never overlap the worker's scratch.
  function.setArgAttr(2, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b_.getUnitAttr());
  Block *entry = function.addEntryBlock(b_);
  b_.setInsertionPointToStart(entry);
  args_ = entry->getArgument(0);
  program_ = arith::IndexCastOp::create(b_, loc_, b_.getIndexType(),
                                        entry->getArgument(1));
  scratch_ = entry->getArgument(2);
  emitArguments();
  if (failed(emitBlock(kernel_.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(b_, loc_, ValueRange{});
  describeLaunch(function);
  return success();
}

/// Slots as in runtime/base/KernelSpec.h.
void HostEmitter::emitArguments() {
  Type i64 = b_.getI64Type();
  int slot = 0;
  auto nextSlot = [&]() -> Value {
    return load(i64, pointerAt(args_, i64, index(slot++)), 8);
  };
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b_, loc_, b_.getIndexType(), value);
  };
  for (BlockArgument argument : kernel_.getBody().getArguments()) {
    if (auto type = dyn_cast<tile::GlobalType>(argument.getType())) {
      Global global;
      global.firstSlot = slot;
      global.pointer = LLVM::IntToPtrOp::create(
          b_, loc_, LLVM::LLVMPointerType::get(b_.getContext()), nextSlot());
      for (int64_t i = 0; i < type.getRank(); ++i)
        global.sizes.push_back(toIndex(nextSlot()));
      for (int64_t i = 0; i < type.getRank(); ++i)
        global.strides.push_back(toIndex(nextSlot()));
      globals_[argument] = global;
    } else if (argument.getType().isIndex()) {
      scalars_.map(argument, toIndex(nextSlot()));
    } else {
      Value bits =
          arith::TruncIOp::create(b_, loc_, b_.getI32Type(), nextSlot());
      scalars_.map(argument,
                   arith::BitcastOp::create(b_, loc_, b_.getF32Type(), bits)
                       .getResult());
    }
  }
}

/// What the driver needs to make a LaunchInfo.
void HostEmitter::describeLaunch(LLVM::LLVMFuncOp function) {
  function->setAttr("spargejit.static_scratch",
                    b_.getI64IntegerAttr(staticScratchBytes_));
  function->setAttr("spargejit.dynamic_scratch",
                    b_.getArrayAttr(dynamicScratch_));
}

LogicalResult HostEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

LogicalResult HostEmitter::emitOp(Operation *op) {
  loc_ = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::ProgramIdOp o) {
        emitProgramId(o);
        return success();
      })
      .Case([&](tile::SliceOp o) {
        emitSlice(o);
        return success();
      })
      .Case([&](tile::DimOp o) {
        scalars_.map(o.getResult(),
                     globals_[o.getSource()].sizes[o.getDimension()]);
        return success();
      })
      .Case([&](tile::IsPresentOp o) {
        Value null = LLVM::ZeroOp::create(
            b_, loc_, globals_[o.getSource()].pointer.getType());
        scalars_.map(o.getResult(),
                     LLVM::ICmpOp::create(b_, loc_, LLVM::ICmpPredicate::ne,
                                          globals_[o.getSource()].pointer, null)
                         .getResult());
        return success();
      })
      .Case([&](tile::LoadOp o) { return emitLoad(o); })
      .Case([&](tile::LoadScalarOp o) { return emitLoadScalar(o); })
      .Case([&](tile::LoadValuesOp o) { return emitLoadValues(o); })
      .Case([&](tile::GatherOp o) { return emitGather(o); })
      .Case([&](tile::GatherPositionsOp o) { return emitGatherPositions(o); })
      .Case([&](tile::StoreOp o) { return emitStore(o); })
      .Case([&](tile::ScratchOp o) { return emitScratch(o); })
      .Case([&](tile::ScratchLoadOp o) { return emitScratchLoad(o); })
      .Case([&](tile::ScratchStoreOp o) { return emitScratchStore(o); })
      .Case([&](tile::AppendIndicesOp o) { return emitAppendIndices(o); })
      .Case([&](tile::FillTailOp o) { return emitFillTail(o); })
      .Case([&](tile::DotOp o) { return emitDot(o); })
      .Case([&](tile::ReduceOp o) { return emitReduce(o); })
      .Case([&](tile::ScanOp o) { return emitScan(o); })
      .Case<tile::SplatOp, tile::IotaOp, tile::ExpandOp>(
          [&](auto) { return success(); }) // evaluated where they are read
      .Case([&](scf::ForOp o) { return emitFor(o); })
      .Case([&](scf::IfOp o) { return emitIf(o); })
      .Default([&](Operation *o) {
        return isElementwise(o) ? emitElementwise(o) : emitScalarOp(o);
      });
}

/// Tiles run fastest, batches slowest.
void HostEmitter::emitProgramId(tile::ProgramIdOp op) {
  const Global &grid =
      globals_[kernel_.getBody().getArgument(kernel_.getGridArgument())];
  int64_t tileRows = kernel_->getAttrOfType<IntegerAttr>("grid_tile").getInt();
  Value tiles =
      arith::CeilDivSIOp::create(b_, loc_, grid.sizes[2], index(tileRows));
  auto divide = [&](Value a, Value b) -> Value {
    return arith::DivUIOp::create(b_, loc_, a, b);
  };
  auto remainder = [&](Value a, Value b) -> Value {
    return arith::RemUIOp::create(b_, loc_, a, b);
  };
  Value row = divide(program_, tiles);
  scalars_.map(op.getTile(), remainder(program_, tiles));
  scalars_.map(op.getHead(), remainder(row, grid.sizes[1]));
  scalars_.map(op.getBatch(), divide(row, grid.sizes[1]));
}

void HostEmitter::emitSlice(tile::SliceOp op) {
  const Global &global = globals_[op.getSource()];
  tile::ViewType type = op.getResult().getType();
  View view;
  view.elementType = storedType(type.getElementType());
  view.rank = type.getRank();
  Value offset = index(0);
  for (auto [i, position] : llvm::enumerate(op.getIndices()))
    offset = add(offset, mul(scalar(position), global.strides[i]));
  view.pointer = pointerAt(global.pointer, view.elementType, offset);
  size_t first = op.getIndices().size();
  view.rows = global.sizes[first];
  view.rowStride = global.strides[first];
  if (view.rank == 2) {
    view.columns = global.sizes[first + 1];
    view.columnStride = global.strides[first + 1];
  }
  views_[op.getResult()] = view;
}

LogicalResult HostEmitter::emitScalarOp(Operation *op) {
  bool onlyScalars =
      llvm::all_of(op->getOperands(),
                   [&](Value v) { return scalars_.contains(v); }) &&
      llvm::none_of(op->getResults(), isTile) && op->getNumRegions() == 0 &&
      isa_and_present<arith::ArithDialect>(op->getDialect());
  if (!onlyScalars)
    return op->emitOpError() << "expects an op that the host can lower, got "
                                "one without a lowering";
  b_.clone(*op, scalars_);
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// scf.for, scf.if, scf.while: what they carry becomes lists of scalars, a tile
// its registers, a cursor its stage and phase.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

using namespace mlir;
using namespace mlir::sparge;

/// The tensor behind a value that may be pending, or null.
static RankedTensorType tensorOf(Type type) {
  if (auto pending = dyn_cast<tile::PendingType>(type))
    return pending.getTensor();
  return dyn_cast<RankedTensorType>(type);
}

FailureOr<SmallVector<Type>> NvvmEmitter::flatTypes(ValueRange values) {
  SmallVector<Type> flat;
  for (Value value : values) {
    Type type = value.getType();
    if (RankedTensorType tensor = tensorOf(type))
      flat.append(registerCount(tensor, heldBy(tensor)), registerType(tensor));
    else if (isa<tile::CursorType>(type))
      flat.append(2, p_.i32());
    else if (type.isIndex())
      flat.push_back(p_.i32());
    else if (type.isIntOrFloat())
      flat.push_back(type);
    else
      return emitError(value.getLoc())
             << "expects scalars, tiles and cursors to be carried, got "
             << type;
  }
  return flat;
}

LogicalResult NvvmEmitter::flatten(ValueRange values,
                                   SmallVectorImpl<Value> &flat) {
  for (Value value : values) {
    if (auto found = cursors_.find(value); found != cursors_.end()) {
      flat.append({found->second.stage, found->second.phase});
    } else if (RankedTensorType tensor = tensorOf(value.getType())) {
      FailureOr<Registers> registers = registersOf(value, heldBy(tensor));
      if (failed(registers))
        return failure();
      flat.append(*registers);
    } else {
      flat.push_back(scalar(value));
    }
  }
  return success();
}

void NvvmEmitter::bind(ValueRange values, ValueRange flat) {
  for (Value value : values) {
    size_t count = 1;
    if (RankedTensorType tensor = tensorOf(value.getType())) {
      Held held = heldBy(tensor);
      count = registerCount(tensor, held);
      tiles_[value] = {held, llvm::to_vector_of<Value>(flat.take_front(count))};
    } else if (isa<tile::CursorType>(value.getType())) {
      count = 2;
      cursors_[value] = {flat[0], flat[1]};
    } else {
      scalars_.map(value, flat.front());
    }
    flat = flat.drop_front(count);
  }
}

/// Emits the ops of `from` into `to` (whose own terminator, if any, goes), then
/// what `terminate` makes.
LogicalResult NvvmEmitter::emitRegion(Block &from, Block *to,
                                      function_ref<LogicalResult()> terminate) {
  OpBuilder::InsertionGuard guard(b_);
  if (!to->empty())
    to->back().erase();
  b_.setInsertionPointToEnd(to);
  if (failed(emitBlock(from)))
    return failure();
  p_.setLocation(from.getTerminator()->getLoc());
  return terminate();
}

LogicalResult NvvmEmitter::emit(scf::ForOp op) {
  SmallVector<Value> init;
  if (failed(flatten(op.getInitArgs(), init)))
    return failure();
  auto loop = scf::ForOp::create(b_, op.getLoc(), scalar(op.getLowerBound()),
                                 scalar(op.getUpperBound()),
                                 scalar(op.getStep()), init);
  scalars_.map(op.getInductionVar(), loop.getInductionVar());
  bind(op.getRegionIterArgs(), loop.getRegionIterArgs());
  LogicalResult body =
      emitRegion(*op.getBody(), loop.getBody(), [&]() -> LogicalResult {
        SmallVector<Value> yields;
        if (failed(
                flatten(op.getBody()->getTerminator()->getOperands(), yields)))
          return failure();
        scf::YieldOp::create(b_, p_.location(), yields);
        return success();
      });
  bind(op.getResults(), loop.getResults());
  return body;
}

LogicalResult NvvmEmitter::emit(scf::IfOp op) {
  FailureOr<SmallVector<Type>> types = flatTypes(op.getResults());
  if (failed(types))
    return failure();
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(b_, op.getLoc(), *types,
                                  scalar(op.getCondition()), hasElse);
  auto emitBranch = [&](Region &from, Region &to) {
    return emitRegion(from.front(), &to.front(), [&]() -> LogicalResult {
      SmallVector<Value> yields;
      if (failed(flatten(from.front().getTerminator()->getOperands(), yields)))
        return failure();
      scf::YieldOp::create(b_, p_.location(), yields);
      return success();
    });
  };
  if (failed(emitBranch(op.getThenRegion(), branch.getThenRegion())) ||
      (hasElse &&
       failed(emitBranch(op.getElseRegion(), branch.getElseRegion()))))
    return failure();
  bind(op.getResults(), branch.getResults());
  return success();
}

LogicalResult NvvmEmitter::emit(scf::WhileOp op) {
  SmallVector<Value> init;
  FailureOr<SmallVector<Type>> beforeTypes = flatTypes(op.getBeforeArguments());
  FailureOr<SmallVector<Type>> afterTypes = flatTypes(op.getAfterArguments());
  if (failed(beforeTypes) || failed(afterTypes) ||
      failed(flatten(op.getInits(), init)))
    return failure();
  auto loop = scf::WhileOp::create(b_, op.getLoc(), *afterTypes, init);
  auto addBlock = [&](Region &region, ArrayRef<Type> types) {
    return b_.createBlock(&region, region.end(), types,
                          SmallVector<Location>(types.size(), op.getLoc()));
  };
  Block *before, *after;
  {
    OpBuilder::InsertionGuard guard(b_);
    before = addBlock(loop.getBefore(), *beforeTypes);
    after = addBlock(loop.getAfter(), *afterTypes);
  }
  bind(op.getBeforeArguments(), before->getArguments());
  scf::ConditionOp condition = op.getConditionOp();
  if (failed(emitRegion(*op.getBeforeBody(), before, [&]() -> LogicalResult {
        SmallVector<Value> passed;
        if (failed(flatten(condition.getArgs(), passed)))
          return failure();
        scf::ConditionOp::create(b_, p_.location(),
                                 scalar(condition.getCondition()), passed);
        return success();
      })))
    return failure();
  bind(op.getAfterArguments(), after->getArguments());
  if (failed(emitRegion(*op.getAfterBody(), after, [&]() -> LogicalResult {
        // One way back to the head, with the warp together: with several, ptxas
        // takes the loop for divergent and everything in it for non-uniform.
        p_.syncWarp();
        SmallVector<Value> yields;
        if (failed(flatten(op.getYieldOp()->getOperands(), yields)))
          return failure();
        scf::YieldOp::create(b_, p_.location(), yields);
        return success();
      })))
    return failure();
  bind(op.getResults(), loop.getResults());
  return success();
}

/// What an scf.if that only chooses between two cursors folds to.
LogicalResult NvvmEmitter::emitCursorSelect(arith::SelectOp op) {
  Cursor a = cursors_.lookup(op.getTrueValue());
  Cursor b = cursors_.lookup(op.getFalseValue());
  Value condition = scalar(op.getCondition());
  cursors_[op.getResult()] = {p_.select(condition, a.stage, b.stage),
                              p_.select(condition, a.phase, b.phase)};
  return success();
}

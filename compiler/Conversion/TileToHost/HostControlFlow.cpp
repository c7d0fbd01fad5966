// SPDX-License-Identifier: Apache-2.0
//
// scf.for and scf.if: scalars are carried as they are, tiles in fixed buffers.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

using namespace mlir;
using namespace mlir::sparge;

/// Copies yielded tiles into the buffers that the next iteration (or the code
/// after an if) reads. A tile that lies in another one's buffer moves away
/// first, so that the copies cannot overwrite each other's sources.
LogicalResult HostEmitter::emitYieldedTiles(ArrayRef<Value> yielded,
                                            ArrayRef<Value> buffers) {
  SmallVector<Value> sources;
  for (Value value : yielded) {
    FailureOr<Value> source = materialise(value);
    if (failed(source))
      return failure();
    sources.push_back(*source);
  }
  for (size_t i = 0; i < yielded.size(); ++i) {
    if (sources[i] == buffers[i] || !llvm::is_contained(buffers, sources[i]))
      continue;
    Value moved = allocate(cast<RankedTensorType>(yielded[i].getType()));
    if (failed(materialiseInto(yielded[i], moved)))
      return failure();
    buffers_[yielded[i]] = moved;
    sources[i] = moved;
  }
  for (size_t i = 0; i < yielded.size(); ++i)
    if (sources[i] != buffers[i] &&
        failed(materialiseInto(yielded[i], buffers[i])))
      return failure();
  return success();
}

LogicalResult HostEmitter::emitFor(scf::ForOp op) {
  if (failed(materialiseForRegions(op)))
    return failure();
  SmallVector<Value> scalarInit, tileBuffers;
  for (Value init : op.getInitArgs()) {
    if (!isTile(init)) {
      scalarInit.push_back(scalar(init));
      continue;
    }
    if (canReuse(init, op)) {
      tileBuffers.push_back(buffers_[init]);
      continue;
    }
    Value buffer = allocate(cast<RankedTensorType>(init.getType()));
    if (failed(materialiseInto(init, buffer)))
      return failure();
    tileBuffers.push_back(buffer);
  }
  auto loop = scf::ForOp::create(b_, loc_, scalar(op.getLowerBound()),
                                 scalar(op.getUpperBound()),
                                 scalar(op.getStep()), scalarInit);
  {
    OpBuilder::InsertionGuard guard(b_);
    Block *body = loop.getBody();
    if (!body->empty()) // scf adds the yield itself when nothing is carried
      body->back().erase();
    b_.setInsertionPointToEnd(body);
    scalars_.map(op.getInductionVar(), loop.getInductionVar());
    size_t nextScalar = 0, nextTile = 0;
    for (BlockArgument argument : op.getRegionIterArgs())
      if (isTile(argument))
        buffers_[argument] = tileBuffers[nextTile++];
      else
        scalars_.map(argument, loop.getRegionIterArg(nextScalar++));
    if (failed(emitBlock(*op.getBody())))
      return failure();
    loc_ = op.getLoc();
    SmallVector<Value> scalarYields, tileYields;
    for (Value value : op.getBody()->getTerminator()->getOperands())
      if (isTile(value))
        tileYields.push_back(value);
      else
        scalarYields.push_back(scalar(value));
    if (failed(emitYieldedTiles(tileYields, tileBuffers)))
      return failure();
    scf::YieldOp::create(b_, loc_, scalarYields);
  }
  size_t nextScalar = 0, nextTile = 0;
  for (OpResult result : op.getResults())
    if (isTile(result))
      buffers_[result] = tileBuffers[nextTile++];
    else
      scalars_.map(result, loop.getResult(nextScalar++));
  return success();
}

LogicalResult HostEmitter::emitIf(scf::IfOp op) {
  if (failed(materialiseForRegions(op)))
    return failure();
  SmallVector<Value> tileBuffers;
  SmallVector<Type> scalarTypes;
  for (OpResult result : op.getResults())
    if (isTile(result))
      tileBuffers.push_back(allocate(cast<RankedTensorType>(result.getType())));
    else
      scalarTypes.push_back(result.getType());
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(b_, loc_, scalarTypes,
                                  scalar(op.getCondition()), hasElse);
  auto emitBranch = [&](Region &from, Region &to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b_);
    if (!to.front().empty())
      to.front().back().erase();
    b_.setInsertionPointToEnd(&to.front());
    if (failed(emitBlock(from.front())))
      return failure();
    loc_ = op.getLoc();
    SmallVector<Value> scalarYields, tileYields;
    for (Value value : from.front().getTerminator()->getOperands())
      if (isTile(value))
        tileYields.push_back(value);
      else
        scalarYields.push_back(scalar(value));
    if (failed(emitYieldedTiles(tileYields, tileBuffers)))
      return failure();
    scf::YieldOp::create(b_, loc_, scalarYields);
    return success();
  };
  if (failed(emitBranch(op.getThenRegion(), branch.getThenRegion())) ||
      (hasElse &&
       failed(emitBranch(op.getElseRegion(), branch.getElseRegion()))))
    return failure();
  size_t nextScalar = 0, nextTile = 0;
  for (OpResult result : op.getResults())
    if (isTile(result))
      buffers_[result] = tileBuffers[nextTile++];
    else
      scalars_.map(result, branch.getResult(nextScalar++));
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Buffers, expressions, reductions and scans over tiles.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::sparge;

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isMask(RankedTensorType type) {
  return type.getElementType().isInteger(1);
}

bool HostEmitter::isElementwise(Operation *op) {
  return op->getNumResults() == 1 && isTile(op->getResult(0)) &&
         isa_and_present<arith::ArithDialect, math::MathDialect>(
             op->getDialect());
}

/// Recomputing it costs no more than reading it back.
bool HostEmitter::isCheap(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_present<tile::SplatOp, tile::IotaOp, tile::ExpandOp,
                         arith::ConstantOp>(op);
}

/// Elements between two rows of a row-major tile. A dot walks down a column,
/// and rows a power of two apart would all fall into a few sets of the
/// first-level cache; one cache line more spreads them.
int64_t HostEmitter::rowPitch(RankedTensorType type) {
  return type.getDimSize(1) + kHostLanes;
}

/// Rows are padded to whole panels; the padding holds defined but meaningless
/// values that no store writes out.
int64_t HostEmitter::bufferElements(RankedTensorType type) {
  auto padded = [](int64_t size) { return llvm::alignTo(size, kHostLanes); };
  if (type.getRank() == 1)
    return padded(type.getDimSize(0));
  auto layout = cast<tile::LayoutAttr>(type.getEncoding());
  return layout.getKind() == tile::LayoutKind::Rows
             ? type.getDimSize(0) * rowPitch(type)
             : padded(type.getDimSize(0)) * type.getDimSize(1);
}

Value HostEmitter::allocate(RankedTensorType type) {
  int64_t bytes = bufferElements(type) * elementBytes(type.getElementType());
  int64_t offset = staticScratchBytes_;
  staticScratchBytes_ += llvm::alignTo(bytes, kHostAlignment);
  return pointerAt(scratch_, b_.getI8Type(), index(offset));
}

/// `user` may write over `value`: nobody else reads it, now or in a later
/// iteration of a loop around `user`.
bool HostEmitter::canReuse(Value value, Operation *user) {
  return buffers_.contains(value) && !borrowed_.contains(value) &&
         value.hasOneUse() && value.getParentBlock() == user->getBlock();
}

/// A buffer of `type` at a leaf of the expression `root` that dies with it.
Value HostEmitter::findReusable(Value root, RankedTensorType type) {
  Operation *op = root.getDefiningOp();
  if (!op || !isElementwise(op))
    return {};
  for (Value operand : op->getOperands()) {
    if (!isTile(operand))
      continue;
    bool sameShape =
        tileType(operand).getShape() == type.getShape() &&
        tileType(operand).getEncoding() == type.getEncoding() &&
        tileType(operand).getElementType().getIntOrFloatBitWidth() ==
            type.getElementType().getIntOrFloatBitWidth();
    if (buffers_.contains(operand)) {
      if (sameShape && canReuse(operand, op))
        return buffers_[operand];
    } else if (operand.hasOneUse() &&
               operand.getParentBlock() == op->getBlock()) {
      if (Value found = findReusable(operand, type))
        return found;
    }
  }
  return {};
}

FailureOr<Value> HostEmitter::materialise(Value value) {
  if (auto found = buffers_.find(value); found != buffers_.end())
    return found->second;
  RankedTensorType type = tileType(value);
  Value buffer = findReusable(value, type);
  if (!buffer)
    buffer = allocate(type);
  if (failed(materialiseInto(value, buffer)))
    return failure();
  buffers_[value] = buffer;
  return buffer;
}

/// Evaluates (or copies) `value` into `buffer`, point by point; the buffer may
/// be one that the expression reads.
LogicalResult HostEmitter::materialiseInto(Value value, Value buffer) {
  RankedTensorType type = tileType(value);
  if (isMask(type))
    return emitError(value.getLoc())
           << "expects a mask to be used where it is made, got one that needs "
              "memory";
  LogicalResult result = success();
  auto storeAt = [&](const Point &point, Value elementIndex) {
    Evaluated done;
    FailureOr<Value> evaluated = evaluate(value, point, done);
    if (failed(evaluated))
      result = failure();
    else
      store(*evaluated, pointerAt(buffer, type.getElementType(), elementIndex),
            kHostAlignment);
  };
  int64_t panels = llvm::divideCeil(type.getDimSize(0), kHostLanes);
  if (type.getRank() == 1) {
    forEach(panels, [&](Value panel) {
      storeAt({Point::Kind::Lanes, panel, {}}, mul(panel, kHostLanes));
    });
    return result;
  }
  int64_t columns = type.getDimSize(1);
  forEach(panels, [&](Value panel) {
    Value base = mul(panel, columns);
    forEach(columns, [&](Value column) {
      storeAt({Point::Kind::Matrix, panel, column},
              mul(add(base, column), kHostLanes));
    });
  });
  return result;
}

/// An element-wise result waits for its reader if it has a single one in the
/// same block; masks always wait.
LogicalResult HostEmitter::emitElementwise(Operation *op) {
  Value value = op->getResult(0);
  if (isMask(tileType(value)) || isCheap(value) || value.use_empty())
    return success();
  bool waits =
      value.hasOneUse() && (*value.user_begin())->getBlock() == op->getBlock();
  return waits ? success() : LogicalResult(materialise(value));
}

/// What a region reads from outside is computed once, before it.
LogicalResult HostEmitter::materialiseForRegions(Operation *op) {
  LogicalResult result = success();
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isTile(operand) && !buffers_.contains(operand) &&
          !isMask(tileType(operand)) && !isCheap(operand) &&
          operand.getDefiningOp() &&
          !op->isProperAncestor(operand.getDefiningOp()))
        if (failed(materialise(operand)))
          result = failure();
  });
  return result;
}

Value HostEmitter::loadPoint(Value buffer, RankedTensorType type,
                             const Point &point) {
  Type element = type.getElementType();
  Type lanes = VectorType::get({kHostLanes}, element);
  switch (point.kind) {
  case Point::Kind::Matrix: {
    Value position = add(mul(point.panel, type.getDimSize(1)), point.column);
    return load(lanes, pointerAt(buffer, element, mul(position, kHostLanes)),
                kHostAlignment);
  }
  case Point::Kind::Lanes:
    return load(lanes, pointerAt(buffer, element, mul(point.panel, kHostLanes)),
                kHostAlignment);
  case Point::Kind::Single:
    return load(element, pointerAt(buffer, element, point.column),
                elementBytes(element));
  }
  llvm_unreachable("covered switch");
}

/// `done` holds what has been evaluated at this point already.
FailureOr<Value> HostEmitter::evaluate(Value value, const Point &point,
                                       Evaluated &done) {
  std::pair<Value, int> key(value, static_cast<int>(point.kind));
  if (auto found = done.find(key); found != done.end())
    return found->second;
  FailureOr<Value> result = failure();
  if (auto buffer = buffers_.find(value); buffer != buffers_.end())
    result = loadPoint(buffer->second, tileType(value), point);
  else
    result = evaluateOp(value, point, done);
  if (succeeded(result))
    done[key] = *result;
  return result;
}

FailureOr<Value> HostEmitter::evaluateOp(Value value, const Point &point,
                                         Evaluated &done) {
  Operation *op = value.getDefiningOp();
  bool single = point.kind == Point::Kind::Single;
  auto shaped = [&](Value scalarValue) {
    return single ? scalarValue : splat(scalarValue);
  };
  if (auto splatOp = dyn_cast_if_present<tile::SplatOp>(op))
    return shaped(scalar(splatOp.getValue()));
  if (auto constant = dyn_cast_if_present<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!dense)
      return op->emitOpError() << "expects one value everywhere, got several";
    return shaped(arith::ConstantOp::create(
        b_, loc_, cast<TypedAttr>(dense.getSplatValue<Attribute>())));
  }
  if (isa_and_present<tile::IotaOp>(op)) {
    Type i32 = b_.getI32Type();
    if (single)
      return Value(arith::IndexCastOp::create(b_, loc_, i32, point.column));
    Value first =
        arith::IndexCastOp::create(b_, loc_, i32, mul(point.panel, kHostLanes));
    auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, kHostLanes));
    Value offsets =
        arith::ConstantOp::create(b_, loc_, b_.getI32VectorAttr(lanes));
    return Value(arith::AddIOp::create(b_, loc_, splat(first), offsets));
  }
  if (auto expand = dyn_cast_if_present<tile::ExpandOp>(op)) {
    if (expand.getAxis() == 1)
      return evaluate(expand.getSource(), {Point::Kind::Lanes, point.panel, {}},
                      done);
    FailureOr<Value> one = evaluate(
        expand.getSource(), {Point::Kind::Single, {}, point.column}, done);
    return failed(one) ? one : FailureOr<Value>(splat(*one));
  }
  if (!op || !isElementwise(op))
    return emitError(value.getLoc())
           << "expects a tile that the host has computed, got none";
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    if (!isTile(operand)) {
      mapping.map(operand, scalar(operand));
      continue;
    }
    FailureOr<Value> evaluated = evaluate(operand, point, done);
    if (failed(evaluated))
      return failure();
    mapping.map(operand, *evaluated);
  }
  Operation *point_op = b_.clone(*op, mapping);
  Type element = tileType(value).getElementType();
  point_op->getResult(0).setType(
      single ? element : Type(VectorType::get({kHostLanes}, element)));
  return point_op->getResult(0);
}

/// The neutral element of a sum or maximum.
static Value neutral(OpBuilder &b, Location loc, tile::ReduceKind kind,
                     Type element) {
  TypedAttr attr = b.getZeroAttr(element);
  if (kind == tile::ReduceKind::Max) {
    if (auto type = dyn_cast<FloatType>(element))
      attr = b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics(),
                                                  /*Negative=*/true));
    else
      attr = b.getIntegerAttr(
          element, APInt::getSignedMinValue(element.getIntOrFloatBitWidth()));
  }
  return arith::ConstantOp::create(b, loc, attr);
}

static Value combine(OpBuilder &b, Location loc, tile::ReduceKind kind, Value a,
                     Value x) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  if (kind == tile::ReduceKind::Sum)
    return isFloat ? Value(arith::AddFOp::create(b, loc, a, x))
                   : Value(arith::AddIOp::create(b, loc, a, x));
  if (!isFloat)
    return arith::MaxSIOp::create(b, loc, a, x);
  // One vmaxps: a comparison and a select, without rules for NaN.
  Value greater =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, a, x);
  return arith::SelectOp::create(b, loc, greater, a, x);
}

/// Four running values a panel, so that additions do not wait for each other.
LogicalResult HostEmitter::emitReduce(tile::ReduceOp op) {
  RankedTensorType source = tileType(op.getSource());
  RankedTensorType type = tileType(op.getResult());
  Type element = type.getElementType();
  int64_t columns = source.getDimSize(1);
  int64_t ways = columns % 4 == 0 ? 4 : 1;
  Value buffer = allocate(type);
  LogicalResult result = success();
  forEach(llvm::divideCeil(source.getDimSize(0), kHostLanes), [&](Value panel) {
    Value start = splat(neutral(b_, loc_, op.getKind(), element));
    SmallVector<Value> running = forLoop(
        index(0), index(columns), ways, SmallVector<Value>(ways, start),
        [&](Value column, ValueRange carried) {
          SmallVector<Value> next;
          for (int64_t way = 0; way < ways; ++way) {
            Evaluated done;
            FailureOr<Value> x = evaluate(
                op.getSource(),
                {Point::Kind::Matrix, panel, add(column, index(way))}, done);
            if (failed(x))
              result = failure();
            next.push_back(
                failed(x) ? carried[way]
                          : combine(b_, loc_, op.getKind(), carried[way], *x));
          }
          return next;
        });
    Value total = running[0];
    for (Value value : ArrayRef(running).drop_front())
      total = combine(b_, loc_, op.getKind(), total, value);
    store(total, pointerAt(buffer, element, mul(panel, kHostLanes)),
          kHostAlignment);
  });
  buffers_[op.getResult()] = buffer;
  return result;
}

LogicalResult HostEmitter::emitScan(tile::ScanOp op) {
  RankedTensorType type = tileType(op.getResult());
  Type element = type.getElementType();
  Value buffer = allocate(type);
  LogicalResult result = success();
  forEach(llvm::divideCeil(type.getDimSize(0), kHostLanes), [&](Value panel) {
    Evaluated done;
    FailureOr<Value> carry =
        evaluate(op.getCarry(), {Point::Kind::Lanes, panel, {}}, done);
    if (failed(carry)) {
      result = failure();
      return;
    }
    forLoop(index(0), index(type.getDimSize(1)), 1, *carry,
            [&](Value column, ValueRange carried) {
              Evaluated here;
              Point point{Point::Kind::Matrix, panel, column};
              FailureOr<Value> x = evaluate(op.getSource(), point, here);
              if (failed(x)) {
                result = failure();
                return SmallVector<Value>{carried[0]};
              }
              Value sum = add(carried[0], *x);
              Value position =
                  mul(add(mul(panel, type.getDimSize(1)), column), kHostLanes);
              store(sum, pointerAt(buffer, element, position), kHostAlignment);
              return SmallVector<Value>{sum};
            });
  });
  buffers_[op.getResult()] = buffer;
  return result;
}

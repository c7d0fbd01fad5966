// SPDX-License-Identifier: Apache-2.0
//
// Tiles from and to global memory and scratch. Memory beyond a view's end is
// never touched; what would lie there reads as zero.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::sparge;

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Value (scalar or vector) with elements of another float type.
Value HostEmitter::convert(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  if (from.isInteger(8))
    return fromEightBits(value);
  if (element.isInteger(8))
    return toEightBits(value);
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.cloneWith(std::nullopt, element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b_, loc_, type, value);
  return arith::TruncFOp::create(b_, loc_, type, value);
}

/// Elements of eight bits become f32 on their way, and nothing else.
static LogicalResult checkElements(Operation *op, tile::ViewType view,
                                   RankedTensorType tile) {
  if (isa<Float8E4M3FNType>(view.getElementType()) &&
      !tile.getElementType().isF32())
    return op->emitOpError()
           << "expects a tile of f32 on the host, got " << tile;
  return success();
}

/// Copies `columns` elements of one row of a matrix view to destination(c), or
/// zeros where the view ends. `contiguous`: eight destinations in a row are
/// neighbours, so that eight elements move at once where those of the view are
/// neighbours too.
void HostEmitter::copyRow(const View &view, Value valid, Value row,
                          Value column, int64_t columns, Type toType,
                          function_ref<Value(Value)> destination,
                          bool contiguous) {
  bool wide = contiguous && columns % kHostCopyLanes == 0;
  Value available = sub(view.columns, column);
  Value whole = arith::AndIOp::create(
      b_, loc_, valid,
      arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::sge, available,
                            index(columns)));
  whole = arith::AndIOp::create(
      b_, loc_, whole,
      arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::eq,
                            view.columnStride, index(1)));
  Value start = mul(row, view.rowStride);
  int64_t fromBytes = elementBytes(view.elementType);
  int64_t toBytes = elementBytes(toType);

  scf::IfOp::create(
      b_, loc_, whole,
      [&](OpBuilder &, Location) {
        forLoop(index(0), index(columns), wide ? kHostCopyLanes : 1, {},
                [&](Value c, ValueRange) {
                  Type type = view.elementType;
                  if (wide)
                    type = VectorType::get({kHostCopyLanes}, type);
                  Value from = pointerAt(view.pointer, view.elementType,
                                         add(start, add(column, c)));
                  store(convert(load(type, from, fromBytes), toType),
                        destination(c), toBytes);
                  return SmallVector<Value>{};
                });
        scf::YieldOp::create(b_, loc_);
      },
      [&](OpBuilder &, Location) {
        // A row that ends early, or whose elements are apart, one element at
        // a time.
        Value end =
            arith::SelectOp::create(b_, loc_, valid, available, index(0));
        forEach(columns, [&](Value c) {
          auto element = scf::IfOp::create(
              b_, loc_, less(c, end),
              [&](OpBuilder &, Location) {
                Value position = mul(add(column, c), view.columnStride);
                Value from = pointerAt(view.pointer, view.elementType,
                                       add(start, position));
                Value x = load(view.elementType, from, fromBytes);
                scf::YieldOp::create(b_, loc_, convert(x, toType));
              },
              [&](OpBuilder &, Location) {
                scf::YieldOp::create(b_, loc_, zero(toType));
              });
          store(element.getResult(0), destination(c), toBytes);
        });
        scf::YieldOp::create(b_, loc_);
      });
}

LogicalResult HostEmitter::emitLoad(tile::LoadOp op) {
  const View &view = views_[op.getView()];
  RankedTensorType type = tileType(op.getResult());
  if (failed(checkElements(op, op.getView().getType(), type)))
    return failure();
  Type element = type.getElementType();
  Value buffer = allocate(type);
  Value row = scalar(op.getRow()), column = scalar(op.getCol());
  bool rowMajor = cast<tile::LayoutAttr>(type.getEncoding()).getKind() ==
                  tile::LayoutKind::Rows;
  if (rowMajor && op.getTransposed())
    return op.emitOpError() << "expects a transposed load in panels, got a "
                               "dot's right operand";
  int64_t memoryRows = type.getDimSize(op.getTransposed() ? 1 : 0);
  int64_t memoryColumns = type.getDimSize(op.getTransposed() ? 0 : 1);
  forEach(memoryRows, [&](Value r) {
    Value memoryRow = add(row, r);
    Value panel = arith::DivUIOp::create(b_, loc_, r, index(kHostLanes));
    Value lane = arith::RemUIOp::create(b_, loc_, r, index(kHostLanes));
    auto destination = [&](Value c) -> Value {
      Value position;
      if (rowMajor) {
        position = add(mul(r, rowPitch(type)), c);
      } else if (op.getTransposed()) {
        Value p = arith::DivUIOp::create(b_, loc_, c, index(kHostLanes));
        Value l = arith::RemUIOp::create(b_, loc_, c, index(kHostLanes));
        position = add(mul(add(mul(p, memoryRows), r), kHostLanes), l);
      } else {
        position =
            add(mul(add(mul(panel, memoryColumns), c), kHostLanes), lane);
      }
      return pointerAt(buffer, element, position);
    };
    copyRow(view, less(memoryRow, view.rows), memoryRow, column, memoryColumns,
            element, destination, rowMajor || op.getTransposed());
  });
  buffers_[op.getResult()] = buffer;
  return success();
}

/// The mask block is a constant by now and divides the tile.
FailureOr<int64_t> HostEmitter::constantBlock(Operation *op, Value block,
                                              int64_t rows) {
  APInt value;
  if (!matchPattern(block, m_ConstantInt(&value)) ||
      value.getSExtValue() <= 0 || rows % value.getSExtValue() != 0)
    return op->emitOpError() << "expects a constant block that divides the "
                                "tile's "
                             << rows << " rows, got another";
  return value.getSExtValue();
}

/// body(tile row, whether it exists, row of the view) for each row of a tile
/// made of the blocks list[first], list[first + 1], …
void HostEmitter::forListedRows(const View &list, Value first, Value count,
                                int64_t block, int64_t rows, Value limit,
                                function_ref<void(Value, Value, Value)> body) {
  Type i32 = b_.getI32Type();
  forEach(rows / block, [&](Value slot) {
    Value position = add(first, slot);
    // Entries beyond the count are never read, whatever they hold.
    auto entry = scf::IfOp::create(
        b_, loc_, less(position, count),
        [&](OpBuilder &, Location) {
          Value from =
              pointerAt(list.pointer, i32, mul(position, list.rowStride));
          scf::YieldOp::create(b_, loc_, load(i32, from, 4));
        },
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(b_, loc_,
                               ValueRange{arith::ConstantOp::create(
                                   b_, loc_, b_.getI32IntegerAttr(-1))});
        });
    Value number = arith::IndexCastOp::create(b_, loc_, b_.getIndexType(),
                                              entry.getResult(0));
    Value listed = arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::sge,
                                         number, index(0));
    Value base = mul(number, block);
    forEach(block, [&](Value r) {
      Value row = add(base, r);
      Value valid = arith::AndIOp::create(b_, loc_, listed, less(row, limit));
      body(add(mul(slot, block), r), valid, row);
    });
  });
}

LogicalResult HostEmitter::emitGather(tile::GatherOp op) {
  const View &view = views_[op.getView()];
  RankedTensorType type = tileType(op.getResult());
  Type element = type.getElementType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  FailureOr<int64_t> block = constantBlock(op, op.getBlock(), rows);
  if (failed(block) || failed(checkElements(op, op.getView().getType(), type)))
    return failure();
  if (cast<tile::LayoutAttr>(type.getEncoding()).getKind() !=
      tile::LayoutKind::Rows)
    return op.emitOpError()
           << "expects to feed the right operand of a dot, got "
              "another use";
  Value buffer = allocate(type);
  forListedRows(views_[op.getList()], scalar(op.getFirst()),
                scalar(op.getCount()), *block, rows, view.rows,
                [&](Value tileRow, Value valid, Value row) {
                  auto destination = [&](Value c) {
                    return pointerAt(buffer, element,
                                     add(mul(tileRow, rowPitch(type)), c));
                  };
                  copyRow(view, valid, row, index(0), columns, element,
                          destination, /*contiguous=*/true);
                });
  buffers_[op.getResult()] = buffer;
  return success();
}

LogicalResult HostEmitter::emitGatherPositions(tile::GatherPositionsOp op) {
  RankedTensorType type = tileType(op.getResult());
  int64_t rows = type.getDimSize(0);
  FailureOr<int64_t> block = constantBlock(op, op.getBlock(), rows);
  if (failed(block))
    return failure();
  Type i32 = b_.getI32Type();
  Value buffer = allocate(type);
  Value none = arith::ConstantOp::create(b_, loc_, b_.getI32IntegerAttr(-1));
  forListedRows(views_[op.getList()], scalar(op.getFirst()),
                scalar(op.getCount()), *block, rows, scalar(op.getLimit()),
                [&](Value tileRow, Value valid, Value row) {
                  Value number = arith::IndexCastOp::create(b_, loc_, i32, row);
                  store(arith::SelectOp::create(b_, loc_, valid, number, none),
                        pointerAt(buffer, i32, tileRow), 4);
                });
  buffers_[op.getResult()] = buffer;
  return success();
}

LogicalResult HostEmitter::emitStore(tile::StoreOp op) {
  if (op.getBelow())
    return op.emitOpError() << "expects no last row on the host, got one";
  const View &view = views_[op.getView()];
  RankedTensorType type = tileType(op.getValue());
  Type element = type.getElementType();
  if (failed(checkElements(op, op.getView().getType(), type)))
    return failure();
  FailureOr<Value> buffer = materialise(op.getValue());
  if (failed(buffer))
    return failure();
  SmallVector<Value> offsets;
  for (Value offset : op.getOffsets())
    offsets.push_back(scalar(offset));
  auto put = [&](Value position, Value to) {
    Value x = load(element, pointerAt(*buffer, element, position),
                   elementBytes(element));
    store(convert(x, view.elementType), to, elementBytes(view.elementType));
  };
  auto clipped = [&](Value offset, Value end, int64_t size) {
    return minimum(sub(end, offset), index(size));
  };
  if (type.getRank() == 1) {
    // Along the view's last dimension.
    bool matrix = view.rank == 2;
    Value offset = offsets.back();
    Value base = matrix ? mul(offsets[0], view.rowStride) : index(0);
    Value stride = matrix ? index(1) : view.rowStride;
    Value end =
        clipped(offset, matrix ? view.columns : view.rows, type.getDimSize(0));
    if (matrix) // a row beyond the end takes nothing
      end = arith::SelectOp::create(b_, loc_, less(offsets[0], view.rows), end,
                                    index(0));
    forLoop(index(0), end, 1, {}, [&](Value i, ValueRange) {
      Value position = add(base, mul(add(offset, i), stride));
      put(i, pointerAt(view.pointer, view.elementType, position));
      return SmallVector<Value>{};
    });
    return success();
  }
  int64_t columns = type.getDimSize(1);
  Value rowEnd = clipped(offsets[0], view.rows, type.getDimSize(0));
  Value columnEnd = clipped(offsets[1], view.columns, columns);
  forLoop(index(0), rowEnd, 1, {}, [&](Value r, ValueRange) {
    Value panel = arith::DivUIOp::create(b_, loc_, r, index(kHostLanes));
    Value lane = arith::RemUIOp::create(b_, loc_, r, index(kHostLanes));
    Value base = add(mul(add(offsets[0], r), view.rowStride), offsets[1]);
    forLoop(index(0), columnEnd, 1, {}, [&](Value c, ValueRange) {
      Value position = add(mul(add(mul(panel, columns), c), kHostLanes), lane);
      put(position, pointerAt(view.pointer, view.elementType, add(base, c)));
      return SmallVector<Value>{};
    });
    return SmallVector<Value>{};
  });
  return success();
}

LogicalResult HostEmitter::emitLoadScalar(tile::LoadScalarOp op) {
  const View &view = views_[op.getView()];
  if (view.elementType != op.getType())
    return op.emitOpError() << "expects elements of 16 bits or more on the "
                               "host, got "
                            << op.getType();
  Value position = mul(scalar(op.getIndex()), view.rowStride);
  Value from = pointerAt(view.pointer, view.elementType, position);
  scalars_.map(op.getResult(),
               load(view.elementType, from, elementBytes(view.elementType)));
  return success();
}

LogicalResult HostEmitter::emitLoadValues(tile::LoadValuesOp op) {
  const View &view = views_[op.getView()];
  RankedTensorType type = tileType(op.getResult());
  Type element = type.getElementType();
  if (op.getView().getType().getElementType() != element)
    return op.emitOpError()
           << "expects 32-bit elements, got " << op.getView().getType();
  Value buffer = allocate(type);
  Value first = scalar(op.getFirst()), otherwise = scalar(op.getOtherwise());
  // Also the padding of the last panel, so that lanes hold defined values.
  forEach(bufferElements(type), [&](Value i) {
    Value position = add(first, i);
    auto loaded = scf::IfOp::create(
        b_, loc_, less(position, view.rows),
        [&](OpBuilder &, Location) {
          Value from =
              pointerAt(view.pointer, element, mul(position, view.rowStride));
          scf::YieldOp::create(b_, loc_,
                               load(element, from, elementBytes(element)));
        },
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(b_, loc_, otherwise);
        });
    store(loaded.getResult(0), pointerAt(buffer, element, i),
          elementBytes(element));
  });
  buffers_[op.getResult()] = buffer;
  return success();
}

/// Dynamic scratches follow each other behind the static buffers.
LogicalResult HostEmitter::emitScratch(tile::ScratchOp op) {
  tile::ScratchType type = op.getResult().getType();
  int64_t rows = cast<IntegerAttr>(type.getRows()).getInt();
  if (rows != kHostLanes)
    return op.emitOpError() << "expects " << kHostLanes
                            << " rows of scratch on the host, got " << rows;
  APInt multiple;
  if (!matchPattern(op.getMultiple(), m_ConstantInt(&multiple)) ||
      multiple.getSExtValue() <= 0)
    return op.emitOpError() << "expects a positive constant multiple, got "
                               "another value";
  if (op->getParentOp() != kernel_.getOperation() || staticScratchBytes_ != 0)
    return op.emitOpError() << "expects to stand at the start of the kernel, "
                               "before any tile, got a later place";
  auto dim = op.getColumns().getDefiningOp<tile::DimOp>();
  if (!dim)
    return op.emitOpError() << "expects columns from a tile.dim on the host, "
                               "got a constant";
  int slot = globals_[dim.getSource()].firstSlot + 1 +
             static_cast<int>(dim.getDimension());
  int64_t columnBytes = rows * elementBytes(type.getElementType());
  dynamicScratch_.push_back(
      b_.getDenseI64ArrayAttr({columnBytes, multiple.getSExtValue(), slot}));

  // Dynamic scratches come first, each rounded up to whole cache lines, because
  // the static part's size is only known at the end of the kernel.
  Value columns =
      mul(arith::CeilDivUIOp::create(b_, loc_, scalar(op.getColumns()),
                                     index(multiple.getSExtValue())),
          multiple.getSExtValue());
  Value bytes =
      mul(arith::CeilDivUIOp::create(b_, loc_, mul(columns, columnBytes),
                                     index(kHostAlignment)),
          kHostAlignment);
  scratches_[op.getResult()] = {scratch_, rows};
  scratch_ = pointerAt(scratch_, b_.getI8Type(), bytes);
  return success();
}

LogicalResult HostEmitter::emitScratchLoad(tile::ScratchLoadOp op) {
  RankedTensorType type = tileType(op.getResult());
  Type element = type.getElementType();
  Value position = mul(scalar(op.getCol()), kHostLanes);
  buffers_[op.getResult()] =
      pointerAt(scratches_[op.getScratch()].pointer, element, position);
  borrowed_.insert(op.getResult());
  return success();
}

LogicalResult HostEmitter::emitScratchStore(tile::ScratchStoreOp op) {
  Type element = tileType(op.getValue()).getElementType();
  Value position = mul(scalar(op.getCol()), kHostLanes);
  return materialiseInto(
      op.getValue(),
      pointerAt(scratches_[op.getScratch()].pointer, element, position));
}

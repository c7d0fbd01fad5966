// SPDX-License-Identifier: Apache-2.0
//
// Rank-1 tensors of a team's warps: to and from scratch, sums, ranks, lists.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;
using namespace mlir::sparge;

/// The element that register `index` of this lane holds.
Value NvvmEmitter::rowIndex(const RowPlace &place, int64_t index) {
  int64_t group = index / place.perLane, inGroup = index % place.perLane;
  return p_.add(p_.mul(lane_, place.perLane),
                group * 32 * place.perLane + inGroup);
}

/// Whether there is such an element.
Value NvvmEmitter::inRow(const RowPlace &place, int64_t index) {
  if (place.isWhole())
    return p_.constantLike(p_.i1(), b_.getBoolAttr(true));
  return p_.less(rowIndex(place, index), p_.constant(place.size));
}

static LogicalResult checkWhole(Operation *op, bool isWhole, Type type) {
  if (!isWhole)
    return op->emitOpError()
           << "expects equally many elements in each lane, got " << type;
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RowLoadOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  RowPlace place(type.getDimSize(0));
  if (failed(checkWhole(op, place.isWhole(), type)))
    return failure();
  const Scratch scratch = scratches_[op.getScratch()];
  Value word = p_.add(p_.mul(scalar(op.getRow()), scratch.stride),
                      p_.add(scalar(op.getCol()), rowIndex(place, 0)));
  Value address = p_.add(scratch.address, p_.mul(word, 4));
  Registers registers;
  for (int64_t group = 0; group < place.groups; ++group)
    for (Value bits : p_.loadSharedWords(
             p_.add(address, group * 128 * place.perLane), place.perLane))
      registers.push_back(type.getElementType().isF32()
                              ? Value(arith::BitcastOp::create(
                                    b_, p_.location(), p_.f32(), bits))
                              : bits);
  hold(op.getResult(), std::move(registers));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadRunOp op) {
  RowPlace place(cast<RankedTensorType>(op.getType()).getDimSize(0));
  const View view = views_[op.getView()];
  StringRef load = view.elementType.isInteger(8)
                       ? "{ mov.u32 $0, 0; @$2 ld.global.u8 $0, [$1]; }"
                       : "{ mov.u32 $0, 0; @$2 ld.global.b32 $0, [$1]; }";
  Registers registers;
  for (int64_t i = 0; i < place.registers(); ++i) {
    Value index = p_.add(scalar(op.getFirst()), rowIndex(place, i));
    Value isThere = arith::AndIOp::create(b_, p_.location(), inRow(place, i),
                                          p_.lessUnsigned(index, view.rows));
    Value pointer =
        p_.globalPointer(view.pointer, view.elementType, p_.signExtend(index));
    registers.push_back(
        p_.ptx(load, "=&r,l,b,~{memory}", {pointer, isThere}, p_.i32())
            .front());
  }
  hold(op.getResult(), std::move(registers));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RowGatherOp op) {
  Type element = cast<RankedTensorType>(op.getType()).getElementType();
  FailureOr<Registers> positions = registersOf(op.getPositions());
  if (failed(positions))
    return failure();
  const Scratch scratch = scratches_[op.getScratch()];
  Value row = p_.mul(scalar(op.getRow()), scratch.stride);
  Registers registers;
  for (Value position : *positions)
    registers.push_back(p_.loadShared(
        element, p_.add(scratch.address, p_.mul(p_.add(row, position), 4))));
  hold(op.getResult(), std::move(registers));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RowStoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  if (type.getElementType().isInteger(1))
    return storeFlags(op);
  RowPlace place(type.getDimSize(0));
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value) || failed(checkWhole(op, place.isWhole(), type)))
    return failure();
  const Scratch scratch = scratches_[op.getScratch()];
  Value row = p_.mul(scalar(op.getRow()), scratch.stride);
  for (int64_t i = 0; i < place.registers(); ++i) {
    Value word = p_.add(row, p_.add(scalar(op.getCol()), rowIndex(place, i)));
    p_.storeSharedWhere(inRow(place, i), (*value)[static_cast<size_t>(i)],
                        p_.add(scratch.address, p_.mul(word, 4)));
  }
  p_.syncWarp();
  return success();
}

/// What changes no sum or maximum.
static TypedAttr neutral(OpBuilder &b, tile::ReduceKind kind, Type type) {
  bool isSum = kind == tile::ReduceKind::Sum;
  if (isa<FloatType>(type))
    return b.getFloatAttr(
        type, isSum ? 0.0 : -std::numeric_limits<double>::infinity());
  return b.getIntegerAttr(type,
                          isSum ? 0 : std::numeric_limits<int32_t>::min());
}

LogicalResult NvvmEmitter::emit(tile::TotalOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  RowPlace place(type.getDimSize(0));
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  SmallVector<Value> own(*source);
  if (!place.isWhole()) {
    Value none =
        p_.constantLike(type.getElementType(),
                        neutral(b_, op.getKind(), type.getElementType()));
    for (int64_t i = 0; i < place.registers(); ++i) {
      Value &element = own[static_cast<size_t>(i)];
      element = p_.select(inRow(place, i), element, none);
    }
  }
  Value total = combineAll(op.getKind(), own);
  if (type.getElementType().isInteger(32)) {
    StringRef name = op.getKind() == tile::ReduceKind::Sum
                         ? "llvm.nvvm.redux.sync.add"
                         : "llvm.nvvm.redux.sync.max";
    total = p_.intrinsic(name, p_.i32(), {total, p_.constant(-1)});
  } else {
    for (int64_t mask : {16, 8, 4, 2, 1})
      total = combine(op.getKind(), total, p_.fromLaneXor(total, mask));
  }
  scalars_.map(op.getResult(), total);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::AddProductsOp op) {
  FailureOr<Registers> a = registersOf(op.getA()), b = registersOf(op.getB()),
                       sums = registersOf(op.getSums());
  if (failed(a) || failed(b) || failed(sums))
    return failure();
  auto type = cast<RankedTensorType>(op.getA().getType());
  if (failed(checkWhole(op, RowPlace(type.getDimSize(0)).isWhole(), type)))
    return failure();
  Value sum = sums->front();
  for (auto [x, y] : llvm::zip(*a, *b))
    sum = LLVM::FMAOp::create(b_, p_.location(), x, y, sum);
  hold(op.getResult(), {sum});
  return success();
}

LogicalResult NvvmEmitter::emit(tile::PickOp op) {
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  scalars_.map(op.getResult(),
               p_.fromLane(source->front(), scalar(op.getIndex())));
  return success();
}

/// The sum of `word` over all lower lanes and this one.
Value NvvmEmitter::sumUpTo(Value word) {
  Location loc = p_.location();
  auto withFlag =
      LLVM::LLVMStructType::getLiteral(b_.getContext(), {p_.i32(), p_.i1()});
  for (int64_t distance : {1, 2, 4, 8, 16}) {
    Value pair = NVVM::ShflOp::create(b_, loc, withFlag, p_.constant(-1), word,
                                      p_.constant(distance), p_.constant(0),
                                      NVVM::ShflKind::up, b_.getUnitAttr());
    Value lower = LLVM::ExtractValueOp::create(b_, loc, pair, 0);
    Value isThere = LLVM::ExtractValueOp::create(b_, loc, pair, 1);
    word = p_.add(word, p_.select(isThere, lower, p_.constant(0)));
  }
  return word;
}

LogicalResult NvvmEmitter::emit(tile::SumUpToOp op) {
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  hold(op.getResult(), {sumUpTo(source->front())});
  return success();
}

/// A lane's rank is what lower lanes have in its group, all lanes in earlier
/// groups, and it has itself in earlier registers. The counts of four groups
/// share a word, since a group's is 128 at most.
LogicalResult NvvmEmitter::emit(tile::RankOp op) {
  constexpr int64_t kGroupsOfWord = 4, kCountBits = 8;
  Location loc = p_.location();
  RowPlace place(
      cast<RankedTensorType>(op.getSource().getType()).getDimSize(0));
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  Registers flags;
  SmallVector<Value> words;
  for (int64_t i = 0; i < place.registers(); ++i) {
    Value flag = arith::AndIOp::create(
        b_, loc, (*source)[static_cast<size_t>(i)], inRow(place, i));
    flags.push_back(arith::ExtUIOp::create(b_, loc, p_.i32(), flag));
    int64_t inWord = i / place.perLane % kGroupsOfWord;
    Value count = p_.mul(flags.back(), int64_t(1) << (kCountBits * inWord));
    if (i % (kGroupsOfWord * place.perLane) == 0)
      words.push_back(count);
    else
      words.back() = p_.add(words.back(), count);
  }
  Value before = p_.constant(0), lower, all;
  Registers ranks;
  for (int64_t group = 0; group < place.groups; ++group) {
    int64_t inWord = group % kGroupsOfWord;
    if (inWord == 0) {
      Value word = words[static_cast<size_t>(group / kGroupsOfWord)];
      Value upTo = sumUpTo(word);
      lower = p_.sub(upTo, word);
      all = p_.fromLane(upTo, p_.constant(31));
    }
    auto countOf = [&](Value counts) {
      return p_.bitAnd(p_.divide(counts, int64_t(1) << (kCountBits * inWord)),
                       p_.constant(255));
    };
    Value rank = p_.add(before, countOf(lower));
    for (int64_t i = 0; i < place.perLane; ++i) {
      ranks.push_back(rank);
      rank = p_.add(rank, flags[ranks.size() - 1]);
    }
    before = p_.add(before, countOf(all));
  }
  hold(op.getResult(), std::move(ranks));
  return success();
}

/// Stores each element of `values` that `where` holds for at its position, if
/// that is below `limit`. `store` gets the condition, the value, the position.
LogicalResult
NvvmEmitter::emitScatter(Value values, Value positions, Value where,
                         Value limit,
                         function_ref<void(Value, Value, Value)> store) {
  RowPlace place(cast<RankedTensorType>(values.getType()).getDimSize(0));
  FailureOr<Registers> stored = registersOf(values),
                       at = registersOf(positions), wanted = registersOf(where);
  if (failed(stored) || failed(at) || failed(wanted))
    return failure();
  for (int64_t i = 0; i < place.registers(); ++i) {
    auto number = static_cast<size_t>(i);
    Value position = (*at)[number];
    Value stores = arith::AndIOp::create(b_, p_.location(), (*wanted)[number],
                                         p_.lessUnsigned(position, limit));
    stores = arith::AndIOp::create(b_, p_.location(), stores, inRow(place, i));
    store(stores, (*stored)[number], position);
  }
  return success();
}

LogicalResult NvvmEmitter::emit(tile::ScatterOp op) {
  const View view = views_[op.getView()];
  return emitScatter(op.getValues(), op.getPositions(), op.getWhere(),
                     view.rows, [&](Value stores, Value value, Value position) {
                       p_.storeGlobalWhere(
                           stores, value,
                           p_.globalPointer(view.pointer, view.elementType,
                                            p_.signExtend(position)));
                     });
}

LogicalResult NvvmEmitter::emit(tile::ScatterAtOp op) {
  RowPlace place(
      cast<RankedTensorType>(op.getValues().getType()).getDimSize(0));
  const View view = views_[op.getView()];
  FailureOr<Registers> values = registersOf(op.getValues()),
                       rows = registersOf(op.getRows()),
                       columns = registersOf(op.getColumns()),
                       where = registersOf(op.getWhere());
  if (failed(values) || failed(rows) || failed(columns) || failed(where))
    return failure();
  for (int64_t i = 0; i < place.registers(); ++i) {
    auto at = static_cast<size_t>(i);
    Value stores = inRow(place, i);
    for (Value condition :
         {(*where)[at], p_.lessUnsigned((*rows)[at], view.rows),
          p_.lessUnsigned((*columns)[at], view.columns)})
      stores = arith::AndIOp::create(b_, p_.location(), stores, condition);
    Value offset = p_.add(p_.mul(p_.signExtend((*rows)[at]), view.rowStride),
                          p_.signExtend((*columns)[at]));
    p_.storeGlobalWhere(
        stores, (*values)[at],
        p_.globalPointer(view.pointer, view.elementType, offset));
  }
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RowScatterOp op) {
  const Scratch scratch = scratches_[op.getScratch()];
  Value row = p_.add(scratch.address,
                     p_.mul(p_.mul(scalar(op.getRow()), scratch.stride), 4));
  // Other lanes may still read what was there.
  p_.syncWarp();
  LogicalResult result = emitScatter(
      op.getValues(), op.getPositions(), op.getWhere(), scratch.columns,
      [&](Value stores, Value value, Value position) {
        p_.storeSharedWhere(stores, value, p_.add(row, p_.mul(position, 4)));
      });
  if (succeeded(result))
    p_.syncWarp();
  return result;
}

/// 16 bytes a lane, between at most three words at each end.
LogicalResult NvvmEmitter::emit(tile::FillRestOp op) {
  Location loc = p_.location();
  const View view = views_[op.getView()];
  Value value = scalar(op.getValue());
  if (value.getType().isF32())
    value = arith::BitcastOp::create(b_, loc, p_.i32(), value);
  Value base = LLVM::PtrToIntOp::create(b_, loc, p_.i64(), view.pointer);
  auto place = [&](Value word) {
    return p_.add(base, p_.mul(p_.signExtend(word), p_.constant64(4)));
  };
  Value count = view.rows;
  Value first = arith::MinSIOp::create(b_, loc, scalar(op.getFirst()), count);
  // Words from the base up to the next multiple of 16 bytes.
  Value low = arith::TruncIOp::create(b_, loc, p_.i32(), base);
  Value offset = p_.bitAnd(p_.divide(low, 4), p_.constant(3));
  Value start = p_.add(first, offset);
  Value stop = p_.add(count, offset);
  Value bodyFrom = p_.bitAnd(p_.add(start, 3), p_.constant(-4));
  bodyFrom = arith::MinSIOp::create(b_, loc, bodyFrom, stop);
  Value bodyTo = p_.bitAnd(stop, p_.constant(-4));
  bodyTo = arith::MaxSIOp::create(b_, loc, bodyTo, bodyFrom);
  auto fillEnd = [&](Value from, Value to) {
    Value word = p_.add(from, lane_);
    p_.ptxWhere(p_.less(word, to), "st.global.b32 [$0], $1;", "l,r",
                {place(p_.sub(word, offset)), value});
  };
  fillEnd(start, bodyFrom);
  fillEnd(bodyTo, stop);
  Value mine = p_.add(bodyFrom, p_.mul(lane_, 4));
  auto loop = scf::ForOp::create(b_, loc, mine, bodyTo, p_.constant(128));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  Value word = p_.sub(loop.getInductionVar(), offset);
  p_.ptx("st.global.v4.b32 [$0], {$1, $1, $1, $1};", "l,r,~{memory}",
         {place(word), value});
  return success();
}

LogicalResult NvvmEmitter::emit(tile::StoreScalarOp op) {
  const View view = views_[op.getView()];
  p_.storeGlobalWhere(role_.elected, scalar(op.getValue()),
                      p_.globalPointer(view.pointer, view.elementType,
                                       p_.signExtend(scalar(op.getIndex()))));
  return success();
}

/// One row of a view of f32, in 16-byte pieces.
LogicalResult NvvmEmitter::storeRow(tile::StoreOp op) {
  Location loc = p_.location();
  auto type = cast<RankedTensorType>(op.getValue().getType());
  RowPlace place(type.getDimSize(0));
  const View view = views_[op.getView()];
  if (type.getRank() != 1 || op.getOffsets().size() != 2 ||
      !type.getElementType().isF32() || !view.elementType.isF32())
    return op.emitOpError() << "expects one row of f32, got " << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  Value row = scalar(op.getOffsets()[0]);
  Value offset = p_.mul(p_.signExtend(row), view.rowStride);
  Value isThere = p_.less(row, view.rows);
  for (int64_t i = 0; i < place.registers(); i += place.perLane) {
    Value column = p_.add(scalar(op.getOffsets()[1]), rowIndex(place, i));
    Value stores = arith::AndIOp::create(b_, loc, isThere, inRow(place, i));
    Value pointer = p_.globalPointer(view.pointer, view.elementType,
                                     p_.add(offset, p_.signExtend(column)));
    SmallVector<Value> operands{pointer};
    llvm::append_range(
        operands, ArrayRef(*value).slice(static_cast<size_t>(i),
                                         static_cast<size_t>(place.perLane)));
    if (place.perLane == 4)
      p_.ptxWhere(stores, "st.global.v4.f32 [$0], {$1, $2, $3, $4};",
                  "l,f,f,f,f", operands);
    else if (place.perLane == 2)
      p_.ptxWhere(stores, "st.global.v2.f32 [$0], {$1, $2};", "l,f,f",
                  operands);
    else
      p_.ptxWhere(stores, "st.global.f32 [$0], $1;", "l,f", operands);
  }
  return success();
}

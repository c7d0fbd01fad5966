// SPDX-License-Identifier: Apache-2.0
//
// Rows of flags in a team's scratch, a bit each: element i of a row is bit i
// mod 32 of word i / 32. A lane takes a word, so that 1024 flags are one
// register, and their numbers are listed by one sum over the lanes.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kWordFlags = 32;

Value NvvmEmitter::flagRow(const Scratch &scratch, Value row) {
  return p_.add(scratch.address, p_.mul(p_.mul(row, scratch.stride), 4));
}

/// Eight flags as the low bits of a word.
static Value packEight(PtxBuilder &p, ArrayRef<Value> flags) {
  assert(flags.size() == 8);
  return p
      .purePtx("{ mov.u32 $0, 0;\n"
               "@$1 or.b32 $0, $0, 1;\n"
               "@$2 or.b32 $0, $0, 2;\n"
               "@$3 or.b32 $0, $0, 4;\n"
               "@$4 or.b32 $0, $0, 8;\n"
               "@$5 or.b32 $0, $0, 16;\n"
               "@$6 or.b32 $0, $0, 32;\n"
               "@$7 or.b32 $0, $0, 64;\n"
               "@$8 or.b32 $0, $0, 128; }",
               "=&r,b,b,b,b,b,b,b,b", flags, p.i32())
      .front();
}

/// A lane holds four flags of each group of 128; of two groups, an even lane
/// stores those of the first that it and the next lane have, an odd lane those
/// of the second. Whoever reads them waits for the warp.
LogicalResult NvvmEmitter::storeFlags(tile::RowStoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  RowPlace place(type.getDimSize(0));
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  if (place.size % 256 != 0)
    return op.emitOpError() << "expects a multiple of 256 flags, got " << type;
  const Scratch scratch = scratches_[op.getScratch()];
  Value odd = p_.remainder(lane_, 2);
  Value isOdd = p_.equals(odd, 1);
  Value bytes = p_.add(flagRow(scratch, scalar(op.getRow())),
                       p_.divide(scalar(op.getCol()), 8));
  bytes = p_.add(bytes, p_.add(p_.mul(odd, 16), p_.divide(lane_, 2)));
  for (int64_t i = 0; i < place.size / 256; ++i) {
    Value own =
        packEight(p_, ArrayRef(*value).slice(static_cast<size_t>(8 * i), 8));
    Value other = p_.fromLaneXor(own, 1);
    Value even = p_.add(p_.bitAnd(own, p_.constant(15)), p_.mul(other, 16));
    Value second =
        p_.add(p_.divide(other, 16), p_.bitAnd(own, p_.constant(240)));
    p_.ptx("{ .reg .b16 low; cvt.u16.u32 low, $1; st.shared.b8 [$0], low; }",
           "r,r,~{memory}",
           {p_.add(bytes, 32 * i), p_.select(isOdd, second, even)});
  }
  return success();
}

LogicalResult NvvmEmitter::emit(tile::SetTrueOp op) {
  RowPlace place(
      cast<RankedTensorType>(op.getPositions().getType()).getDimSize(0));
  FailureOr<Registers> positions = registersOf(op.getPositions()),
                       where = registersOf(op.getWhere());
  if (failed(positions) || failed(where))
    return failure();
  Value row = flagRow(scratches_[op.getScratch()], scalar(op.getRow()));
  p_.syncWarp();
  for (int64_t i = 0; i < place.registers(); ++i) {
    auto at = static_cast<size_t>(i);
    Value position = (*positions)[at];
    Value sets =
        arith::AndIOp::create(b_, p_.location(), (*where)[at], inRow(place, i));
    Value bit = arith::ShLIOp::create(b_, p_.location(), p_.constant(1),
                                      p_.remainder(position, kWordFlags));
    Value word = p_.add(row, p_.mul(p_.divide(position, kWordFlags), 4));
    p_.ptxWhere(sets, "red.shared.or.b32 [$0], $1;", "r,r", {word, bit});
  }
  return success();
}

/// The first `count` flags of a word; none where it is negative.
static Value lowFlags(PtxBuilder &p, Value count) {
  return p
      .purePtx("{ max.s32 $0, $1, 0; bmsk.clamp.b32 $0, 0, $0; }", "=&r,r",
               {count}, p.i32())
      .front();
}

LogicalResult NvvmEmitter::emit(tile::SetRunTrueOp op) {
  Location loc = p_.location();
  Value row = flagRow(scratches_[op.getScratch()], scalar(op.getRow()));
  Value first = scalar(op.getFirst()), end = scalar(op.getEnd());
  p_.syncWarp();
  Value from = p_.add(p_.divide(first, kWordFlags), lane_);
  Value to = p_.divide(p_.add(end, kWordFlags - 1), kWordFlags);
  auto loop = scf::ForOp::create(b_, loc, from, to, p_.constant(kWordFlags));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  Value word = loop.getInductionVar();
  Value start = p_.mul(word, kWordFlags);
  Value address = p_.add(row, p_.mul(word, 4));
  Value before = lowFlags(p_, p_.sub(first, start));
  Value inside = p_.bitAnd(lowFlags(p_, p_.sub(end, start)),
                           p_.bitXor(before, p_.constant(-1)));
  Value flags =
      arith::OrIOp::create(b_, loc, p_.loadShared(p_.i32(), address), inside);
  p_.ptx("st.shared.b32 [$0], $1;", "r,r,~{memory}", {address, flags});
  return success();
}

/// A lane takes neighbouring words, so that one sum over the lanes is enough.
/// `store` gets a word's first place, its flags and how many of them find a
/// place, and the number of its first flag.
Value NvvmEmitter::listFlags(Value row, Value end, Value limit,
                             function_ref<void(ValueRange, Value)> store) {
  Location loc = p_.location();
  p_.syncWarp();
  Value own = p_.divide(p_.add(end, kWordFlags * kWordFlags - 1),
                        kWordFlags * kWordFlags);
  Value start = p_.mul(p_.mul(lane_, own), kWordFlags);
  auto wordAt = [&](Value first) {
    Value left = p_.sub(end, first);
    Value isThere = p_.less(p_.constant(0), left);
    // What lies behind the row's end is not read.
    Value byte = p_.divide(p_.select(isThere, first, p_.constant(0)), 8);
    return p_.bitAnd(p_.loadShared(p_.i32(), p_.add(row, byte)),
                     lowFlags(p_, left));
  };
  auto overWords = [&](Value sum, function_ref<Value(Value, Value)> step) {
    auto loop = scf::ForOp::create(b_, loc, p_.constant(0), own, p_.constant(1),
                                   ValueRange{sum});
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    Value first = p_.add(start, p_.mul(loop.getInductionVar(), kWordFlags));
    scf::YieldOp::create(b_, loc,
                         ValueRange{step(first, loop.getRegionIterArg(0))});
    return loop.getResult(0);
  };
  Value count =
      overWords(p_.constant(0), [&](Value first, Value before) -> Value {
        return p_.add(before,
                      LLVM::CtPopOp::create(b_, loc, p_.i32(), wordAt(first)));
      });
  Value upTo = sumUpTo(count);
  overWords(p_.sub(upTo, count), [&](Value first, Value place) -> Value {
    Value flags = wordAt(first);
    Value here = LLVM::CtPopOp::create(b_, loc, p_.i32(), flags);
    // So many of them find a place.
    Value room =
        arith::MaxSIOp::create(b_, loc, p_.sub(limit, place), p_.constant(0));
    Value stored = arith::MinSIOp::create(b_, loc, here, room);
    store({place, flags, stored}, first);
    return p_.add(place, here);
  });
  p_.syncWarp();
  return p_.fromLane(upTo, p_.constant(31));
}

/// Writes the numbers of `count` flags from the lowest, plus `first`, to
/// neighbouring words.
static std::string listLoop(StringRef space, StringRef width) {
  return ("{ .reg .pred more; .reg .b32 flags, left, lowest, number;\n"
          ".reg .b" +
          width +
          " to;\n"
          "mov.b" +
          width +
          " to, $0;\n"
          "mov.b32 flags, $1;\n"
          "mov.b32 left, $2;\n"
          "setp.gt.s32 more, left, 0;\n"
          "@!more bra done;\n"
          "next: neg.s32 lowest, flags;\n"
          "and.b32 lowest, lowest, flags;\n"
          "bfind.u32 number, lowest;\n"
          "add.s32 number, number, $3;\n"
          "st." +
          space +
          ".b32 [to], number;\n"
          "add.s" +
          width +
          " to, to, 4;\n"
          "xor.b32 flags, flags, lowest;\n"
          "add.s32 left, left, -1;\n"
          "setp.gt.s32 more, left, 0;\n"
          "@more bra next;\n"
          "done: }")
      .str();
}

LogicalResult NvvmEmitter::emit(tile::ListTrueOp op) {
  const View view = views_[op.getView()];
  auto store = [&](ValueRange where, Value first) {
    Value to = p_.globalPointer(view.pointer, view.elementType,
                                p_.signExtend(where[0]));
    p_.ptx(listLoop("global", "64"), "l,r,r,r,~{memory}",
           {to, where[1], where[2], first});
  };
  Value row = flagRow(scratches_[op.getScratch()], scalar(op.getRow()));
  scalars_.map(op.getResult(),
               listFlags(row, scalar(op.getEnd()), view.rows, store));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RowListTrueOp op) {
  const Scratch target = scratches_[op.getTarget()];
  Value base = flagRow(target, scalar(op.getTargetRow()));
  auto store = [&](ValueRange where, Value first) {
    p_.ptx(listLoop("shared", "32"), "r,r,r,r,~{memory}",
           {p_.add(base, p_.mul(where[0], 4)), where[1], where[2], first});
  };
  Value row = flagRow(scratches_[op.getScratch()], scalar(op.getRow()));
  scalars_.map(op.getResult(),
               listFlags(row, scalar(op.getEnd()), target.columns, store));
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Products of float32 rows on the tensor core, in float16 parts.
//
// A row x is scaled by a power of two, y = x 2^e with the largest |y| in
// [2^14, 2^15), and split, y = high + low, high = float16(y), low = float16(y -
// high): low is exact to 2^-22 of y, and to 2^-39 of the largest where y is so
// small that low is denormal. The tensor core multiplies parts exactly and sums
// in float32; low · low, 2^-22 of the product, is left out.
//
// Split, four columns are four words, a piece: pairs of high parts, then pairs
// of low ones. Eight rows lie together, 16 columns at a time, as a warp loads
// them in one piece of 512 bytes; behind all rows are the floats that undo
// their scaling.
//
// mma.m16n8k16 sums over k in any order that both operands share: a lane's
// elements 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of step s are here the
// neighbouring columns 16 s + 4 t + {0, 1, 2, 3}, one 16-byte load. The view's
// rows are the right operand, whose two registers of a part are then neighbours
// as loaded, and staged rows the left one, laid out as its four registers: no
// register is moved.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kStepColumns = 16, kPiece = 4;
/// Words of eight rows' pieces of a step.
static constexpr int64_t kEightWords = 8 * kStepColumns;

/// Both parts of two neighbouring elements, as pairs.
std::pair<Value, Value> NvvmEmitter::splitPair(Value first, Value second,
                                               Value scale) {
  Location loc = p_.location();
  auto halves = VectorType::get({2}, b_.getF16Type());
  auto pack = [&](Value a, Value b) {
    return p_.intrinsic("llvm.nvvm.ff2f16x2.rn", halves, {b, a});
  };
  Value a = arith::MulFOp::create(b_, loc, first, scale);
  Value b = arith::MulFOp::create(b_, loc, second, scale);
  Value high = pack(a, b);
  auto rest = [&](Value whole, int64_t index) -> Value {
    Value part =
        LLVM::ExtractElementOp::create(b_, loc, high, p_.constant(index));
    Value wide = LLVM::FPExtOp::create(b_, loc, p_.f32(), part);
    return arith::SubFOp::create(b_, loc, whole, wide);
  };
  Value low = pack(rest(a, 0), rest(b, 1));
  return {LLVM::BitcastOp::create(b_, loc, p_.i32(), high),
          LLVM::BitcastOp::create(b_, loc, p_.i32(), low)};
}

/// A lane's columns are neighbours (RowPlace): it stores words of whole pairs,
/// or of one pair with the next lane.
LogicalResult NvvmEmitter::emit(tile::StoreSplitOp op) {
  Location loc = p_.location();
  RowPlace place(cast<RankedTensorType>(op.getValue().getType()).getDimSize(0));
  const View view = views_[op.getView()];
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  Registers columns;
  for (int64_t i = 0; i < place.registers(); ++i)
    columns.push_back(
        p_.select(inRow(place, i), (*value)[static_cast<size_t>(i)], zero));
  SmallVector<Value> sizes;
  for (Value column : columns)
    sizes.push_back(LLVM::FAbsOp::create(b_, loc, column));
  // As integers, among which a NaN is the largest.
  Value bits;
  for (Value size : sizes) {
    Value own = arith::BitcastOp::create(b_, loc, p_.i32(), size);
    bits = bits ? Value(arith::MaxSIOp::create(b_, loc, bits, own)) : own;
  }
  bits = p_.intrinsic("llvm.nvvm.redux.sync.max", p_.i32(),
                      {bits, p_.constant(-1)});
  // Exponent fields: of the largest, of 2^(14 - exponent), and of its inverse.
  constexpr int64_t kMantissaBits = 23, kBias = 127, kTop = 14;
  Value exponent = p_.divide(bits, int64_t(1) << kMantissaBits);
  exponent = arith::MaxUIOp::create(b_, loc, exponent, p_.constant(kTop + 1));
  exponent = arith::MinUIOp::create(b_, loc, exponent, p_.constant(254));
  auto power = [&](Value field) -> Value {
    Value shifted = p_.mul(field, int64_t(1) << kMantissaBits);
    return arith::BitcastOp::create(b_, loc, p_.f32(), shifted);
  };
  Value scale = power(p_.sub(p_.constant(2 * kBias + kTop), exponent));

  Value row = scalar(op.getRow());
  Value stores = p_.less(row, view.rows);
  const int64_t steps = (place.size + kStepColumns - 1) / kStepColumns;
  Value rowWord = p_.add(p_.mul(p_.divide(row, 8), steps * kEightWords),
                         p_.mul(p_.remainder(row, 8), kStepColumns));
  const int64_t step = std::max<int64_t>(place.perLane, 2);
  for (int64_t i = 0; i < place.registers(); i += place.perLane) {
    auto at = static_cast<size_t>(i);
    Value column = rowIndex(place, i);
    Value isOwn = arith::AndIOp::create(b_, loc, stores, inRow(place, i));
    SmallVector<Value> own(
        ArrayRef(columns).slice(at, static_cast<size_t>(place.perLane)));
    if (place.perLane == 1) {
      own.push_back(p_.fromLaneXor(own[0], 1));
      isOwn = arith::AndIOp::create(b_, loc, isOwn,
                                    p_.equals(p_.remainder(lane_, 2), 0));
    }
    SmallVector<Value> highs, lows;
    for (int64_t j = 0; j < step; j += 2) {
      auto [high, low] = splitPair(own[static_cast<size_t>(j)],
                                   own[static_cast<size_t>(j + 1)], scale);
      highs.push_back(high);
      lows.push_back(low);
    }
    // A piece's words are 0 and 1 of its high parts, 2 and 3 of the low ones.
    Value inPiece = p_.remainder(column, kPiece);
    Value word = p_.add(
        p_.add(rowWord, p_.mul(p_.divide(column, kStepColumns), kEightWords)),
        p_.add(p_.sub(p_.remainder(column, kStepColumns), inPiece),
               p_.divide(inPiece, 2)));
    Value pointer =
        p_.globalPointer(view.pointer, view.elementType, p_.signExtend(word));
    if (step == kPiece) {
      p_.ptxWhere(isOwn, "st.global.v4.b32 [$0], {$1, $2, $3, $4};",
                  "l,r,r,r,r", {pointer, highs[0], highs[1], lows[0], lows[1]});
    } else {
      p_.ptxWhere(isOwn, "st.global.b32 [$0], $1;", "l,r", {pointer, highs[0]});
      p_.ptxWhere(isOwn, "st.global.b32 [$0+8], $1;", "l,r",
                  {pointer, lows[0]});
    }
  }
  Value isFirst = arith::AndIOp::create(b_, loc, stores, role_.elected);
  p_.storeGlobalWhere(isFirst, power(p_.add(exponent, -kTop)),
                      factorPointer(view, row, place.size));
  return success();
}

/// Where the factor of a row of a split view is.
Value NvvmEmitter::factorPointer(const View &view, Value row, int64_t columns) {
  const int64_t steps = (columns + kStepColumns - 1) / kStepColumns;
  Value eights = p_.divide(p_.add(view.rows, 7), 8);
  return p_.globalPointer(
      view.pointer, p_.f32(),
      p_.signExtend(p_.add(p_.mul(eights, steps * kEightWords), row)));
}

/// This lane's pieces of steps [first, end) of eight rows of a split view, 0
/// beyond `columns`.
SmallVector<Value> NvvmEmitter::loadPieces(const View &view, Value eight,
                                           int64_t columns, int64_t first,
                                           int64_t end) {
  Location loc = p_.location();
  const int64_t steps = (columns + kStepColumns - 1) / kStepColumns;
  auto piece = VectorType::get({kPiece}, p_.i32());
  Value word =
      p_.add(p_.mul(eight, steps * kEightWords), p_.mul(lane_, kPiece));
  Value base =
      p_.globalPointer(view.pointer, view.elementType, p_.signExtend(word));
  SmallVector<Value> words;
  for (int64_t step = first; step < end; ++step) {
    Value loaded = LLVM::LoadOp::create(
        b_, loc, piece,
        p_.globalPointer(base, view.elementType,
                         p_.constant64(step * kEightWords)),
        /*alignment=*/16);
    bool isPartial = (step + 1) * kStepColumns > columns;
    Value isThere = p_.less(p_.remainder(lane_, 4),
                            p_.constant(columns % kStepColumns / kPiece));
    for (int64_t i = 0; i < kPiece; ++i) {
      Value part =
          LLVM::ExtractElementOp::create(b_, loc, loaded, p_.constant(i));
      words.push_back(isPartial ? p_.select(isThere, part, p_.constant(0))
                                : part);
    }
  }
  return words;
}

/// The eight of rows with number `eight`, or the last one.
Value NvvmEmitter::eightOf(const View &view, Value eight) {
  return arith::MinSIOp::create(b_, p_.location(), eight,
                                p_.divide(p_.add(view.rows, -1), 8));
}

/// Rows of q into shared memory. Eight rows to a warp at a time; lane 4 r + t
/// works on row r, the first or second half of a tile.
void NvvmEmitter::stageRows(tile::SpreadDotsOp op, const StagedRows &staged) {
  Location loc = p_.location();
  const View view = views_[op.getQ()];
  auto loop =
      scf::ForOp::create(b_, loc, warp_, p_.constant(staged.rows / 8),
                         p_.constant(*tile::getFixed(team_.getWarps())));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  Value eight = loop.getInductionVar();
  Value inTile = p_.add(p_.mul(eight, 8), p_.divide(lane_, 4));
  Value from = eightOf(view, p_.add(p_.divide(scalar(op.getRow()), 8), eight));
  SmallVector<Value> words =
      loadPieces(view, from, staged.columns, 0, staged.steps());
  Value row = p_.add(p_.mul(from, 8), p_.divide(lane_, 4));
  Value factor = arith::MulFOp::create(
      b_, loc,
      p_.loadGlobal(p_.f32(), factorPointer(view, row, staged.columns)),
      scalar(op.getScale()));
  Value place =
      p_.add(staged.address, p_.mul(p_.divide(eight, 2), staged.tileBytes()));
  place = p_.add(place,
                 p_.add(p_.mul(lane_, 16), p_.mul(p_.remainder(eight, 2), 4)));
  for (int64_t step = 0; step < staged.steps(); ++step)
    for (int64_t i = 0; i < kPiece; ++i) {
      Value word = words[static_cast<size_t>(kPiece * step + i)];
      p_.ptx("st.shared.b32 [$0], $1;", "r,r,~{memory}",
             {p_.add(place, step * 1024 + i / 2 * 512 + i % 2 * 8), word});
    }
  p_.storeSharedWhere(
      p_.equals(p_.remainder(lane_, 4), 0), factor,
      p_.add(p_.add(staged.address, staged.factorBytes()), p_.mul(inTile, 4)));
}

/// Adds to `sums` the products of steps [first, first + pieces' steps). Of a
/// tile and eight keys a lane has two sums of row r and two of row r + 8.
void NvvmEmitter::multiplySteps(const StagedRows &staged, int64_t first,
                                ArrayRef<Value> pieces,
                                SmallVectorImpl<Value> &sums) {
  const size_t words = pieces.size() / 2; // of eight keys
  const int64_t steps = static_cast<int64_t>(words) / kPiece;
  auto multiply = [&](size_t at, ArrayRef<Value> a, ArrayRef<Value> b) {
    SmallVector<Value> operands(a);
    llvm::append_range(operands, b);
    llvm::append_range(operands, ArrayRef(sums).slice(at, 4));
    SmallVector<Value> results = p_.purePtx(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, "
        "{$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};",
        "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", operands,
        SmallVector<Type>(4, p_.f32()));
    for (auto [i, result] : llvm::enumerate(results))
      sums[at + i] = result;
  };
  Value place = p_.add(staged.address, p_.mul(lane_, 16));
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t tile = 0; tile < staged.tiles(); ++tile) {
      Value address =
          p_.add(place, tile * staged.tileBytes() + (first + step) * 1024);
      SmallVector<Value> high = p_.loadSharedWords(address, 4);
      SmallVector<Value> low = p_.loadSharedWords(p_.add(address, 512), 4);
      for (size_t eight : {0, 1}) {
        ArrayRef<Value> piece = pieces.slice(
            eight * words + static_cast<size_t>(kPiece * step), kPiece);
        size_t at = static_cast<size_t>(8 * tile) + 4 * eight;
        multiply(at, low, piece.take_front(2));
        multiply(at, high, piece.drop_front(2));
        multiply(at, high, piece.take_front(2));
      }
    }
}

/// Each lane's row of each eight rows: its factor, where the scores of its
/// owner's row are, and that one's barrier.
SmallVector<SpreadRow> NvvmEmitter::spreadRows(const Scratch &scratch,
                                               const StagedRows &staged) {
  Value factors = p_.add(p_.add(staged.address, staged.factorBytes()),
                         p_.mul(p_.divide(lane_, 4), 4));
  SmallVector<SpreadRow> rows;
  for (int64_t eight = 0; eight < staged.rows / 8; ++eight) {
    Value row = p_.add(p_.divide(lane_, 4), 8 * eight);
    Value owner = p_.divide(row, scratch.rows);
    Value local = p_.sub(row, p_.mul(owner, scratch.rows));
    SpreadRow &place = rows.emplace_back();
    place.factor = p_.loadShared(p_.f32(), p_.add(factors, 32 * eight));
    place.scores =
        p_.add(scratch.address, p_.mul(p_.mul(local, scratch.stride), 4));
    place.barrier = p_.add(staged.address, staged.barrierBytes());
    if (members() > 1)
      for (Value *address : {&place.scores, &place.barrier})
        *address = p_.purePtx("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                              {*address, owner}, p_.i32())
                       .front();
  }
  return rows;
}

/// A lane's two neighbouring scores, for which the owner's barrier waits.
void NvvmEmitter::storeScores(const SpreadRow &row, Value column, Value first,
                              Value second) {
  Value address = p_.add(row.scores, p_.mul(column, 4));
  if (members() > 1)
    p_.ptx("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [$0], "
           "{$1, $2}, [$3];",
           "r,f,f,r,~{memory}", {address, first, second, row.barrier});
  else
    p_.ptx("st.shared.v2.f32 [$0], {$1, $2};", "r,f,f,~{memory}",
           {address, first, second});
}

/// Steps of a row that are loaded together, while those before are multiplied.
static int64_t stepsTogether(int64_t steps) {
  constexpr int64_t kMost = 4;
  return std::min<int64_t>(kMost, (steps + 1) / 2);
}

/// The pieces of 16 keys from `first` and step `step`.
SmallVector<Value> NvvmEmitter::loadKeys(const View &view, Value first,
                                         int64_t columns, int64_t step) {
  const int64_t steps = (columns + kStepColumns - 1) / kStepColumns;
  int64_t end = std::min(step + stepsTogether(steps), steps);
  SmallVector<Value> words;
  for (int64_t eight : {0, 1})
    llvm::append_range(
        words,
        loadPieces(view, eightOf(view, p_.add(p_.divide(first, 8), eight)),
                   columns, step, end));
  return words;
}

/// The scores of 16 keys from `first`, of which `pieces` are the first steps,
/// and the first pieces of the keys from `next`.
SmallVector<Value> NvvmEmitter::spreadKeys(tile::SpreadDotsOp op,
                                           const StagedRows &staged,
                                           ArrayRef<SpreadRow> rows,
                                           Value first, Value next,
                                           ArrayRef<Value> pieces) {
  Location loc = p_.location();
  const View view = views_[op.getK()];
  Value even = p_.mul(p_.remainder(lane_, 4), 2);
  SmallVector<Value> factors; // of keys 2 t and 2 t + 1 of each eight
  for (int64_t eight : {0, 1}) {
    Value from = eightOf(view, p_.add(p_.divide(first, 8), eight));
    Value pair = LLVM::LoadOp::create(
        b_, loc, VectorType::get({2}, p_.f32()),
        factorPointer(view, p_.add(p_.mul(from, 8), even), staged.columns),
        /*alignment=*/8);
    for (int64_t odd : {0, 1})
      factors.push_back(
          LLVM::ExtractElementOp::create(b_, loc, pair, p_.constant(odd)));
  }
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  SmallVector<Value> sums(static_cast<size_t>(8 * staged.tiles()), zero);
  SmallVector<Value> now(pieces);
  const int64_t together = stepsTogether(staged.steps());
  for (int64_t step = 0; step < staged.steps(); step += together) {
    const bool isLast = step + together >= staged.steps();
    SmallVector<Value> after =
        loadKeys(view, isLast ? next : first, staged.columns,
                 isLast ? 0 : step + together);
    multiplySteps(staged, step, now, sums);
    now = std::move(after);
  }
  Value lowest = p_.constantLike(
      p_.f32(), b_.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  for (auto [eightRows, row] : llvm::enumerate(rows))
    for (size_t eight : {0, 1}) {
      SmallVector<Value> scores;
      for (size_t odd : {0, 1}) {
        Value scaled = arith::MulFOp::create(
            b_, loc,
            sums[8 * (eightRows / 2) + 4 * eight + 2 * (eightRows % 2) + odd],
            factors[2 * eight + odd]);
        // + 0 makes of -0 and 0 one score; NaN becomes -inf.
        Value score = LLVM::FMAOp::create(b_, loc, scaled, row.factor, zero);
        scores.push_back(arith::MaxNumFOp::create(b_, loc, score, lowest));
      }
      Value column =
          p_.add(p_.add(first, even), 8 * static_cast<int64_t>(eight));
      storeScores(row, column, scores[0], scores[1]);
    }
  return now;
}

/// A member's barrier counts the bytes that all members send it, so that none
/// waits for the others' rows; none sends before all run.
LogicalResult NvvmEmitter::emit(tile::SpreadDotsOp op) {
  Location loc = p_.location();
  const StagedRows staged = staged_[op];
  const Scratch scratch = scratches_[op.getScratch()];
  const View keys = views_[op.getK()];
  constexpr int64_t kKeys = 16;
  Value barrier = p_.add(staged.address, staged.barrierBytes());
  if (members() > 1) {
    Value columns =
        p_.mul(p_.divide(p_.add(keys.rows, kKeys - 1), kKeys), kKeys);
    Value isFirst = p_.equals(thread_, 0);
    p_.ptxWhere(isFirst, "mbarrier.init.shared::cta.b64 [$0], 1;", "r",
                {barrier});
    p_.ptxWhere(isFirst,
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
                {barrier, p_.mul(columns, 4 * scratch.rows)});
    p_.ptx("fence.mbarrier_init.release.cluster;", "~{memory}", {});
    p_.ptx("barrier.cluster.arrive.relaxed.aligned;", "~{memory}", {});
  }
  const int64_t warps = *tile::getFixed(team_.getWarps());
  Value cta = NVVM::BlockIdXOp::create(b_, loc, p_.i32());
  Value member = members() == 1 ? p_.constant(0) : p_.remainder(cta, members());
  Value first = p_.mul(p_.add(p_.mul(member, warps), warp_), kKeys);
  SmallVector<Value> pieces = loadKeys(keys, first, staged.columns, 0);
  stageRows(op, staged);
  NVVM::Barrier0Op::create(b_, loc);
  SmallVector<SpreadRow> rows = spreadRows(scratch, staged);
  if (members() > 1)
    p_.ptx("barrier.cluster.wait.acquire.aligned;", "~{memory}", {});
  const int64_t step = kKeys * warps * members();
  auto loop =
      scf::ForOp::create(b_, loc, first, keys.rows, p_.constant(step), pieces);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    Value key = loop.getInductionVar();
    scf::YieldOp::create(
        b_, loc,
        spreadKeys(op, staged, rows, key, p_.add(key, step),
                   llvm::to_vector(ValueRange(loop.getRegionIterArgs()))));
  }
  if (members() == 1) {
    NVVM::Barrier0Op::create(b_, loc);
    return success();
  }
  p_.ptx(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, "
      "[$0], 0;\n"
      "@!done bra again; }",
      "r,~{memory}", {barrier});
  p_.syncWarp();
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// Dots of one warp: mma.sync of 16 rows, which finds its operands by ordinary
// loads. Lane 4 r + t holds rows r and r + 8 of each eight columns, in the
// order of wgmma (PTX ISA 8.0, "Matrix fragments for mma.m16n8k16").
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kStepColumns = 16, kPieceBytes = 16;

/// Where a lane reads a matrix: the first of every eighth row, and what the
/// swizzle does to the pieces of these rows (storeMatrix, NvvmSharedTiles.cpp).
struct NvvmEmitter::LanePlace {
  SharedMatrix matrix;
  Value row, xorBytes;
};

NvvmEmitter::LanePlace NvvmEmitter::lanePlace(Value slot, Value firstRow) {
  SharedMatrix matrix(cast<tile::SharedType>(slot.getType()));
  int64_t pieces = matrix.swizzle / kPieceBytes;
  Value inEight = p_.divide(lane_, 4);
  Value row = p_.add(slots_[slot].address,
                     p_.mul(p_.add(firstRow, inEight), matrix.swizzle));
  return {matrix, p_.add(row, p_.mul(p_.remainder(lane_, 4), 4)),
          p_.mul(p_.divide(inEight, 8 / pieces), kPieceBytes)};
}

LogicalResult NvvmEmitter::emit(tile::WarpDotOp op) {
  Type elements = op.getA().getType().getElementType();
  if (!elements.isBF16() && !elements.isF16())
    return op.emitOpError() << "expects bf16 or f16, got " << elements;
  LanePlace a = lanePlace(
      op.getA(), p_.add(p_.mul(role_.warpgroup, 64), p_.mul(warp_, 16)));
  LanePlace b = lanePlace(op.getB(), p_.constant(0));
  int64_t steps = llvm::divideCeil(a.matrix.columns, kStepColumns);
  Value zero = p_.constantLike(p_.f32(), b_.getF32FloatAttr(0));
  int64_t count = registerCount(op.getType(), Held::Matrix);
  SmallVector<Value> sums(count, zero);
  auto loop = scf::ForOp::create(b_, p_.location(), p_.constant(0),
                                 p_.constant(steps), p_.constant(1), sums);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  // The words of columns 2 t and 2 t + 8 of this step, rows `rows` further.
  auto words = [&](const LanePlace &place, int64_t rows) {
    int64_t panelSteps = place.matrix.panelColumns() / kStepColumns;
    Value step = loop.getInductionVar();
    Value panel = p_.add(place.row, p_.mul(p_.divide(step, panelSteps),
                                           place.matrix.panelBytes()));
    Value bytes = p_.mul(p_.remainder(step, panelSteps), 2 * kPieceBytes);
    SmallVector<Value> pair;
    for (int64_t piece : {0, 1}) {
      Value inRow =
          p_.bitXor(p_.add(bytes, piece * kPieceBytes), place.xorBytes);
      pair.push_back(p_.loadShared(
          p_.i32(), p_.add(p_.add(panel, inRow), rows * place.matrix.swizzle)));
    }
    return pair;
  };
  SmallVector<Value> upper = words(a, 0), lower = words(a, 8);
  StringRef element =
      op.getA().getType().getElementType().isBF16() ? "bf16" : "f16";
  std::string text = "mma.sync.aligned.m16n8k16.row.col.f32." + element.str() +
                     "." + element.str() +
                     ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
                     "{$10, $11, $12, $13};";
  SmallVector<Value> next;
  for (int64_t i = 0; i < count; i += 4) {
    SmallVector<Value> right = words(b, 2 * i);
    SmallVector<Value> operands{upper[0], lower[0], upper[1],
                                lower[1], right[0], right[1]};
    llvm::append_range(
        operands, loop.getRegionIterArgs().slice(static_cast<size_t>(i), 4));
    llvm::append_range(next, p_.ptx(text, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f",
                                    operands, SmallVector<Type>(4, p_.f32())));
  }
  scf::YieldOp::create(b_, p_.location(), next);
  hold(op.getResult(), llvm::to_vector(ValueRange(loop.getResults())));
  return success();
}

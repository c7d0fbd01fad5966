// SPDX-License-Identifier: Apache-2.0
//
// Where the rings of a kernel lie in a CTA's shared memory.
#include "compiler/Conversion/TileToNvvm/SharedPlan.h"

#include "compiler/Dialect/Tile/TileSizes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::sparge;

static int64_t elementBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

SharedMatrix::SharedMatrix(tile::SharedType type)
    : rows(*tile::getFixed(type.getSizes().getSizes()[0])),
      columns(*tile::getFixed(type.getSizes().getSizes()[1])),
      elementBytes(::elementBytes(type.getElementType())),
      swizzle(*tile::getFixed(type.getSwizzle())) {}

int64_t SharedPlan::place(int64_t bytes, int64_t alignment) {
  int64_t offset = llvm::alignTo(bytes_, alignment);
  bytes_ = offset + bytes;
  return offset;
}

SharedPlan::SharedPlan(tile::KernelOp kernel) {
  constexpr int64_t kMatrixAlignment = 1024, kNoteAlignment = 16;
  constexpr int64_t kBarrierBytes = 8;
  auto rings = llvm::to_vector(kernel.getBody().getOps<tile::RingOp>());
  for (tile::RingOp op : rings) {
    if (op->use_empty()) // of a part of the kernel that these parameters leave
                         // out
      continue;
    RingPlace &ring = rings_[op.getResult()];
    ring.stages = *tile::getFixed(op.getStages());
    ring.arrivals.push_back(1);
    for (Attribute warps : op.getPassedBy().getSizes())
      ring.arrivals.push_back(*tile::getFixed(warps));
    for (Type piece : op.getType().getPieces())
      ring.pieces.push_back({cast<tile::SharedType>(piece)});
  }
  for (bool matrices : {true, false})
    for (auto &[value, ring] : rings_)
      for (PiecePlace &piece : ring.pieces) {
        if (static_cast<bool>(piece.type.getSwizzle()) != matrices)
          continue;
        int64_t alignment = matrices ? kMatrixAlignment : kNoteAlignment;
        int64_t bytes = matrices
                            ? SharedMatrix(piece.type).bytes()
                            : *tile::getFixed(piece.type.getSizes()) *
                                  elementBytes(piece.type.getElementType());
        piece.stride = llvm::alignTo(bytes, alignment);
        piece.offset = place(piece.stride * ring.stages, alignment);
        ring.hasNotes |= !matrices;
      }
  for (auto &[value, ring] : rings_)
    ring.barriers =
        place(ring.stages * ring.stations() * kBarrierBytes, kBarrierBytes);
  spareWord_ = place(4, 4);
}

// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileAsyncRings.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

LogicalResult mlir::tile::verifyInOneWarpRole(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role || getFixed(role.getWarps()) != 1)
    return op->emitOpError() << "expects a one-warp role around it, got "
                             << (role ? "one of more warps" : "none");
  return success();
}

LogicalResult mlir::tile::verifyInWarpgroupRole(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role || getFixed(role.getWarps()) == 1)
    return op->emitOpError() << "expects a role of warpgroups around it, got "
                             << (role ? "one warp" : "none");
  return success();
}

LogicalResult mlir::tile::verifyShared(Operation *op, SharedType type) {
  return SharedType::verify([&] { return op->emitOpError(); }, type.getSizes(),
                            type.getElementType(), type.getSwizzle());
}

LogicalResult RingOp::verify() {
  if (!isa_and_present<KernelOp>((*this)->getParentOp())) // C1
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  if (std::optional<int64_t> stages = getFixed(getStages());
      stages && (*stages < 1 || *stages > 16)) // C2
    return emitOpError() << "expects 1 to 16 stages, got " << *stages;
  ArrayRef<Attribute> passedBy = getPassedBy().getSizes();
  if (passedBy.empty()) // C3
    return emitOpError() << "expects a station after the loader, got none";
  for (Attribute entry : passedBy)
    if (std::optional<int64_t> warps = getFixed(entry);
        warps && *warps != 1 && (*warps <= 0 || *warps % 4 != 0)) // C3
      return emitOpError()
             << "expects each station to have 1 warp or a multiple "
                "of 4, got "
             << *warps;
  for (Type piece : getType().getPieces())
    if (failed(verifyShared(*this, cast<SharedType>(piece))))
      return failure();
  return success();
}

static LogicalResult verifyPieces(Operation *op, RingType ring,
                                  TypeRange results) {
  if (TypeRange(ring.getPieces()) != results)
    return op->emitOpError()
           << "expects the pieces of " << ring << ", got " << results;
  return success();
}

LogicalResult RingAcquireOp::verify() {
  if (failed(verifyPieces(*this, getRing().getType(),
                          getPieces().getTypes()))) // C1
    return failure();
  return verifyInOneWarpRole(*this); // C2
}

LogicalResult RingCommitOp::verify() {
  for (Value load : getLoads()) {
    auto acquire = load.getDefiningOp<RingAcquireOp>();
    if (!acquire || acquire.getRing() != getRing() ||
        acquire.getCursor() != getCursor()) // C1
      return emitOpError() << "expects loads acquired from this ring and "
                              "cursor, got another slot";
    if (!cast<SharedType>(load.getType()).getSwizzle()) // C2
      return emitOpError() << "expects loads to be matrices, got "
                           << load.getType();
  }
  return success();
}

/// The ring that makes `ring`, where it can be seen.
static LogicalResult verifyStation(Operation *op, Value ring, int64_t station) {
  auto made = ring.getDefiningOp<RingOp>();
  int64_t stations =
      made ? static_cast<int64_t>(made.getPassedBy().getSizes().size()) : 1;
  if (station < 1 || station > stations)
    return op->emitOpError()
           << "expects a station from 1 to " << stations << ", got " << station;
  return success();
}

LogicalResult RingWaitOp::verify() {
  if (failed(verifyPieces(*this, getRing().getType(),
                          getPieces().getTypes()))) // C1
    return failure();
  return verifyStation(*this, getRing(), getStation()); // C2
}

LogicalResult RingPiecesOp::verify() {
  return verifyPieces(*this, getRing().getType(), getPieces().getTypes()); // C1
}

LogicalResult RingReleaseOp::verify() {
  if (failed(verifyStation(*this, getRing(), getStation()))) // C1
    return failure();
  auto role = (*this)->getParentOfType<RoleOp>();
  auto ring = getRing().getDefiningOp<RingOp>();
  if (!role || !ring)
    return emitOpError() << "expects a role around it and a tile.ring, got "
                         << (role ? "no ring" : "no role");
  Attribute expected = ring.getPassedBy().getSizes()[getStation() - 1];
  if (expected != role.getWarps().getSizes().front()) // C2
    return emitOpError() << "expects a role of " << printSizes(expected)
                         << " warps, as the ring says, got "
                         << printSizes(role.getWarps().getSizes());
  return success();
}

static LogicalResult verifyNote(Operation *op, SharedType note, size_t words) {
  if (note.getSwizzle() || !note.getElementType().isInteger(32)) // C1
    return op->emitOpError()
           << "expects a note of rank 1 and i32, got " << note;
  std::optional<int64_t> size = getFixed(note.getSizes());
  if (size && *size != static_cast<int64_t>(words)) // C2
    return op->emitOpError()
           << "expects " << *size << " words as the note has, got " << words;
  return success();
}

LogicalResult StoreNoteOp::verify() {
  return verifyNote(*this, getNote().getType(), getValues().size());
}

LogicalResult LoadNoteOp::verify() {
  return verifyNote(*this, getNote().getType(), getNumResults());
}

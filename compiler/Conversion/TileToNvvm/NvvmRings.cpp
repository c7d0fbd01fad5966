// SPDX-License-Identifier: Apache-2.0
//
// Rings: mbarriers that hand slots on. A cursor's phase is the parity of the
// round; station 0 waits for the parity before, so that fresh barriers let its
// first round pass.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kBarrierBytes = 8, kWarpLanes = 32;

/// One thread initialises all barriers; nobody goes on before they are seen, by
/// threads and by the TMA.
void NvvmEmitter::emitBarrierInit() {
  Value isFirst = p_.equals(thread_, 0);
  // The first copies need not wait for their descriptors.
  for (tile::TensorMapOp map : mapOps_)
    p_.ptxWhere(isFirst, "prefetch.tensormap [$0];", "l",
                {maps_[map.getResult()]});
  for (const auto &[value, ring] : plan_)
    for (int64_t station = 0; station < ring.stations(); ++station)
      for (int64_t stage = 0; stage < ring.stages; ++stage)
        p_.ptxWhere(isFirst, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,n",
                    {barrier(value, p_.constant(stage), station),
                     p_.constant(ring.arrivals[station] *
                                 (everyLaneArrives_ ? kWarpLanes : 1))});
  p_.ptxWhere(isFirst, "fence.mbarrier_init.release.cluster;", "", {});
  p_.ptxWhere(isFirst, "fence.proxy.async.shared::cta;", "", {});
  NVVM::Barrier0Op::create(b_, p_.location());
}

/// The barrier on which `station` arrives.
Value NvvmEmitter::barrier(Value ring, Value stage, int64_t station) {
  const RingPlace &place = plan_.ring(ring);
  int64_t offset = place.barriers + station * place.stages * kBarrierBytes;
  Value first = p_.add(shared_, offset);
  return place.stages == 1 ? first
                           : p_.add(first, p_.mul(stage, kBarrierBytes));
}

/// Waits until the phase of parity `phase` has completed.
void NvvmEmitter::wait(Value barrier, Value phase) {
  p_.ptx("{\n"
         ".reg .pred done;\n"
         "again:\n"
         "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n"
         "@done bra.uni passed;\n"
         "bra.uni again;\n"
         "passed:\n"
         "}",
         "r,r,~{memory}", {barrier, phase});
}

/// This warp has passed.
void NvvmEmitter::arrive(Value barrier) {
  constexpr const char *kArrive = "mbarrier.arrive.shared::cta.b64 _, [$0];";
  if (everyLaneArrives_)
    p_.ptx(kArrive, "r,~{memory}", barrier);
  else
    p_.ptxWhere(role_.elected, kArrive, "r", barrier);
}

void NvvmEmitter::bindPieces(Value ring, const Cursor &cursor,
                             ResultRange pieces) {
  const RingPlace &place = plan_.ring(ring);
  for (auto [piece, value] : llvm::zip(place.pieces, pieces)) {
    Value address = p_.add(shared_, piece.offset);
    if (place.stages > 1)
      address = p_.add(address, p_.mul(cursor.stage, piece.stride));
    slots_[value] = {ring, cursor.stage, address};
  }
}

LogicalResult NvvmEmitter::emit(tile::RingStartOp op) {
  cursors_[op.getResult()] = {p_.constant(0), p_.constant(0)};
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingNextOp op) {
  Cursor cursor = cursors_.lookup(op.getCursor());
  int64_t stages = plan_.ring(op.getRing()).stages;
  Value flipped = p_.bitXor(cursor.phase, 1);
  if (stages == 1) {
    cursors_[op.getResult()] = {cursor.stage, flipped};
    return success();
  }
  Value next = p_.add(cursor.stage, 1);
  Value wraps = p_.equals(next, stages);
  cursors_[op.getResult()] = {p_.select(wraps, p_.constant(0), next),
                              p_.select(wraps, flipped, cursor.phase)};
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingAcquireOp op) {
  Cursor cursor = cursors_.lookup(op.getCursor());
  int64_t last = plan_.ring(op.getRing()).stations() - 1;
  wait(barrier(op.getRing(), cursor.stage, last), p_.bitXor(cursor.phase, 1));
  bindPieces(op.getRing(), cursor, op.getPieces());
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingCommitOp op) {
  Cursor cursor = cursors_.lookup(op.getCursor());
  int64_t bytes = 0;
  for (Value load : op.getLoads())
    bytes += SharedMatrix(cast<tile::SharedType>(load.getType())).bytes();
  Value full = barrier(op.getRing(), cursor.stage, 0);
  // The notes are other lanes' stores as well.
  if (plan_.ring(op.getRing()).hasNotes)
    p_.syncWarp();
  if (bytes > 0) {
    // What is expected must be known before the last arrival.
    p_.ptxWhere(role_.elected,
                everyLaneArrives_
                    ? "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;"
                    : "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                "r,n", {full, p_.constant(bytes)});
    if (everyLaneArrives_)
      p_.syncWarp();
  }
  if (bytes == 0 || everyLaneArrives_)
    arrive(full);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingWaitOp op) {
  Cursor cursor = cursors_.lookup(op.getCursor());
  wait(barrier(op.getRing(), cursor.stage, op.getStation() - 1), cursor.phase);
  bindPieces(op.getRing(), cursor, op.getPieces());
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingPiecesOp op) {
  bindPieces(op.getRing(), cursors_.lookup(op.getCursor()), op.getPieces());
  return success();
}

LogicalResult NvvmEmitter::emit(tile::RingReleaseOp op) {
  Cursor cursor = cursors_.lookup(op.getCursor());
  Value passed = barrier(op.getRing(), cursor.stage, op.getStation());
  if (plan_.ring(op.getRing()).hasNotes)
    p_.syncWarp();
  arrive(passed);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::StoreNoteOp op) {
  Value address = slots_.lookup(op.getNote()).address;
  for (auto [index, value] : llvm::enumerate(op.getValues()))
    p_.storeSharedWhere(role_.elected, scalar(value),
                        p_.add(address, 4 * static_cast<int64_t>(index)));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LoadNoteOp op) {
  Value address = slots_.lookup(op.getNote()).address;
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    Value word = p_.loadShared(
        p_.i32(), p_.add(address, 4 * static_cast<int64_t>(index)));
    scalars_.map(result, p_.uniform(word));
  }
  return success();
}

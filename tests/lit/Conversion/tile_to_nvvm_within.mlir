// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: a dot whose left operand has columns of zeros.
// RUN: sparge-opt %s --tile-specialise="parameters=n=160" --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

!slot = !tile.shared<n x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
!scores = tensor<?x?xf32, #tile.sizes<64, n>>
!weights = tensor<?x?xbf16, #tile.sizes<64, n>>
!output = tensor<?x?xf32, #tile.sizes<64, 64>>

// Ten k16 steps, or four or eight of them: each a chain with its own fence and commit.
// CHECK-LABEL: llvm.func @short(
// CHECK: { .reg .pred add, more; .reg .b32 low; .reg .b64 left, right; setp.gt.s32 more, $[[END:[0-9]+]], 128; @more bra.uni longer2; setp.gt.s32 more, $[[END]], 64; @more bra.uni longer1; wgmma.fence.sync.aligned;
// CHECK-SAME: {$32, $33, $34, $35}, right, add, 1, 1, 1;
// CHECK-SAME: {$44, $45, $46, $47}, right, add, 1, 1, 1; wgmma.commit_group.sync.aligned; bra.uni issued; longer1: wgmma.fence.sync.aligned;
// CHECK-SAME: {$32, $33, $34, $35}, right, add, 1, 1, 1;
// CHECK-SAME: {$60, $61, $62, $63}, right, add, 1, 1, 1; wgmma.commit_group.sync.aligned; bra.uni issued; longer2: wgmma.fence.sync.aligned;
// CHECK-SAME: {$32, $33, $34, $35}, right, add, 1, 1, 1;
// CHECK-SAME: {$68, $69, $70, $71}, right, add, 1, 1, 1; wgmma.commit_group.sync.aligned; issued: }"
tile.kernel @short(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  %end = tile.dim %x, 2 : !tile.global<4 x bf16>
  tile.role "consumers" warps 4 registers 232 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    %no_scores = tile.splat %f0 : f32 -> !scores
    %weights = tile.convert %no_scores : !scores -> !weights
    %adding = tile.dot_async %weights, %slot within %end : !weights, !slot -> !tile.pending<!output>
    %o = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
    tile.ring_release %ring[%at] : !ring
  }
  tile.role "loader" warps 1 registers 24 {
    %slot = tile.ring_acquire %ring[%at] : !ring -> !slot
    tile.ring_commit %ring[%at] : !ring
  }
}

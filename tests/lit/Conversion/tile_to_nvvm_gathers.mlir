// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: copies of many boxes, words that lie in shared memory.
// RUN: sparge-opt %s --tile-specialise="parameters=n=64" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!k_slot = !tile.shared<n x 256 x f8E4M3FN, swizzle 128>
!k_box = !tile.shared<8 x 256 x f8E4M3FN, swizzle 128>
!v_slot = !tile.shared<136 x 128 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<136 x 16 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!k_slot, !v_slot>

// Eight boxes, in a loop: the lanes hold their rows. A box of eight rows
// is 1024 bytes of each panel, and panels of 64 rows are 8192 bytes.
// CHECK-LABEL: llvm.func @gathers(
// CHECK: mov.u32 box, 0;
// CHECK-SAME: again:
// CHECK-SAME: .pragma \22nounroll\22;
// CHECK-SAME: shfl.sync.idx.b32 row, $3, box, 31, 0xffffffff;
// CHECK-SAME: add.u32 part, to, 0;
// CHECK-SAME: @$4 cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [part], [$1, {0, row, $6, $5}], [$2];
// CHECK-SAME: add.u32 part, to, 8192;
// CHECK-SAME: [part], [$1, {128, row, $6, $5}], [$2];
// CHECK-SAME: add.u32 to, to, 1024;
// CHECK-SAME: setp.lt.u32 more, box, 8;
// CHECK-SAME: @more bra.uni again;
// CHECK-SAME: "r,l,r,r,b,r,r,~{memory}"
// Boxes of sixteen columns of an image of 136 rows: 2176 bytes, as they lie there.
// CHECK: mov.u32 box, 0;
// CHECK-SAME: add.u32 part, to, 0;
// CHECK-SAME: [part], [$1, {0, row, $6, $5}], [$2];\0Aadd.u32 box, box, 1;
// CHECK-SAME: add.u32 to, to, 2176;
// CHECK-SAME: setp.lt.u32 more, box, 8;
tile.kernel @gathers(%k: !tile.global<4 x f8E4M3FN>, %v: !tile.global<4 x f8E4M3FN>) parameters [n] grid %k by n {
  %c0 = arith.constant 0 : index
  %k_map = tile.tensor_map %k : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !k_box>
  %v_map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 40 {
    %k_slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !k_slot, !v_slot
    %firsts = tile.iota : tensor<8xi32>
    tile.ring_commit %ring[%at] loads(%k_slot, %v_slot : !k_slot, !v_slot) : !ring
    tile.gather_async %k_map[%c0, %c0] rows %firsts into %k_slot {tile.loop_boxes = 8} : !tile.tensor_map<4, !k_box>, tensor<8xi32>, !k_slot
    tile.gather_panels %v_map[%c0, %c0] columns %firsts into %v_slot {tile.loop_boxes = 8} : !tile.tensor_map<4, !v_box>, tensor<8xi32>, !v_slot
  }
}

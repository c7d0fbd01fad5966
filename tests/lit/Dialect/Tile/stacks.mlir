// SPDX-License-Identifier: Apache-2.0
//
// tile.store_stacked, tile.store_slabs, tile.gather_runs, and dots and stores of what is stacked.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=elem=float16,q=128,keys=128,d=64,columns=1024,own=512,boxes=2" -o /dev/null

!elem = !tile.element<"elem">
!stack = !tile.shared<16 x columns x !elem, swizzle 16>
!k_slot = !tile.shared<keys x d x !elem, swizzle 128>
!ring = !tile.ring<!stack, !k_slot>
!own_slot = !tile.shared<16 x own x !elem, swizzle 16>
!out_slot = !tile.shared<q x d x !elem, swizzle 128>
!out_box = !tile.shared<16 x d x !elem, swizzle 128>
!own_ring = !tile.ring<!own_slot, !out_slot>
!weights = tensor<?x?x!elem, #tile.sizes<keys, 64>>
!output = tensor<?x?xf32, #tile.sizes<q, d>>
!boxes = tensor<?xi32, #tile.sizes<boxes>>

// CHECK-LABEL: tile.kernel @stacks
// CHECK: tile.gather_runs %[[ROWS_THERE:.*]] from %{{.*}} into %{{.*}}#0 : !tile.view<1 x !tile.element<"elem">>, tensor<?xi32, #tile.sizes<boxes>>,
// CHECK: tile.store_stacked %{{.*}} through %{{.*}}, %{{.*}}[%{{.*}}] columns q rows keys where %{{.*}} : tensor<?x?x!tile.element<"elem">, #tile.sizes<keys, 64>>,
// CHECK: tile.store_stacked_wait
// CHECK: tile.dot_async %{{.*}}#0 stacked, %{{.*}}#1 : {{.*}} -> !tile.pending<tensor<?x?xf32, #tile.sizes<q, d>>>
// CHECK: tile.store_slabs %{{.*}} through %{{.*}}#1, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] rows keys : tensor<?x?x!tile.element<"elem">, #tile.sizes<q, d>>,
tile.kernel @stacks(%x: !tile.global<4 x !elem>, %kept: !tile.global<2 x !elem>)
    parameters [elem, q, keys, d, columns, own, boxes] grid %x by q {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %true = arith.constant true
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %own_ring = tile.ring stages 1 passed_by [8] : !own_ring
  %at = tile.ring_start : !tile.cursor
  %map = tile.tensor_map %x : !tile.global<4 x !elem> -> !tile.tensor_map<4, !out_box>
  %run = tile.slice %kept[%c0] : !tile.global<2 x !elem> -> !tile.view<1 x !elem>
  tile.role "loader" warps 1 registers 24 {
    %firsts = tile.splat %c0_i32 : i32 -> !boxes
    %stack, %k = tile.ring_acquire %ring[%at] : !ring -> !stack, !k_slot
    tile.gather_runs %run from %firsts into %stack : !tile.view<1 x !elem>, !boxes, !stack
  }
  tile.role "consumers" warps 8 registers 128 {
    %s = tile.splat %f0 : f32 -> tensor<?x?xf32, #tile.sizes<keys, 64>>
    %ds = tile.convert %s : tensor<?x?xf32, #tile.sizes<keys, 64>> -> !weights
    %own, %out = tile.ring_pieces %own_ring[%at] : !own_ring -> !own_slot, !out_slot
    tile.store_stacked %ds through %own, %run[%c0] columns q rows keys where %true : !weights, !own_slot, !tile.view<1 x !elem>
    tile.store_stacked_wait
    %stack, %k = tile.ring_wait %ring[%at] : !ring -> !stack, !k_slot
    %adding = tile.dot_async %stack stacked, %k : !stack, !k_slot -> !tile.pending<!output>
    %dq = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
    %rounded = tile.convert %dq : !output -> tensor<?x?x!elem, #tile.sizes<q, d>>
    tile.store_slabs %rounded through %out, %map[%c0, %c0, %c0, %c0] rows keys
        : tensor<?x?x!elem, #tile.sizes<q, d>>, !out_slot, !tile.tensor_map<4, !out_box>
  }
}

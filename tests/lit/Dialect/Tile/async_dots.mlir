// SPDX-License-Identifier: Apache-2.0
//
// tile.dot_async, tile.dot_wait, tile.convert, tile.reduce_partial, tile.any,
// tile.warp_any, tile.warp_dot.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=elem=float16,m=128,n=64,d=40" -o /dev/null

!elem = !tile.element<"elem">
!q_slot = !tile.shared<m x d x !elem, swizzle 128>
!kv_slot = !tile.shared<n x d x !elem, swizzle 128>
!ring = !tile.ring<!q_slot, !kv_slot>
!scores = tensor<?x?xf32, #tile.sizes<m, n>>
!weights = tensor<?x?x!elem, #tile.sizes<m, n>>
!output = tensor<?x?xf32, #tile.sizes<m, d>>
!parts = tensor<?x?xf32, #tile.sizes<m, 4>>

// CHECK-LABEL: tile.kernel @dots
// CHECK: tile.warp_dot %[[SLOT:.*]]#0, %[[SLOT]]#1 : {{.*}} -> tensor<?x?xf32, #tile.sizes<m, n>>
// CHECK: %[[S:.*]] = tile.dot_async %[[SLOT]]#0, %[[SLOT]]#1 transposed : {{.*}} -> !tile.pending<tensor<?x?xf32, #tile.sizes<m, n>>>
// CHECK: %[[S1:.*]] = tile.dot_wait 0(%[[S]] : !tile.pending<tensor<?x?xf32, #tile.sizes<m, n>>>) -> tensor<?x?xf32, #tile.sizes<m, n>>
// CHECK: %[[SUM:.*]] = tile.reduce_partial sum %[[S1]] : tensor<?x?xf32, #tile.sizes<m, n>> -> tensor<?x?xf32, #tile.sizes<m, 4>>
// CHECK: %[[P:.*]] = tile.convert %[[S1]] : tensor<?x?xf32, #tile.sizes<m, n>> -> tensor<?x?x!tile.element<"elem">, #tile.sizes<m, n>>
// CHECK: %[[O:.*]] = tile.dot_async %[[P]], %[[SLOT]]#1 onto %{{.*}} : tensor<?x?xf32, #tile.sizes<m, d>> :
// CHECK: %[[O2:.*]] = tile.dot_async %[[P]], %[[SLOT]]#1 onto %[[O]] : !tile.pending<tensor<?x?xf32, #tile.sizes<m, d>>> :
// CHECK: tile.dot_async %[[P]], %[[SLOT]]#1 within %{{.*}} onto %{{.*}} : tensor<?x?xf32, #tile.sizes<m, d>> :
// CHECK: tile.dot_wait 1(%[[O2]], %[[S1]] : !tile.pending<tensor<?x?xf32, #tile.sizes<m, d>>>, tensor<?x?xf32, #tile.sizes<m, n>>) after %[[SUM]] : tensor<?x?xf32, #tile.sizes<m, 4>> ->
// CHECK: tile.warp_any %{{.*}} : tensor<?xi1, #tile.sizes<m>>
// CHECK: tile.any %{{.*}} : tensor<2xi1>
tile.kernel @dots(%x: !tile.global<4 x !elem>) parameters [elem, m, n, d] grid %x by m {
  %f0 = arith.constant 0.0 : f32
  %true = arith.constant true
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 8 registers 128 {
    %q, %kv = tile.ring_wait %ring[%at] : !ring -> !q_slot, !kv_slot
    %no_output = tile.splat %f0 : f32 -> !output
    %warp = tile.warp_dot %q, %kv : !q_slot, !kv_slot -> !scores
    %s = tile.dot_async %q, %kv transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
    %scores = tile.dot_wait 0 (%s : !tile.pending<!scores>) -> !scores
    %sum = tile.reduce_partial sum %scores : !scores -> !parts
    %weights = tile.convert %scores : !scores -> !weights
    %o = tile.dot_async %weights, %kv onto %no_output : !output : !weights, !kv_slot -> !tile.pending<!output>
    %more = tile.dot_async %weights, %kv onto %o : !tile.pending<!output> : !weights, !kv_slot -> !tile.pending<!output>
    %n = tile.parameter "n" : index
    %short = tile.dot_async %weights, %kv within %n onto %no_output : !output : !weights, !kv_slot -> !tile.pending<!output>
    %output, %held = tile.dot_wait 1 (%more, %scores : !tile.pending<!output>, !scores) after %sum : !parts -> !output, !scores
    %changed = tile.splat %true : i1 -> tensor<?xi1, #tile.sizes<m>>
    %changes = tile.warp_any %changed : tensor<?xi1, #tile.sizes<m>>
  }
  tile.role "loader" warps 1 registers 24 {
    %flags = tile.splat %true : i1 -> tensor<2xi1>
    %any = tile.any %flags : tensor<2xi1>
  }
}

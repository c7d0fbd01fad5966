// SPDX-License-Identifier: Apache-2.0
//
// tile.team and what its warps share: launch_wait, launch_next, team_barrier,
// store_split, spread_dots, row_load, row_store, signal, await, next_part.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=n=64,rows=8,dim=72,members=8,warps=4,width=128" | FileCheck %s --check-prefix=FIXED

!run = tensor<?xf32, #tile.sizes<width>>

// CHECK-LABEL: tile.kernel @teams
// CHECK: %[[MEMBER:.*]], %[[WARP:.*]] = tile.team members members warps warps ctas 2 : index, index
// CHECK: tile.launch_next
// CHECK: tile.launch_wait
// CHECK: tile.store_split %{{.*}}, %{{.*}}[%[[WARP]]] : tensor<?xf32, #tile.sizes<dim>>, !tile.view<2 x f32>
// CHECK: tile.team_barrier
// CHECK: tile.spread_dots %[[X:.*]], %[[X]][%[[WARP]]] by %{{.*}} columns dim into %[[M:.*]] : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<rows, f32>
// CHECK: %[[R:.*]] = tile.row_load %[[M]][%[[WARP]], %[[MEMBER]]] : !tile.scratch<rows, f32> -> tensor<?xf32, #tile.sizes<width>>
// CHECK: tile.row_store %[[R]], %[[M]][%[[WARP]], %[[MEMBER]]] : tensor<?xf32, #tile.sizes<width>>, !tile.scratch<rows, f32>
// FIXED: tile.team members 8 warps 4 ctas 2
// FIXED: tile.store_split {{.*}} : tensor<72xf32>
// FIXED: tile.spread_dots {{.*}} columns 72 into {{.*}} !tile.scratch<8, f32>
tile.kernel @teams(%x: !tile.global<4 x f32>) parameters [n, rows, dim, members, warps, width] grid %x by n {
  %member, %warp = tile.team members members warps warps ctas 2 : index, index
  tile.launch_next
  tile.launch_wait
  %c128 = arith.constant 128 : index
  %columns = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %columns multiple %c128 : !tile.scratch<rows, f32>
  %few = tile.scratch %c128 multiple %c128 : !tile.scratch<rows, f32>
  %view = tile.slice %x[%member, %member] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %one = arith.constant 1.0 : f32
  %ones = tile.splat %one : f32 -> tensor<?xf32, #tile.sizes<dim>>
  tile.store_split %ones, %view[%warp] : tensor<?xf32, #tile.sizes<dim>>, !tile.view<2 x f32>
  tile.team_barrier
  tile.spread_dots %view, %view[%warp] by %one columns dim into %scratch
      : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<rows, f32>
  %r = tile.row_load %scratch[%warp, %member] : !tile.scratch<rows, f32> -> !run
  tile.row_store %r, %scratch[%warp, %member] : !run, !tile.scratch<rows, f32>
}

// CHECK-LABEL: tile.kernel @progress
// CHECK: tile.signal %{{.*}}[%[[WARP:.*]]] by %[[COUNT:.*]] : !tile.global<1 x i32>
// CHECK: tile.await %{{.*}}[%[[WARP]]] until %[[COUNT]] by %[[COUNT]] : !tile.global<1 x i32>
tile.kernel @progress(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %count = tile.dim %x, 2 : !tile.global<4 x f32>
  tile.signal %counter[%warp] by %count : !tile.global<1 x i32>
  tile.await %counter[%warp] until %count by %count : !tile.global<1 x i32>
}

// CHECK-LABEL: tile.kernel @parts
// CHECK: tile.next_part %{{.*}} of %[[PARTS:.*]] step %[[STEP:.*]] counted by %{{.*}} draws 16 : !tile.global<1 x i32> -> index
tile.kernel @parts(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %parts = tile.dim %x, 2 : !tile.global<4 x f32>
  %step = arith.constant 4 : index
  scf.while (%now = %warp) : (index) -> (index) {
    %more = arith.cmpi slt, %now, %parts : index
    scf.condition(%more) %now : index
  } do {
  ^part(%part: index):
    %next = tile.next_part %part of %parts step %step counted by %counter draws 16 : !tile.global<1 x i32> -> index
    scf.yield %next : index
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// tile.role, tile.programs, tile.next_program, tile.program_place,
// tile.nth_largest, turns.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=n=64,warps=12,most=160" | FileCheck %s --check-prefix=FIXED

// CHECK-LABEL: tile.kernel @roles
// CHECK: tile.role "loader" warps 1 registers 24 {
// CHECK: %[[FIRST:.*]], %[[END:.*]], %[[STEP:.*]] = tile.programs : index, index, index
// CHECK: scf.for %[[PROGRAM:.*]] = %[[FIRST]] to %[[END]] step %[[STEP]]
// CHECK: tile.program_place %[[PROGRAM]] : index, index, index
// CHECK: tile.next_program %[[FIRST]] counted by %{{.*}} : !tile.global<1 x i32> -> index
// CHECK: tile.nth_largest %{{.*}}[%{{.*}}] of %{{.*}} : !tile.view<1 x i32> -> index
// CHECK: tile.role "storer" warps 1 registers 24 {
// CHECK: tile.role "consumers" warps warps registers most {
// CHECK: tile.take_turn
// CHECK: tile.pass_turn
// FIXED: tile.role "consumers" warps 12 registers 160 {
tile.kernel @roles(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n, warps, most] grid %x by n {
  tile.role "loader" warps 1 registers 24 {
    %first, %end, %step = tile.programs : index, index, index
    scf.for %program = %first to %end step %step {
      %batch, %head, %tile = tile.program_place %program : index, index, index
    }
    %next = tile.next_program %first counted by %counter : !tile.global<1 x i32> -> index
    %numbers = tile.slice %counter[] : !tile.global<1 x i32> -> !tile.view<1 x i32>
    %largest = tile.nth_largest %numbers[%first] of %end : !tile.view<1 x i32> -> index
  }
  tile.role "storer" warps 1 registers 24 {
  }
  tile.role "consumers" warps warps registers most {
    tile.take_turn
    tile.pass_turn
  }
}

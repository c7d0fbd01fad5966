// SPDX-License-Identifier: Apache-2.0
//
// tile-specialise: sizes, flags and element types become fixed.
// RUN: sparge-opt %s --tile-specialise=parameters=elem=bfloat16,rows=64,columns=16,flag=0 | FileCheck %s

// CHECK-LABEL: tile.kernel @sizes_flags_and_elements(%x: !tile.global<4 x bf16>)
// CHECK: grid %x by rows attributes {grid_tile = 64 : i64} {
tile.kernel @sizes_flags_and_elements(%x: !tile.global<4 x !tile.element<"elem">>)
    parameters [elem, rows, columns, flag] grid %x by rows {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: arith.constant 64 : index
  %rows = tile.parameter "rows" : index
  // CHECK-DAG: arith.constant false
  %flag = tile.parameter "flag" : i1
  // CHECK: tile.slice %x[%{{.*}}, %{{.*}}] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x !tile.element<"elem">> -> !tile.view<2 x !tile.element<"elem">>
  // CHECK: tile.load %{{.*}} : !tile.view<2 x bf16> -> tensor<64x16xf32>
  %tile = tile.load %view[%rows, %c0] : !tile.view<2 x !tile.element<"elem">> -> tensor<?x?xf32, #tile.sizes<rows, columns>>
  %blocks = tile.dim %x, 2 : !tile.global<4 x !tile.element<"elem">>
  // CHECK: tile.scratch %{{.*}} multiple %{{.*}} : !tile.scratch<64, f32>
  %scratch = tile.scratch %blocks multiple %rows : !tile.scratch<rows, f32>
  // CHECK: scf.if %{{.*}} -> (tensor<64x16xf32>)
  %kept = scf.if %flag -> (tensor<?x?xf32, #tile.sizes<rows, columns>>) {
    scf.yield %tile : tensor<?x?xf32, #tile.sizes<rows, columns>>
  } else {
    // CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<64x16xf32>
    %twice = arith.addf %tile, %tile : tensor<?x?xf32, #tile.sizes<rows, columns>>
    scf.yield %twice : tensor<?x?xf32, #tile.sizes<rows, columns>>
  }
  // CHECK: tile.store %{{.*}}, %{{.*}} : tensor<64x16xf32>, !tile.view<2 x bf16>
  tile.store %kept, %view[%c0, %c0] : tensor<?x?xf32, #tile.sizes<rows, columns>>, !tile.view<2 x !tile.element<"elem">>
}

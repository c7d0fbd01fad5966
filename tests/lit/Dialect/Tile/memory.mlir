// SPDX-License-Identifier: Apache-2.0
//
// Ops that move tiles: round trip, symbolic and fixed sizes side by side.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s

!elem = !tile.element<"elem">

// CHECK-LABEL: tile.kernel @moves(
tile.kernel @moves(%x: !tile.global<4 x !elem>, %lists: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>)
    parameters [elem, rows, columns] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %m1 = arith.constant -1 : i32
  // CHECK: tile.slice %x[%{{.*}}, %{{.*}}] : !tile.global<4 x !tile.element<"elem">> -> !tile.view<2 x !tile.element<"elem">>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %list = tile.slice %lists[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %matrix = tile.slice %lists[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %row_counts = tile.slice %counts[%c0, %c0] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] : !tile.view<2 x !tile.element<"elem">> -> tensor<?x?xf32, #tile.sizes<rows, columns>>
  %tile = tile.load %view[%c0, %c0] : !tile.view<2 x !elem> -> tensor<?x?xf32, #tile.sizes<rows, columns>>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] transposed : !tile.view<2 x !tile.element<"elem">> -> tensor<8x16xf32>
  %transposed = tile.load %view[%c0, %c0] transposed : !tile.view<2 x !elem> -> tensor<8x16xf32>
  // CHECK: tile.load_scalar %{{.*}}[%{{.*}}] : !tile.view<1 x i32> -> i32
  %count = tile.load_scalar %row_counts[%c0] : !tile.view<1 x i32> -> i32
  // CHECK: tile.load_values %{{.*}}[%{{.*}}] otherwise %{{.*}} : !tile.view<1 x i32>, i32 -> tensor<?xi32, #tile.sizes<rows>>
  %values = tile.load_values %row_counts[%c0] otherwise %m1 : !tile.view<1 x i32>, i32 -> tensor<?xi32, #tile.sizes<rows>>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x?xf32, #tile.sizes<rows, columns>>, !tile.view<2 x !tile.element<"elem">>
  tile.store %tile, %view[%c0, %c0] : tensor<?x?xf32, #tile.sizes<rows, columns>>, !tile.view<2 x !elem>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] below %{{.*}} : tensor<?x?xf32, #tile.sizes<rows, columns>>, !tile.view<2 x !tile.element<"elem">>
  tile.store %tile, %view[%c0, %c0] below %c16 : tensor<?x?xf32, #tile.sizes<rows, columns>>, !tile.view<2 x !elem>
  // CHECK: tile.gather %{{.*}} by %{{.*}}[%{{.*}}] count %{{.*}} block %{{.*}} : !tile.view<2 x !tile.element<"elem">>, !tile.view<1 x i32> -> tensor<32x8xf32>
  %gathered = tile.gather %view by %list[%c0] count %c16 block %c16 : !tile.view<2 x !elem>, !tile.view<1 x i32> -> tensor<32x8xf32>
  // CHECK: tile.gather_positions %{{.*}}[%{{.*}}] count %{{.*}} block %{{.*}} limit %{{.*}} : !tile.view<1 x i32> -> tensor<32xi32>
  %positions = tile.gather_positions %list[%c0] count %c16 block %c16 limit %c16 : !tile.view<1 x i32> -> tensor<32xi32>
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %keep = tile.splat %true : i1 -> tensor<16x8xi1>
  %none = tile.splat %zero : i32 -> tensor<16xi32>
  // CHECK: tile.append_indices %{{.*}} from %{{.*}} counts %{{.*}} into %{{.*}}[%{{.*}}] : tensor<16x8xi1>, tensor<16xi32>, !tile.view<2 x i32> -> tensor<16xi32>
  %lengths = tile.append_indices %keep from %c0 counts %none into %matrix[%c0] : tensor<16x8xi1>, tensor<16xi32>, !tile.view<2 x i32> -> tensor<16xi32>
  // CHECK: tile.fill_tail %{{.*}} after %{{.*}} into %{{.*}}[%{{.*}}] : tensor<16xi32>, !tile.view<2 x i32>
  tile.fill_tail %m1 after %lengths into %matrix[%c0] : tensor<16xi32>, !tile.view<2 x i32>
  %blocks = tile.dim %x, 2 : !tile.global<4 x !elem>
  // CHECK: tile.scratch %{{.*}} multiple %{{.*}} : !tile.scratch<16, i32>
  %scratch = tile.scratch %blocks multiple %c16 : !tile.scratch<16, i32>
  // CHECK: tile.scratch_load %{{.*}}[%{{.*}}] : !tile.scratch<16, i32> -> tensor<16x8xi32>
  %loaded = tile.scratch_load %scratch[%c0] : !tile.scratch<16, i32> -> tensor<16x8xi32>
  // CHECK: tile.scratch_store %{{.*}}, %{{.*}}[%{{.*}}] : tensor<16x8xi32>, !tile.scratch<16, i32>
  tile.scratch_store %loaded, %scratch[%c0] : tensor<16x8xi32>, !tile.scratch<16, i32>
}

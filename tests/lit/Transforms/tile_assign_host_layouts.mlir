// SPDX-License-Identifier: Apache-2.0
//
// tile-assign-host-layouts: right operands of dots in rows, the rest in panels.
// RUN: sparge-opt %s --tile-assign-host-layouts -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: tile.kernel @right_operands_are_rows(
tile.kernel @right_operands_are_rows(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // CHECK: tile.load {{.*}} -> tensor<16x8xf32, #tile.layout<panels>>
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f32> -> tensor<16x8xf32>
  %zero = tile.splat %f0 : f32 -> tensor<16x4xf32>
  // CHECK: scf.for {{.*}} -> (tensor<16x4xf32, #tile.layout<panels>>)
  %sum = scf.for %i = %c0 to %c1 step %c1 iter_args(%old = %zero) -> (tensor<16x4xf32>) {
    // CHECK: tile.load {{.*}} -> tensor<4x8xf32, #tile.layout<rows>>
    %b = tile.load %view[%c1, %c0] : !tile.view<2 x f32> -> tensor<4x8xf32>
    // CHECK: tile.dot {{.*}} : tensor<16x8xf32, #tile.layout<panels>>, tensor<4x8xf32, #tile.layout<rows>> -> tensor<16x4xf32, #tile.layout<panels>>
    %new = tile.dot %a, %b transposed, %old : tensor<16x8xf32>, tensor<4x8xf32> -> tensor<16x4xf32>
    scf.yield %new : tensor<16x4xf32>
  }
  // CHECK: tile.reduce max {{.*}} : tensor<16x4xf32, #tile.layout<panels>> -> tensor<16xf32>
  %max = tile.reduce max %sum : tensor<16x4xf32> -> tensor<16xf32>
}

// -----

tile.kernel @right_operand_is_computed(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %f0 = arith.constant 0.0 : f32
  %a = tile.splat %f0 : f32 -> tensor<16x8xf32>
  // expected-error @below {{expects the right operand of a dot to come from tile.load or tile.gather, got tile.splat}}
  %b = tile.splat %f0 : f32 -> tensor<8x4xf32>
  %zero = tile.splat %f0 : f32 -> tensor<16x4xf32>
  %c = tile.dot %a, %b, %zero : tensor<16x8xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
}

// -----

tile.kernel @right_operand_is_also_something_else(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f32> -> tensor<16x16xf32>
  %zero = tile.splat %f0 : f32 -> tensor<16x16xf32>
  // expected-error @below {{expects no other use of a dot's right operand, got one; load it twice}}
  %c = tile.dot %a, %a, %zero : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
}

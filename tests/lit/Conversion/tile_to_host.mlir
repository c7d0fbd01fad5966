// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-host: arguments, loops, dots, expressions, scratch.
// RUN: sparge-opt %s --tile-specialise=parameters=rows=16 --tile-assign-host-layouts --convert-tile-to-host --canonicalize --cse | FileCheck %s

// Three slots for x (pointer, sizes, strides: 9 in all), then the scalar's bits.
// CHECK-LABEL: llvm.func @scale(%arg0: !llvm.ptr, %arg1: i64, %arg2: !llvm.ptr {llvm.noalias})
// CHECK-SAME: spargejit.dynamic_scratch = []
// The tile's 16 x 8 floats: 512 bytes; the product stays an expression.
// CHECK-SAME: spargejit.static_scratch = 1024 : i64
// CHECK: llvm.inttoptr
// CHECK: arith.bitcast {{.*}} : i32 to f32
// CHECK: scf.for
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK: llvm.return
tile.kernel @scale(%x: !tile.global<4 x f32>, %factor: f32) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %batch, %head, %tile = tile.program_id : index, index, index
  %view = tile.slice %x[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %rows = tile.parameter "rows" : index
  %first = arith.muli %tile, %rows : index
  %a = tile.load %view[%first, %c0] : !tile.view<2 x f32> -> tensor<16x8xf32>
  %factors = tile.splat %factor : f32 -> tensor<16x8xf32>
  %scaled = arith.mulf %a, %factors : tensor<16x8xf32>
  tile.store %scaled, %view[%first, %c0] : tensor<16x8xf32>, !tile.view<2 x f32>
  tile.store %a, %view[%first, %c0] : tensor<16x8xf32>, !tile.view<2 x f32>
}

// An accumulator carried round a loop stays in its buffer: no copy after the dot.
// CHECK-LABEL: llvm.func @accumulate(
// CHECK: scf.for
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: llvm.return
tile.kernel @accumulate(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f32> -> tensor<16x8xf32>
  %zero = tile.splat %f0 : f32 -> tensor<16x8xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%old = %zero) -> (tensor<16x8xf32>) {
    %b = tile.load %view[%i, %c0] : !tile.view<2 x f32> -> tensor<8x8xf32>
    %new = tile.dot %a, %b, %old : tensor<16x8xf32>, tensor<8x8xf32> -> tensor<16x8xf32>
    scf.yield %new : tensor<16x8xf32>
  }
  tile.store %sum, %view[%c0, %c0] : tensor<16x8xf32>, !tile.view<2 x f32>
}

// Dynamic scratch: 16 rows of i32 are 64 bytes a column, columns rounded up to
// 16, counted by slot 3 (x's third size).
// CHECK-LABEL: llvm.func @scratch(
// CHECK-SAME: spargejit.dynamic_scratch = [array<i64: 64, 16, 3>]
tile.kernel @scratch(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %rows = tile.parameter "rows" : index
  %one = arith.constant 1 : i32
  %blocks = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %blocks multiple %rows : !tile.scratch<16, i32>
  %ones = tile.splat %one : i32 -> tensor<16x16xi32>
  tile.scratch_store %ones, %scratch[%c0] : tensor<16x16xi32>, !tile.scratch<16, i32>
}

// A vector of any stride: an element inside the view is read, the others are what is said.
// CHECK-LABEL: llvm.func @vector(
// CHECK: scf.for
// CHECK: arith.cmpi slt
// CHECK-NEXT: scf.if {{.*}} -> (f32)
// CHECK: arith.muli
// CHECK: llvm.load {{.*}} -> f32
// CHECK: } else {
// CHECK-NEXT: scf.yield %cst : f32
// CHECK: llvm.return
tile.kernel @vector(%x: !tile.global<3 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %f1 = arith.constant 1.0 : f32
  %a = tile.load_values %view[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> tensor<16xf32>
  tile.store %a, %view[%c0] : tensor<16xf32>, !tile.view<1 x f32>
}

// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-host: f8E4M3FN is bytes in memory and f32 in tiles.
// RUN: sparge-opt %s --tile-specialise=parameters=rows=16 --tile-assign-host-layouts --convert-tile-to-host --canonicalize --cse | FileCheck %s

// Rows of bytes become lanes of f32 eight at a time where they are neighbours; of
// a NaN, 0x7F, and of subnormals, below 8, there is a case of its own.
// CHECK-LABEL: llvm.func @scale(
// CHECK: llvm.load {{.*}} -> i8
// CHECK: arith.extui {{.*}} : i8 to i32
// CHECK: arith.shli
// CHECK: arith.addi {{.*}} : i32
// CHECK: arith.bitcast {{.*}} : i32 to f32
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// Rounded by adding and taking away, at most 448.
// CHECK: arith.cmpf ogt, {{.*}} : f32
// CHECK: arith.addf [[X:%.*]], [[MAGIC:%.*]] : f32
// CHECK-NEXT: arith.subf {{.*}}, [[MAGIC]] : f32
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK-NEXT: llvm.store {{.*}} : i8, !llvm.ptr
tile.kernel @scale(%x: !tile.global<4 x f8E4M3FN>, %factor: f32) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %batch, %head, %tile = tile.program_id : index, index, index
  %view = tile.slice %x[%batch, %head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %rows = tile.parameter "rows" : index
  %first = arith.muli %tile, %rows : index
  %a = tile.load %view[%first, %c0] : !tile.view<2 x f8E4M3FN> -> tensor<16x8xf32>
  %factors = tile.splat %factor : f32 -> tensor<16x8xf32>
  %scaled = arith.mulf %a, %factors : tensor<16x8xf32>
  tile.store %scaled, %view[%first, %c0] : tensor<16x8xf32>, !tile.view<2 x f8E4M3FN>
}

// A dot's right operand is converted eight elements at a time.
// CHECK-LABEL: llvm.func @product(
// CHECK: llvm.load {{.*}} -> vector<8xi8>
// CHECK: arith.extui {{.*}} : vector<8xi8> to vector<8xi32>
// CHECK: vector.fma
tile.kernel @product(%x: !tile.global<4 x f8E4M3FN>, %o: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %o_view = tile.slice %o[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f8E4M3FN> -> tensor<16x8xf32>
  %b = tile.load %view[%c0, %c0] : !tile.view<2 x f8E4M3FN> -> tensor<16x8xf32>
  %zero = tile.splat %f0 : f32 -> tensor<16x16xf32>
  %s = tile.dot %a, %b transposed, %zero : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
  tile.store %s, %o_view[%c0, %c0] : tensor<16x16xf32>, !tile.view<2 x f32>
}

// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-host: what the host cannot do is said at its place.
// RUN: sparge-opt %s --tile-specialise=parameters=rows=16 --tile-assign-host-layouts --convert-tile-to-host -split-input-file -verify-diagnostics
// RUN: not sparge-opt %s --convert-tile-to-host -split-input-file 2>&1 | FileCheck %s
// RUN: not sparge-opt %s --convert-tile-to-host=dot-columns=0 -split-input-file 2>&1 | FileCheck %s --check-prefix=COLUMNS

// CHECK: expects a specialised kernel, got symbolic sizes; run tile-specialise first
// COLUMNS: expects dot-columns of 1 or more, got 0

tile.kernel @block_that_does_not_divide(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %list = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects a constant block that divides the tile's 16 rows, got another}}
  %positions = tile.gather_positions %list[%c0] count %c3 block %c3 limit %c3 : !tile.view<1 x i32> -> tensor<16xi32>
}

// -----

tile.kernel @late_scratch(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f32> -> tensor<16x8xf32>
  %blocks = tile.dim %x, 2 : !tile.global<4 x f32>
  // expected-error @below {{expects to stand at the start of the kernel, before any tile, got a later place}}
  %scratch = tile.scratch %blocks multiple %c16 : !tile.scratch<16, i32>
}

// -----

tile.kernel @narrow_scratch(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c16 = arith.constant 16 : index
  %blocks = tile.dim %x, 2 : !tile.global<4 x f32>
  // expected-error @below {{expects 16 rows of scratch on the host, got 8}}
  %scratch = tile.scratch %blocks multiple %c16 : !tile.scratch<8, i32>
}

// -----

tile.kernel @carried_mask(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  // expected-error @below {{expects a mask to be used where it is made, got one that needs memory}}
  %mask = tile.splat %true : i1 -> tensor<16xi1>
  %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%old = %mask) -> (tensor<16xi1>) {
    scf.yield %old : tensor<16xi1>
  }
}

// -----

tile.kernel @narrow_values(%x: !tile.global<4 x bf16>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x bf16> -> !tile.view<1 x bf16>
  // expected-error @below {{expects 32-bit elements, got '!tile.view<1 x bf16>'}}
  %0 = tile.load_values %view[%c0] otherwise %f0 : !tile.view<1 x bf16>, f32 -> tensor<16xf32>
}

// -----

tile.kernel @tile_of_eight_bits(%x: !tile.global<4 x f8E4M3FN>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  // expected-error @below {{expects a tile of f32 on the host, got 'tensor<16x8xf8E4M3FN, #tile.layout<panels>>'}}
  %a = tile.load %view[%c0, %c0] : !tile.view<2 x f8E4M3FN> -> tensor<16x8xf8E4M3FN>
}

// -----

tile.kernel @scalar_of_eight_bits(%x: !tile.global<4 x f8E4M3FN>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f8E4M3FN> -> !tile.view<1 x f8E4M3FN>
  // expected-error @below {{expects elements of 16 bits or more on the host, got 'f8E4M3FN'}}
  %a = tile.load_scalar %view[%c0] : !tile.view<1 x f8E4M3FN> -> f8E4M3FN
}

// SPDX-License-Identifier: Apache-2.0
//
// One violation a constraint of TileComputeOps.td.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @splat_c1_element(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  // expected-error @below {{expects elements of type 'f32', got 'i32'}}
  %0 = tile.splat %f : f32 -> tensor<16xi32>
}

// -----

tile.kernel @iota_c1_type(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects a rank-1 tensor of i32, got 'tensor<16x8xi32>'}}
  %0 = tile.iota : tensor<16x8xi32>
}

// -----

tile.kernel @expand_c1_rank(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %r = tile.splat %f : f32 -> tensor<16xf32>
  // expected-error @below {{expects a rank-1 source and a rank-2 result of the same element type, got 'tensor<16xf32>' and 'tensor<16xf32>'}}
  %0 = tile.expand %r axis 1 : tensor<16xf32> -> tensor<16xf32>
}

// -----

tile.kernel @expand_c2_axis(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %r = tile.splat %f : f32 -> tensor<16xf32>
  // expected-error @below {{expects axis 0 or 1, got 2}}
  %0 = tile.expand %r axis 2 : tensor<16xf32> -> tensor<16x8xf32>
}

// -----

tile.kernel @expand_c2_size(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %r = tile.splat %f : f32 -> tensor<16xf32>
  // expected-error @below {{expects the source's size in dimension 1 of the result, got 16 and 16 x 8}}
  %0 = tile.expand %r axis 0 : tensor<16xf32> -> tensor<16x8xf32>
}

// -----

tile.kernel @dot_c1_rank(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<16x8xf32>
  %b = tile.splat %f : f32 -> tensor<8x4xf32>
  %c = tile.splat %f : f32 -> tensor<16x4xf32>
  %r = tile.splat %f : f32 -> tensor<16xf32>
  // expected-error @below {{expects three tiles of rank 2, got ranks 1, 2, 2}}
  %0 = tile.dot %r, %b, %c : tensor<16xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
}

// -----

tile.kernel @dot_c2_sizes(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<16x8xf32>
  %b = tile.splat %f : f32 -> tensor<8x4xf32>
  %c = tile.splat %f : f32 -> tensor<16x4xf32>
  // expected-error @below {{expects M x K times K x N into M x N, got 16 x 8 times 4 x 8 into 16 x 4}}
  %0 = tile.dot %a, %b transposed, %c : tensor<16x8xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
}

// -----

tile.kernel @dot_c3_accumulator(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<16x8xf32>
  %b = tile.splat %f : f32 -> tensor<8x4xf32>
  %c = tile.splat %f : f32 -> tensor<16x4xf32>
  %e = arith.constant 0.0 : f64
  %d = tile.splat %e : f64 -> tensor<16x4xf64>
  // expected-error @below {{expects an accumulator of f32, got 'f64'}}
  %0 = tile.dot %a, %b, %d : tensor<16x8xf32>, tensor<8x4xf32> -> tensor<16x4xf64>
}

// -----

tile.kernel @reduce_c1_rows(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<16x8xf32>
  %b = tile.splat %f : f32 -> tensor<8x4xf32>
  %c = tile.splat %f : f32 -> tensor<16x4xf32>
  // expected-error @below {{expects R x C into R of the same element type, got 'tensor<16x8xf32>' into 'tensor<8xf32>'}}
  %0 = tile.reduce sum %a : tensor<16x8xf32> -> tensor<8xf32>
}

// -----

tile.kernel @scan_c1_type(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %i = arith.constant 0 : i32
  %f = arith.constant 0.0 : f32
  %s = tile.splat %i : i32 -> tensor<16x8xi32>
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %a = tile.splat %f : f32 -> tensor<16x8xf32>
  // expected-error @below {{expects source and result of one rank-2 integer type, got 'tensor<16x8xf32>' and 'tensor<16x8xf32>'}}
  %0 = tile.scan %a carry %n : tensor<16x8xf32>, tensor<16xi32> -> tensor<16x8xf32>
}

// -----

tile.kernel @scan_c2_carry(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %i = arith.constant 0 : i32
  %f = arith.constant 0.0 : f32
  %s = tile.splat %i : i32 -> tensor<16x8xi32>
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %m = tile.splat %i : i32 -> tensor<8xi32>
  // expected-error @below {{expects a carry with the source's rows and elements, got 'tensor<8xi32>'}}
  %0 = tile.scan %s carry %m : tensor<16x8xi32>, tensor<8xi32> -> tensor<16x8xi32>
}

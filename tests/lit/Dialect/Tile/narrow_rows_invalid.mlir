// SPDX-License-Identifier: Apache-2.0
//
// What the verifiers of tile.peak_rows, tile.scale_rows and tile.scale_cores refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @peak_rows_c1_view(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<64xf32>
  // expected-error @below {{expects a view of rank 2 and bf16 or f16, got '!tile.view<2 x f32>'}}
  %p = tile.peak_rows %wide[%c0 to %c0] : !tile.view<2 x f32> -> tensor<64xf32>
}

// -----

tile.kernel @peak_rows_c2_result(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<64xf32>
  // expected-error @below {{expects a rank-1 tensor of f32 and a multiple of 8 elements up to 256, got 'tensor<60xf32>'}}
  %p = tile.peak_rows %rows[%c0 to %c0] : !tile.view<2 x bf16> -> tensor<60xf32>
}

// -----

tile.kernel @peak_rows_c3_sum(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a sum of the same type, got 'tensor<32xf32>' beside 'tensor<64xf32>'}}
  %p, %s = tile.peak_rows %rows[%c0 to %c0] : !tile.view<2 x bf16> -> tensor<64xf32>, tensor<32xf32>
}

// -----

tile.kernel @scale_rows_c1_views(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<64xf32>
  // expected-error @below {{expects views of rank 2, of bf16 or f16 and of f8E4M3FN, got '!tile.view<2 x bf16>' and '!tile.view<2 x bf16>'}}
  tile.scale_rows %rows[%c0 to %c0] by %f1 into %rows columns 64 : !tile.view<2 x bf16>, !tile.view<2 x bf16>
}

// -----

tile.kernel @scale_rows_c2_columns(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<64xf32>
  // expected-error @below {{expects a multiple of 8 columns up to 256, got 264}}
  tile.scale_rows %rows[%c0 to %c0] by %f1 into %narrow columns 264 : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN>
}

// -----

tile.kernel @scale_rows_c3_sum(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a sum of f32, one a column, got 'tensor<32xf32>'}}
  %s = tile.scale_rows %rows[%c0 to %c0] by %f1 into %narrow columns 64 : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> -> tensor<32xf32>
}

// -----

tile.kernel @scale_cores_c1_views(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<64xf32>
  // expected-error @below {{expects views of rank 2, of bf16 or f16 and of f8E4M3FN, got '!tile.view<2 x f32>' and '!tile.view<2 x f8E4M3FN>'}}
  tile.scale_cores %wide[%c0 to %c0] by %factors into %narrow : !tile.view<2 x f32>, tensor<64xf32>, !tile.view<2 x f8E4M3FN>
}

// -----

tile.kernel @scale_cores_c2_factors(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>, %z: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %wide = tile.slice %z[%c0] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %factors = tile.splat %f1 : f32 -> tensor<60xf32>
  // expected-error @below {{expects factors of f32, a multiple of 8 up to 256, got 'tensor<60xf32>'}}
  tile.scale_cores %rows[%c0 to %c0] by %factors into %narrow : !tile.view<2 x bf16>, tensor<60xf32>, !tile.view<2 x f8E4M3FN>
}

// SPDX-License-Identifier: Apache-2.0
//
// What the types of hand-scheduled kernels refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

// @shared_c1_rank_1_with_swizzle
// expected-error @below {{expects rank 1 without a swizzle or rank 2 with one, got rank 1 with one}}
!slot = !tile.shared<4 x i32, swizzle 128>

// -----

// @shared_c1_rank_2_without_swizzle
// expected-error @below {{expects rank 1 without a swizzle or rank 2 with one, got rank 2 without one}}
!slot = !tile.shared<64 x 64 x bf16>

// -----

// @shared_c2_swizzle
// expected-error @below {{expects a swizzle of 16, 32, 64 or 128 bytes, got 8}}
!slot = !tile.shared<64 x 64 x bf16, swizzle 8>

// -----

// @shared_c3_no_columns
// expected-error @below {{expects positive sizes and a matrix's rows to be a multiple of 8, got 64 x 0}}
!slot = !tile.shared<64 x 0 x bf16, swizzle 128>

// -----

// @shared_c3_rows
// expected-error @below {{expects positive sizes and a matrix's rows to be a multiple of 8, got 12 x 64}}
!slot = !tile.shared<12 x 64 x bf16, swizzle 128>

// -----

// @ring_c1_piece (of the type)
// expected-error @below {{expects one or more !tile.shared, got another type}}
!ring = !tile.ring<i32>

// -----

// @tensor_map_c1_rank (of the type)
// expected-error @below {{expects a rank from 2 to 5 and a box of rank 2, got 1 and 2}}
!map = !tile.tensor_map<1, !tile.shared<64 x 64 x bf16, swizzle 128>>

// -----

// @tensor_map_c1_box (of the type)
// expected-error @below {{expects a rank from 2 to 5 and a box of rank 2, got 4 and 1}}
!map = !tile.tensor_map<4, !tile.shared<64 x i32>>

// -----

// @tensor_map_c2_rows (of the type)
// expected-error @below {{expects a box of at most 256 rows, got 264}}
!map = !tile.tensor_map<4, !tile.shared<264 x 64 x bf16, swizzle 128>>

// -----

// @tensor_map_c2_cores (of the type)
// expected-error @below {{expects a box of at most 256 core matrices, got 272}}
!map = !tile.tensor_map<4, !tile.shared<136 x 256 x f8E4M3FN, swizzle 16>>

// -----

// @pending_c1_element
// expected-error @below {{expects a tensor of rank 2 and f32 or f16, got 'tensor<64x64xbf16>'}}
!pending = !tile.pending<tensor<64x64xbf16>>

// -----

// @pending_c1_rank
// expected-error @below {{expects a tensor of rank 2 and f32 or f16, got 'tensor<64xf32>'}}
!pending = !tile.pending<tensor<64xf32>>

// -----

// Sizes that only specialising shows are checked where shared memory is made:
// tests/lit/Dialect/Tile/async_specialised_invalid.mlir

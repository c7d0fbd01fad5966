// SPDX-License-Identifier: Apache-2.0
//
// What convert-tile-to-nvvm cannot lower.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file --convert-tile-to-nvvm

// expected-error @below {{expects a specialised kernel, got symbolic sizes; run tile-specialise first}}
tile.kernel @symbolic(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
}

// -----

// expected-error @below {{expects a tile.role, got none}}
tile.kernel @no_role(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
tile.kernel @rows(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %ring = tile.ring stages 1 passed_by [8] : !tile.ring<!slot>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 8 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !tile.ring<!slot> -> !slot
    // expected-error @below {{expects 64 rows a warpgroup, got 64 rows for 8 warps}}
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<64x64xf32>>
  }
}

// -----

tile.kernel @both_ways(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %ring = tile.ring stages 1 passed_by [4] : !tile.ring<!tile.shared<8 x i32>>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %note = tile.ring_wait %ring[%at] : !tile.ring<!tile.shared<8 x i32>> -> !tile.shared<8 x i32>
    // expected-error @below {{expects a vector that is used along rows or along columns, got one used both ways}}
    %positions = tile.shared_positions %note : !tile.shared<8 x i32> -> tensor<64xi32>
    %columns = tile.expand %positions axis 0 : tensor<64xi32> -> tensor<64x64xi32>
    %rows = tile.expand %positions axis 1 : tensor<64xi32> -> tensor<64x64xi32>
  }
}

// -----

tile.kernel @portable(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  tile.role "loader" warps 1 registers 40 {
    // expected-error @below {{expects an op that sm_90 can lower, got one without a lowering}}
    tile.team_barrier
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
tile.kernel @fma_relu_c1_elements(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %ring = tile.ring stages 1 passed_by [4] : !tile.ring<!slot>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !tile.ring<!slot> -> !slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<64x64xf32>>
    %s = tile.dot_wait 0 (%products : !tile.pending<tensor<64x64xf32>>) -> tensor<64x64xf32>
    // expected-error @below {{expects f16 elements, got 'tensor<64x64xf32>'}}
    %p = tile.fma_relu %s, %s, %s : tensor<64x64xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
tile.kernel @sum_of_pairs(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %ring = tile.ring stages 1 passed_by [4] : !tile.ring<!slot>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !tile.ring<!slot> -> !slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<64x64xf16>>
    %s = tile.dot_wait 0 (%products : !tile.pending<tensor<64x64xf16>>) -> tensor<64x64xf16>
    // expected-error @below {{expects 32-bit elements, or the maximum of f16, got 'tensor<64x64xf16>'}}
    %sum = tile.reduce sum %s : tensor<64x64xf16> -> tensor<64xf16>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
tile.kernel @load_of_panels(%x: !tile.global<4 x f8E4M3FN>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !slot>
  %ring = tile.ring stages 1 passed_by [4] : !tile.ring<!slot>
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 40 {
    %slot = tile.ring_acquire %ring[%at] : !tile.ring<!slot> -> !slot
    // expected-error @below {{expects a swizzled box, got panels of 16 bytes}}
    tile.load_async %map[%c0, %c0, %c0] into %slot : !tile.tensor_map<4, !slot>, !slot
  }
}

// -----

!note = !tile.shared<2 x i32>
// Three warpgroups start with 168 registers a thread, 504 in all.
// expected-error @below {{expects roles to take at most the 504 registers that its warpgroups start with, got 512}}
tile.kernel @too_many_registers(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %ring = tile.ring stages 1 passed_by [8] : !tile.ring<!note>
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 32 {
    %note = tile.ring_acquire %ring[%at] : !tile.ring<!note> -> !note
  }
  tile.role "consumers" warps 8 registers 240 {
    %note = tile.ring_wait %ring[%at] : !tile.ring<!note> -> !note
  }
}

// -----

tile.kernel @narrow_in_a_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  tile.role "loader" warps 1 registers 40 {
    %view = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x bf16> -> !tile.view<1 x bf16>
    // expected-error @below {{expects 32-bit elements in a role, got 'bf16'}}
    %0 = tile.load_values %view[%c0] otherwise %f0 : !tile.view<1 x bf16>, f32 -> tensor<32xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
tile.kernel @first_columns_c2_bytes(%x: !tile.global<4 x f32>) parameters [n] grid %x by n attributes {grid_tile = 64} {
  %c0 = arith.constant 0 : index
  %ring = tile.ring stages 1 passed_by [4] : !tile.ring<!slot>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !tile.ring<!slot> -> !slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<64x64xf16>>
    %s = tile.dot_wait 0 (%products : !tile.pending<tensor<64x64xf16>>) -> tensor<64x64xf16>
    %p = tile.low_bits %s : tensor<64x64xf16> -> tensor<64x64xf8E4M3FN>
    // expected-error @below {{expects elements of 16 or 32 bits in a role of warpgroups, got 'tensor<64x64xf8E4M3FN>'}}
    %few = tile.first_columns %p to %c0 otherwise %p : tensor<64x64xf8E4M3FN>
  }
}

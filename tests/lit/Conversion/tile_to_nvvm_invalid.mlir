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

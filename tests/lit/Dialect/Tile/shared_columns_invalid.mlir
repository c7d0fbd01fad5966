// SPDX-License-Identifier: Apache-2.0
//
// What tile.shared_columns refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!slot = !tile.shared<64 x 128 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @shared_columns_c1_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a matrix with the rows, elements and swizzle of '!tile.shared<64 x 128 x bf16, swizzle 128>', got '!tile.shared<32 x 64 x bf16, swizzle 128>'}}
    %part = tile.shared_columns %slot[%c0] : !slot -> !tile.shared<32 x 64 x bf16, swizzle 128>
  }
}

// -----

!slot = !tile.shared<64 x 128 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @shared_columns_c2_panel(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c32 = arith.constant 32 : index
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    // expected-error @below {{expects to start at a multiple of 64 columns, got 32}}
    %part = tile.shared_columns %slot[%c32] : !slot -> !tile.shared<64 x 64 x bf16, swizzle 128>
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// What ops on tiles of narrow elements refuse, and dots of 8-bit elements.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @low_bits_c1_sizes(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects source and result of rank 2 and the same sizes, got 'tensor<64x64xf16>' and 'tensor<64x32xf8E4M3FN>'}}
    %p = tile.low_bits %s : !scores -> tensor<64x32xf8E4M3FN>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
!narrow = tensor<64x24xf16>
tile.kernel @first_columns_c1_columns(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %few = tile.columns %s from 0 : !scores -> !narrow
    // expected-error @below {{expects rank 2 and a multiple of 16 columns, got 'tensor<64x24xf16>'}}
    %first = tile.first_columns %few to %c0 otherwise %few : !narrow
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @low_bits_c2_elements(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects a result of f8E4M3FN, got 'f16'}}
    %p = tile.low_bits %s : !scores -> !scores
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @columns_c1_elements(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects rank 2 and the source's rows and elements, got 'tensor<64x64xf16>' to 'tensor<64x8xf32>'}}
    %p = tile.columns %s from 0 : !scores -> tensor<64x8xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @columns_c2_first(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects multiples of 8 columns inside the source, got 8 from 4 of 64}}
    %p = tile.columns %s from 4 : !scores -> tensor<64x8xf16>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @columns_c2_end(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects multiples of 8 columns inside the source, got 16 from 56 of 64}}
    %p = tile.columns %s from 56 : !scores -> tensor<64x16xf16>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @load_columns_c1_view(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %view = tile.slice %lists[] : !tile.global<2 x i32> -> !tile.view<2 x i32>
    // expected-error @below {{expects a rank-1 view and tensor of the same 32-bit elements, got '!tile.view<2 x i32>' and 'tensor<64xi32>'}}
    %p = tile.load_columns %view[%c0] : !tile.view<2 x i32> -> tensor<64xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @load_columns_c2_role(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %view = tile.slice %lists[%c0] : !tile.global<2 x i32> -> !tile.view<1 x i32>
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    %p = tile.load_columns %view[%c0] : !tile.view<1 x i32> -> tensor<64xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @load_rows_c1_view(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %view = tile.slice %lists[] : !tile.global<2 x i32> -> !tile.view<2 x i32>
    // expected-error @below {{expects a rank-1 view and tensor of the same 32-bit elements, got '!tile.view<2 x i32>' and 'tensor<64xi32>'}}
    %p = tile.load_rows %view[%c0] : !tile.view<2 x i32> -> tensor<64xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @load_rows_c2_role(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %view = tile.slice %lists[%c0] : !tile.global<2 x i32> -> !tile.view<1 x i32>
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    %p = tile.load_rows %view[%c0] : !tile.view<1 x i32> -> tensor<64xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @gather_panels_c1_indices(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    // expected-error @below {{expects 2 indices, got 1}}
    tile.gather_panels %map[%c0] columns %firsts into %v_slot : !tile.tensor_map<4, !v_box>, tensor<2xi32>, !v_slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @gather_panels_c2_columns(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %wrong = tile.splat %c0_i32 : i32 -> tensor<2x2xi32>
    // expected-error @below {{expects columns to be a rank-1 tensor of i32, got 'tensor<2x2xi32>'}}
    tile.gather_panels %map[%c0, %c0] columns %wrong into %v_slot : !tile.tensor_map<4, !v_box>, tensor<2x2xi32>, !v_slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @gather_panels_c3_count(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %wrong = tile.splat %c0_i32 : i32 -> tensor<3xi32>
    // expected-error @below {{expects the slot to be 3 boxes of bytes in panels of 16, side by side, of}}
    tile.gather_panels %map[%c0, %c0] columns %wrong into %v_slot : !tile.tensor_map<4, !v_box>, tensor<3xi32>, !v_slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @gather_panels_c3_swizzle(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    // expected-error @below {{expects the slot to be 2 boxes of bytes in panels of 16, side by side, of}}
    tile.gather_panels %map[%c0, %c0] columns %firsts into %slot : !tile.tensor_map<4, !v_box>, tensor<2xi32>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @gather_panels_c4_slot(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    // expected-error @below {{expects a slot from a tile.ring_acquire, got another}}
    tile.gather_panels %map[%c0, %c0] columns %firsts into %v_slot : !tile.tensor_map<4, !v_box>, tensor<2xi32>, !v_slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 64>
!v_slot = !tile.shared<64 x 64 x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<64 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<64x64xf16>
tile.kernel @dot_async_c6_not_transposed(%v: !tile.global<4 x f8E4M3FN>, %lists: !tile.global<2 x i32>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    // expected-error @below {{expects 8-bit elements to be f8E4M3FN, b transposed and K a multiple of 32, got 64 x 64 of 'f8E4M3FN' and b not transposed}}
    %p = tile.dot_async %slot, %slot : !slot, !slot -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @dot_async_c7_sums(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    // expected-error @below {{expects sums in f32 for elements of 'bf16', got 'f16'}}
    %s = tile.dot_async %slot, %slot : !slot, !slot -> !tile.pending<tensor<64x64xf16>>
  }
}

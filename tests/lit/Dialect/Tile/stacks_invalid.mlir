// SPDX-License-Identifier: Apache-2.0
//
// What stacks refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c1_view(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a view of rank 1 and 'bf16', got '!tile.view<2 x bf16>'}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64x64xbf16>, !slot, !tile.view<2 x bf16>
  }
}

// -----

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c1_elements(%x: !tile.global<3 x f16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x f16> -> !tile.view<1 x f16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a view of rank 1 and 'bf16', got '!tile.view<1 x f16>'}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64x64xbf16>, !slot, !tile.view<1 x f16>
  }
}

// -----

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c2_rank(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a value of rank 2, got 'tensor<64xbf16>'}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64xbf16>, !slot, !tile.view<1 x bf16>
  }
}

// -----

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c2_columns(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x40xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects columns in multiples of 16, a part of the stack's, and rows of 16, got 'tensor<64x40xbf16>' in 64 columns and 64 rows}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64x40xbf16>, !slot, !tile.view<1 x bf16>
  }
}

// -----

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c2_rows(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects columns in multiples of 16, a part of the stack's, and rows of 16, got 'tensor<64x64xbf16>' in 32 columns and 24 rows}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 32 rows 24 where %true : tensor<64x64xbf16>, !slot, !tile.view<1 x bf16>
  }
}

// -----

!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c3_role(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64x64xbf16>, !slot, !tile.view<1 x bf16>
  }
}

// -----

!stack = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!stack>
tile.kernel @gather_runs_c1_view(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %stack = tile.ring_acquire %ring[%at] : !ring -> !stack
    // expected-error @below {{expects a view of rank 1 and 'bf16', got '!tile.view<2 x bf16>'}}
    tile.gather_runs %view from %firsts into %stack : !tile.view<2 x bf16>, tensor<2xi32>, !stack
  }
}

// -----

!stack = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!stack>
tile.kernel @gather_runs_c2_firsts(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %firsts = tile.splat %f0 : f32 -> tensor<2xf32>
    %stack = tile.ring_acquire %ring[%at] : !ring -> !stack
    // expected-error @below {{expects firsts to be a rank-1 tensor of i32, got 'tensor<2xf32>'}}
    tile.gather_runs %view from %firsts into %stack : !tile.view<1 x bf16>, tensor<2xf32>, !stack
  }
}

// -----

!stack = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!stack>
tile.kernel @gather_runs_c3_slot(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %stack = tile.ring_wait %ring[%at] : !ring -> !stack
    // expected-error @below {{expects a slot from a tile.ring_acquire, got another}}
    tile.gather_runs %view from %firsts into %stack : !tile.view<1 x bf16>, tensor<2xi32>, !stack
  }
}

// -----

!stack = !tile.shared<16 x 256 x bf16, swizzle 32>
!k_slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!stack, !k_slot>
tile.kernel @dot_async_c8_panels(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %stack, %k = tile.ring_wait %ring[%at] : !ring -> !stack, !k_slot
    // expected-error @below {{expects a stack of 16-bit elements in panels of 16 bytes and b not transposed, got '!tile.shared<16 x 256 x bf16, swizzle 32>'}}
    %dq = tile.dot_async %stack stacked, %k : !stack, !k_slot -> !tile.pending<tensor<64x64xf32>>
  }
}

// -----

!stack = !tile.shared<16 x 128 x bf16, swizzle 16>
!k_slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!stack, !k_slot>
tile.kernel @dot_async_c2_stack(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %stack, %k = tile.ring_wait %ring[%at] : !ring -> !stack, !k_slot
    // expected-error @below {{expects M x K times K x N into M x N, got 16 x 128 times 64 x 64 into 64 x 64}}
    %dq = tile.dot_async %stack stacked, %k : !stack, !k_slot -> !tile.pending<tensor<64x64xf32>>
  }
}

// -----

!slot = !tile.shared<16 x 128 x bf16, swizzle 16>
!ring = !tile.ring<!slot>
tile.kernel @store_stacked_c4_slot(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %true = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<3 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %ds = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a slot of 16 rows in panels of 16 bytes for 'tensor<64x64xbf16>', got '!tile.shared<16 x 128 x bf16, swizzle 16>'}}
    tile.store_stacked %ds through %slot, %view[%c0] columns 64 rows 64 where %true : tensor<64x64xbf16>, !slot, !tile.view<1 x bf16>
  }
}

// -----

tile.kernel @store_stacked_wait_c1_role(%x: !tile.global<3 x bf16>) parameters [n] grid %x by n {
  tile.role "loader" warps 1 registers 24 {
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    tile.store_stacked_wait
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<16 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c1_indices(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects 4 indices, got 3}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0] rows 64 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<128 x 64 x bf16, swizzle 128>
!box = !tile.shared<16 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c2_slot(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a matrix and a slot of its sizes and elements, got 'tensor<64x64xbf16>' and '!tile.shared<128 x 64 x bf16, swizzle 128>'}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0, %c0] rows 64 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c3_box(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects rows in multiples of 16 and a box of 16 rows of '!tile.shared<64 x 64 x bf16, swizzle 128>', got 64 and '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0, %c0] rows 64 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<16 x 64 x bf16, swizzle 64>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c3_swizzle(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects rows in multiples of 16 and a box of 16 rows of '!tile.shared<64 x 64 x bf16, swizzle 128>', got 64 and '!tile.shared<16 x 64 x bf16, swizzle 64>'}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0, %c0] rows 64 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<16 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c3_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects rows in multiples of 16 and a box of 16 rows of '!tile.shared<64 x 64 x bf16, swizzle 128>', got 40 and '!tile.shared<16 x 64 x bf16, swizzle 128>'}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0, %c0] rows 40 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<16 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_slabs_c4_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : bf16
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %dv = tile.splat %f0 : bf16 -> tensor<64x64xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    tile.store_slabs %dv through %slot, %map[%c0, %c0, %c0, %c0] rows 64 : tensor<64x64xbf16>, !slot, !tile.tensor_map<4, !box>
  }
}

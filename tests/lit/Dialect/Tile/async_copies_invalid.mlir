// SPDX-License-Identifier: Apache-2.0
//
// What the copies of hand-scheduled kernels refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @tensor_map_c1_rank(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects an argument of the kernel of rank 3, got '!tile.global<4 x bf16>'}}
  %m = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<3, !slot>
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @tensor_map_c2_element(%x: !tile.global<4 x f16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects a box of the source's elements 'f16', got 'bf16'}}
  %m = tile.tensor_map %x : !tile.global<4 x f16> -> !tile.tensor_map<4, !slot>
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @load_async_c1_indices(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects 3 indices, got 2}}
    tile.load_async %map[%c0, %c0] into %slot : !tile.tensor_map<4, !slot>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @load_async_c2_box(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects the map's box '!tile.shared<32 x 64 x bf16, swizzle 128>', got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.load_async %box_map[%c0, %c0, %c0] into %slot : !tile.tensor_map<4, !box>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @load_async_c3_waited(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %used, %other = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a slot from a tile.ring_acquire, got another}}
    tile.load_async %map[%c0, %c0, %c0] into %used : !tile.tensor_map<4, !slot>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @gather_async_c1_indices(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %rows = tile.load_shared %note : !note -> tensor<2xi32>
    // expected-error @below {{expects 2 indices, got 3}}
    tile.gather_async %box_map[%c0, %c0, %c0] rows %rows into %slot : !tile.tensor_map<4, !box>, tensor<2xi32>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @gather_async_c2_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %rows = tile.splat %c0 : index -> tensor<2xindex>
    // expected-error @below {{expects rows to be a rank-1 tensor of i32, got 'tensor<2xindex>'}}
    tile.gather_async %box_map[%c0, %c0] rows %rows into %slot : !tile.tensor_map<4, !box>, tensor<2xindex>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @gather_async_c3_size(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %rows = tile.load_shared %note : !note -> tensor<2xi32>
    // expected-error @below {{expects the slot to be 2 boxes of '!tile.shared<64 x 64 x bf16, swizzle 128>', got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.gather_async %map[%c0, %c0] rows %rows into %slot : !tile.tensor_map<4, !slot>, tensor<2xi32>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @gather_async_c3_columns(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %narrow_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !tile.shared<32 x 32 x bf16, swizzle 128>>
    %rows = tile.load_shared %note : !note -> tensor<2xi32>
    // expected-error @below {{expects the slot to be 2 boxes of '!tile.shared<32 x 32 x bf16, swizzle 128>', got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.gather_async %narrow_map[%c0, %c0] rows %rows into %slot : !tile.tensor_map<4, !tile.shared<32 x 32 x bf16, swizzle 128>>, tensor<2xi32>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @gather_async_c4_waited(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %used, %other = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    %rows = tile.load_shared %note : !note -> tensor<2xi32>
    // expected-error @below {{expects a slot from a tile.ring_acquire, got another}}
    tile.gather_async %box_map[%c0, %c0] rows %rows into %used : !tile.tensor_map<4, !box>, tensor<2xi32>, !slot
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @store_async_c1_indices(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects 3 indices, got 1}}
    tile.store_async %slot, %map[%c0] : !slot, !tile.tensor_map<4, !slot>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @store_async_c2_box(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects the map's box '!tile.shared<32 x 64 x bf16, swizzle 128>', got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.store_async %slot, %box_map[%c0, %c0, %c0] : !slot, !tile.tensor_map<4, !box>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @store_async_c3_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 64 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    tile.store_async %slot, %map[%c0, %c0, %c0] : !slot, !tile.tensor_map<4, !slot>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @store_wait_c1_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 64 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    tile.store_wait
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @store_shared_c1_sizes(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %rows = tile.splat %c0 : index -> tensor<3xindex>
    // expected-error @below {{expects tensor and slot of the same sizes and elements, got 'tensor<3xindex>' and '!tile.shared<2 x i32>'}}
    tile.store_shared %rows, %note : tensor<3xindex>, !note
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @load_shared_c1_matrix(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a slot of rank 1, got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    %t = tile.load_shared %slot : !slot -> tensor<64x64xbf16>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @load_shared_c2_size(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects tensor and slot of the same sizes and elements, got 'tensor<3xi32>' and '!tile.shared<2 x i32>'}}
    %t = tile.load_shared %note : !note -> tensor<3xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @shared_positions_c1_matrix(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 64 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a slot of rank 1 and i32, got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    %t = tile.shared_positions %slot : !slot -> tensor<64xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @shared_positions_c2_size(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 64 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    // expected-error @below {{expects a rank-1 tensor of i32 with a multiple of eight elements for each of 2 boxes, got 'tensor<24xi32>'}}
    %t = tile.shared_positions %note : !note -> tensor<24xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @list_boxes_c1_list(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %list = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    // expected-error @below {{expects the list to be a rank-1 view of i32, got '!tile.view<2 x bf16>'}}
    %t = tile.list_boxes %list[%c0] count %c0 block %c0 box %c0 limit %c0 : !tile.view<2 x bf16> -> tensor<2xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>
tile.kernel @list_boxes_c2_result(%x: !tile.global<4 x bf16>, %lists: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 64 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    %list = tile.slice %lists[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    // expected-error @below {{expects the result to be a rank-1 tensor of i32, got 'tensor<2x2xi32>'}}
    %t = tile.list_boxes %list[%c0] count %c0 block %c0 box %c0 limit %c0 : !tile.view<1 x i32> -> tensor<2x2xi32>
  }
}

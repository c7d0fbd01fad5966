// SPDX-License-Identifier: Apache-2.0
//
// What dots that run beside other work refuse, and the ops around them.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c1_note(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects a and b of rank 2, got ranks 2 and 1}}
    %s = tile.dot_async %slot, %note : !slot, !tile.shared<2 x i32> -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 32 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c2_sizes(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects M x K times K x N into M x N, got 64 x 32 times 64 x 32 into 64 x 64}}
    %s = tile.dot_async %slot, %slot : !slot, !slot -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c3_elements(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %p = tile.convert %scores : !scores -> tensor<64x64xf16>
    // expected-error @below {{expects a and b of one element type, got 'f16' and 'bf16'}}
    %s = tile.dot_async %p, %slot : tensor<64x64xf16>, !slot -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c4_accumulator(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %wrong = tile.splat %f0 : f32 -> tensor<64x32xf32>
    // expected-error @below {{expects an accumulator of 'tensor<64x64xf32>', got 'tensor<64x32xf32>'}}
    %s = tile.dot_async %slot, %slot transposed onto %wrong : tensor<64x32xf32> : !slot, !slot -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!scores = tensor<64x64xf32>
!wide = !tile.shared<64 x 264 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !wide>
tile.kernel @dot_async_c5_columns(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %wide = tile.ring_wait %ring[%at] : !ring -> !slot, !wide
    // expected-error @below {{expects N to be a multiple of 8 up to 256, M of 64, and K of 16 with a in registers, got 64 x 64 times 64 x 264}}
    %s = tile.dot_async %slot, %wide : !slot, !wide -> !tile.pending<tensor<64x264xf32>>
  }
}

// -----

!slot = !tile.shared<72 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c5_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects N to be a multiple of 8 up to 256, M of 64, and K of 16 with a in registers, got 72 x 64 times 64 x 72}}
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<72x72xf32>>
  }
}

// -----

!slot = !tile.shared<24 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c5_inner(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %p = tile.splat %f0 : f32 -> tensor<64x24xf32>
    %a = tile.convert %p : tensor<64x24xf32> -> tensor<64x24xbf16>
    // expected-error @below {{expects N to be a multiple of 8 up to 256, M of 64, and K of 16 with a in registers, got 64 x 24 times 24 x 64}}
    %s = tile.dot_async %a, %slot : tensor<64x24xbf16>, !slot -> !tile.pending<!scores>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_wait_c1_pending(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    // expected-error @below {{expects 0 to 7 pending dots, got 8}}
    %r = tile.dot_wait 8 (%s : !tile.pending<!scores>) -> !scores
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_wait_c2_count(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    // expected-error @below {{expects a result for each operand, got 1 for 2}}
    %r = tile.dot_wait 0 (%s, %scores : !tile.pending<!scores>, !scores) -> !scores
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_wait_c2_type(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    // expected-error @below {{expects the operand's tensor 'tensor<64x64xf32>', got 'tensor<64x32xf32>'}}
    %r = tile.dot_wait 0 (%s : !tile.pending<!scores>) -> tensor<64x32xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_wait_c3_nothing(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects a pending operand, got none}}
    %r = tile.dot_wait 0 (%scores : !scores) -> !scores
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @dot_wait_c4_after(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %weights = tile.convert %scores : !scores -> tensor<64x64xbf16>
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    // expected-error @below {{expects to wait after tensors of f32, f16 or i32, got 'tensor<64x64xbf16>'}}
    %r = tile.dot_wait 0 (%s : !tile.pending<!scores>) after %weights : tensor<64x64xbf16> -> !scores
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @convert_c1_sizes(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects the source's sizes 64 x 64, got 64 x 32}}
    %r = tile.convert %scores : !scores -> tensor<64x32xbf16>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @reduce_partial_c1_columns(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    // expected-error @below {{expects R x C into R x 4 of the same element type, got 'tensor<64x64xf32>' into 'tensor<64x8xf32>'}}
    %r = tile.reduce_partial sum %scores : !scores -> tensor<64x8xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @any_c1_element(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 1 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %t = tile.load_shared %note : !tile.shared<2 x i32> -> tensor<2xi32>
    // expected-error @below {{expects a rank-1 tensor of i1, got 'tensor<2xi32>'}}
    %r = tile.any %t : tensor<2xi32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !tile.shared<2 x i32>>
!scores = tensor<64x64xf32>
tile.kernel @any_c2_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %scores = tile.splat %f0 : f32 -> !scores
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !tile.shared<2 x i32>
    %true = arith.constant true
    %t = tile.splat %true : i1 -> tensor<2xi1>
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    %r = tile.any %t : tensor<2xi1>
  }
}

// -----

!ring = !tile.ring<!tile.shared<64 x 64 x bf16, swizzle 128>>
tile.kernel @warp_any_c1_element(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %ring = tile.ring stages 2 passed_by [4] : !ring
  tile.role "consumers" warps 4 registers 128 {
    %rows = tile.splat %f0 : f32 -> tensor<64xf32>
    // expected-error @below {{expects a tensor of i1, got 'tensor<64xf32>'}}
    %r = tile.warp_any %rows : tensor<64xf32>
  }
}

// -----

!ring = !tile.ring<!tile.shared<64 x 64 x bf16, swizzle 128>>
tile.kernel @warp_any_c2_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %true = arith.constant true
  %ring = tile.ring stages 2 passed_by [1] : !ring
  tile.role "loader" warps 1 registers 24 {
    %rows = tile.splat %true : i1 -> tensor<64xi1>
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    %r = tile.warp_any %rows : tensor<64xi1>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!wide = !tile.shared<64 x 128 x bf16, swizzle 128>
!ring = !tile.ring<!slot, !wide>
tile.kernel @warp_dot_c1_sizes(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %wide = tile.ring_wait %ring[%at] : !ring -> !slot, !wide
    // expected-error @below {{expects M x K and N x K into M x N, got 64 x 64 and 64 x 128 into 64 x 64}}
    %s = tile.warp_dot %slot, %wide : !slot, !wide -> tensor<64x64xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!half = !tile.shared<64 x 64 x f16, swizzle 128>
!ring = !tile.ring<!slot, !half>
tile.kernel @warp_dot_c2_elements(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot, %half = tile.ring_wait %ring[%at] : !ring -> !slot, !half
    // expected-error @below {{expects a and b of one element type into f32, got 'bf16' and 'f16' into 'f32'}}
    %s = tile.warp_dot %slot, %half : !slot, !half -> tensor<64x64xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @warp_dot_c3_role(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    %s = tile.warp_dot %slot, %slot : !slot, !slot -> tensor<64x64xf32>
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
!scores = tensor<64x64xf32>
tile.kernel @dot_async_c9_within(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %end = tile.parameter "n" : index
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a in registers where it is within some columns, got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    %s = tile.dot_async %slot, %slot within %end : !slot, !slot -> !tile.pending<!scores>
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// What tile.team and what belongs to it refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @team_c1_nested(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %t = arith.constant true
  scf.if %t {
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    %member, %warp = tile.team members 1 warps 1 ctas 1 : index, index
  }
}

// -----

tile.kernel @team_c1_twice(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects to be alone in its kernel, got another tile.team or a tile.role}}
  %member, %warp = tile.team members 1 warps 1 ctas 1 : index, index
  %other, %more = tile.team members 1 warps 1 ctas 1 : index, index
}

// -----

tile.kernel @team_c1_roles(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects to be alone in its kernel, got another tile.team or a tile.role}}
  %member, %warp = tile.team members 1 warps 1 ctas 1 : index, index
  tile.role "loader" warps 1 registers 24 {
  }
}

// -----

tile.kernel @team_c2_members(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 1 to 8 members, got 16}}
  %member, %warp = tile.team members 16 warps 1 ctas 1 : index, index
}

// -----

tile.kernel @team_c2_warps(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 1 to 32 warps, got 33}}
  %member, %warp = tile.team members 1 warps 33 ctas 1 : index, index
}

// -----

tile.kernel @team_c2_ctas(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 1 to 32 CTAs, got 0}}
  %member, %warp = tile.team members 1 warps 1 ctas 0 : index, index
}

// -----

tile.kernel @launch_wait_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{expects to stand in a tile.kernel and no loop that may not run, got another op around it}}
    tile.launch_wait
  }
}

// -----

tile.kernel @next_part_c1(%x: !tile.global<4 x f32>, %y: !tile.global<2 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{expects a counter of rank 1 and i32, got '!tile.global<2 x i32>'}}
    %next = tile.next_part %i of %c1 step %c1 counted by %y draws 16 : !tile.global<2 x i32> -> index
  }
}

// -----

tile.kernel @next_part_c2_no_loop(%x: !tile.global<4 x f32>, %y: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expects to stand in a loop in no role, and parts and step from outside of it, got another place}}
  %next = tile.next_part %c1 of %c1 step %c1 counted by %y draws 16 : !tile.global<1 x i32> -> index
}

// -----

tile.kernel @next_part_c2_parts(%x: !tile.global<4 x f32>, %y: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %parts = tile.dim %x, 2 : !tile.global<4 x f32>
    // expected-error @below {{expects to stand in a loop in no role, and parts and step from outside of it, got another place}}
    %next = tile.next_part %i of %parts step %c1 counted by %y draws 16 : !tile.global<1 x i32> -> index
  }
}

// -----

tile.kernel @next_part_c2_step(%x: !tile.global<4 x f32>, %y: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %step = tile.dim %x, 2 : !tile.global<4 x f32>
    // expected-error @below {{expects to stand in a loop in no role, and parts and step from outside of it, got another place}}
    %next = tile.next_part %i of %c1 step %step counted by %y draws 16 : !tile.global<1 x i32> -> index
  }
}

// -----

tile.kernel @signal_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects a counter of rank 1 and i32, got '!tile.global<4 x f32>'}}
  tile.signal %x[%c0] by %c0 : !tile.global<4 x f32>
}

// -----

tile.kernel @await_c1(%x: !tile.global<4 x f32>, %y: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects a counter of rank 1 and i32, got '!tile.global<1 x f32>'}}
  tile.await %y[%c0] until %c0 by %c0 : !tile.global<1 x f32>
}

// -----

tile.kernel @await_c2(%x: !tile.global<4 x f32>, %y: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  scf.if %t {
    // expected-error @below {{expects a one-warp role around it, got none}}
    tile.await %y[%c0] until %c0 by %c0 : !tile.global<1 x i32>
  }
}

// -----

tile.kernel @store_split_c1_type(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %v = tile.iota : tensor<64xi32>
  // expected-error @below {{expects a rank-1 tensor of f32, got 'tensor<64xi32>'}}
  tile.store_split %v, %view[%c0] : tensor<64xi32>, !tile.view<2 x f32>
}

// -----

tile.kernel @store_split_c1_size(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %v = tile.splat %f : f32 -> tensor<12xf32>
  // expected-error @below {{expects a multiple of 8 elements up to 256, got 12}}
  tile.store_split %v, %view[%c0] : tensor<12xf32>, !tile.view<2 x f32>
}

// -----

tile.kernel @store_split_c2(%x: !tile.global<4 x f16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f16> -> !tile.view<2 x f16>
  %v = tile.splat %f : f32 -> tensor<64xf32>
  // expected-error @below {{expects a view of rank 2 and f32, got '!tile.view<2 x f16>'}}
  tile.store_split %v, %view[%c0] : tensor<64xf32>, !tile.view<2 x f16>
}

// -----

tile.kernel @row_load_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c32 = arith.constant 32 : index
  %scratch = tile.scratch %c32 multiple %c32 : !tile.scratch<8, f32>
  // expected-error @below {{expects a rank-1 tensor of 32-bit elements like those of '!tile.scratch<8, f32>', got 'tensor<32xi32>'}}
  %r = tile.row_load %scratch[%c32, %c32] : !tile.scratch<8, f32> -> tensor<32xi32>
}

// -----

tile.kernel @row_store_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c32 = arith.constant 32 : index
  %f = arith.constant 0.0 : f32
  %scratch = tile.scratch %c32 multiple %c32 : !tile.scratch<8, f32>
  %v = tile.splat %f : f32 -> tensor<8x32xf32>
  // expected-error @below {{expects a rank-1 tensor of 32-bit elements like those of '!tile.scratch<8, f32>', got 'tensor<8x32xf32>'}}
  tile.row_store %v, %scratch[%c32, %c32] : tensor<8x32xf32>, !tile.scratch<8, f32>
}

// -----

tile.kernel @row_store_c1_flags(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %true = arith.constant true
  %columns = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %columns multiple %c32 : !tile.scratch<8, f32>
  %v = tile.splat %true : i1 -> tensor<256xi1>
  // expected-error @below {{expects a rank-1 tensor of 32-bit elements like those of '!tile.scratch<8, f32>', got 'tensor<256xi1>'}}
  tile.row_store %v, %scratch[%c0, %c0] : tensor<256xi1>, !tile.scratch<8, f32>
}

// -----

tile.kernel @spread_dots_c1(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %scale = arith.constant 1.0 : f32
  %size = tile.dim %x, 2 : !tile.global<4 x bf16>
  %scratch = tile.scratch %size multiple %c32 : !tile.scratch<8, f32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a view of rank 2 and f32, got '!tile.view<2 x bf16>'}}
  tile.spread_dots %view, %view[%c0] by %scale columns 64 into %scratch : !tile.view<2 x bf16>, !tile.view<2 x bf16>, !tile.scratch<8, f32>
}

// -----

tile.kernel @spread_dots_c2(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %scale = arith.constant 1.0 : f32
  %size = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %size multiple %c32 : !tile.scratch<8, f32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %other = tile.scratch %size multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects scratch of f32, got '!tile.scratch<8, i32>'}}
  tile.spread_dots %view, %view[%c0] by %scale columns 64 into %other : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<8, i32>
}

// -----

tile.kernel @spread_dots_c3(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %scale = arith.constant 1.0 : f32
  %size = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %size multiple %c32 : !tile.scratch<8, f32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a multiple of 8 columns up to 256, got 60}}
  tile.spread_dots %view, %view[%c0] by %scale columns 60 into %scratch : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<8, f32>
}

// -----

tile.kernel @spread_dots_c4(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %scale = arith.constant 1.0 : f32
  %size = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %size multiple %c32 : !tile.scratch<8, f32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %t = arith.constant true
  scf.if %t {
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    tile.spread_dots %view, %view[%c0] by %scale columns 64 into %scratch : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<8, f32>
  }
}

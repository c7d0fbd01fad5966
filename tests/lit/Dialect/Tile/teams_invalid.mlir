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
    // expected-error @below {{expects to stand in a tile.kernel and no loop, got another op around it}}
    tile.launch_wait
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
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    tile.await %y[%c0] until %c0 by %c0 : !tile.global<1 x i32>
  }
}

// -----

// expected-error @below {{expects rows that are a multiple of 8 and columns that are one up to 256, got 12 x 64}}
tile.kernel @staged_c1(%x: !tile.staged<12 x 64>) parameters [n] grid %x by n {
}

// -----

tile.kernel @stage_c1(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a view of rank 2 and f32, got '!tile.view<2 x bf16>'}}
  %q = tile.stage %view[%c0] : !tile.view<2 x bf16> -> !tile.staged<64 x 64>
}

// -----

tile.kernel @stage_c2(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  scf.if %t {
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    %q = tile.stage %view[%c0] : !tile.view<2 x f32> -> !tile.staged<64 x 64>
  }
}

// -----

tile.kernel @dot_staged_c1(%x: !tile.global<4 x f32>, %y: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %other = tile.slice %y[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %q = tile.stage %view[%c0] : !tile.view<2 x f32> -> !tile.staged<64 x 64>
  // expected-error @below {{expects a view of rank 2 and f32, got '!tile.view<2 x bf16>'}}
  %s = tile.dot_staged %other[%c0], %q : !tile.view<2 x bf16>, !tile.staged<64 x 64> -> tensor<16x64xf32>
}

// -----

tile.kernel @dot_staged_c2(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %q = tile.stage %view[%c0] : !tile.view<2 x f32> -> !tile.staged<64 x 64>
  // expected-error @below {{expects a result of 16 x 64 of f32, got 'tensor<16x32xf32>'}}
  %s = tile.dot_staged %view[%c0], %q : !tile.view<2 x f32>, !tile.staged<64 x 64> -> tensor<16x32xf32>
}

// -----

tile.kernel @spread_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 0.0 : f32
  %scratch = tile.scratch %c32 multiple %c32 : !tile.scratch<8, f32>
  %v = tile.splat %f : f32 -> tensor<16xf32>
  // expected-error @below {{expects a tile of rank 2 and f32, and such scratch, got 'tensor<16xf32>' and '!tile.scratch<8, f32>'}}
  tile.spread %v, %scratch[%c0] : tensor<16xf32>, !tile.scratch<8, f32>
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

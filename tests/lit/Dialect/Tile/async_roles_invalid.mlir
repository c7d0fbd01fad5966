// SPDX-License-Identifier: Apache-2.0
//
// What tile.role refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @role_c1_nested(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "outer" warps 1 registers 24 {
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    tile.role "inner" warps 1 registers 24 {
    }
  }
}

// -----

tile.kernel @role_c2_two_warps(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 1 warp or a multiple of 4, got 2}}
  tile.role "loader" warps 2 registers 24 {
  }
}

// -----

tile.kernel @role_c3_registers(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects a multiple of 8 registers from 24 to 256, got 30}}
  tile.role "loader" warps 1 registers 30 {
  }
}

// -----

tile.kernel @role_c4_five(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "a" warps 1 registers 24 {
  }
  tile.role "b" warps 1 registers 24 {
  }
  tile.role "c" warps 1 registers 24 {
  }
  tile.role "d" warps 1 registers 24 {
  }
  // expected-error @below {{expects at most four one-warp roles in a row, got one more}}
  tile.role "e" warps 1 registers 24 {
  }
}

// -----

tile.kernel @role_c4_unequal(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "a" warps 1 registers 24 {
  }
  // expected-error @below {{expects the registers of the one-warp role before it, got 40}}
  tile.role "b" warps 1 registers 40 {
  }
}

// -----

tile.kernel @role_c5_sum(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects at most 512 registers over all warpgroups' threads, got 520}}
  tile.role "loader" warps 1 registers 40 {
  }
  tile.role "consumers" warps 8 registers 240 {
  }
}

// -----

tile.kernel @kernel_c4_role_size(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 'many' among the kernel's parameters, got no such parameter}}
  tile.role "consumers" warps many registers 128 {
  }
}

// -----

tile.kernel @next_program_c1(%x: !tile.global<4 x f32>, %counter: !tile.global<2 x i32>) parameters [n] grid %x by n {
  tile.role "scout" warps 1 registers 24 {
    %first, %end, %step = tile.programs : index, index, index
    // expected-error @below {{expects a kernel's argument of rank 1 and i32, got '!tile.global<2 x i32>'}}
    %next = tile.next_program %first counted by %counter : !tile.global<2 x i32> -> index
  }
}

// -----

tile.kernel @next_program_c2(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n] grid %x by n {
  tile.role "consumers" warps 4 registers 128 {
    %first, %end, %step = tile.programs : index, index, index
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    %next = tile.next_program %first counted by %counter : !tile.global<1 x i32> -> index
  }
}

// -----

tile.kernel @nth_largest_c1(%x: !tile.global<4 x f32>, %y: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %numbers = tile.slice %y[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
  tile.role "scout" warps 1 registers 24 {
    %first, %end, %step = tile.programs : index, index, index
    // expected-error @below {{expects a view of rank 1 and i32, got '!tile.view<1 x f32>'}}
    %largest = tile.nth_largest %numbers[%first] of %end : !tile.view<1 x f32> -> index
  }
}

// -----

tile.kernel @nth_largest_c2(%x: !tile.global<4 x f32>, %y: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %numbers = tile.slice %y[] : !tile.global<1 x i32> -> !tile.view<1 x i32>
  tile.role "consumers" warps 4 registers 128 {
    %first, %end, %step = tile.programs : index, index, index
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    %largest = tile.nth_largest %numbers[%first] of %end : !tile.view<1 x i32> -> index
  }
}

// -----

tile.kernel @take_turn_c1_one_warp(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "loader" warps 1 registers 24 {
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    tile.take_turn
  }
}

// -----

tile.kernel @take_turn_c2_two_roles(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "a" warps 8 registers 128 {
    // expected-error @below {{expects turns in one role, got them in another too}}
    tile.take_turn
  }
  tile.role "b" warps 4 registers 128 {
    tile.take_turn
  }
}

// -----

tile.kernel @pass_turn_c1_one_warp(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "loader" warps 1 registers 24 {
    // expected-error @below {{expects a role of warpgroups around it, got one warp}}
    tile.pass_turn
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// What the ring ops and notes refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

!note = !tile.shared<2 x i32>
tile.kernel @ring_c1_nested(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  tile.role "loader" warps 1 registers 24 {
    // expected-error @below {{expects to stand directly in a tile.kernel, got another op around it}}
    %ring = tile.ring stages 2 passed_by [1] : !tile.ring<!note>
  }
}

// -----

!note = !tile.shared<2 x i32>
tile.kernel @ring_c2_stages(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects 1 to 16 stages, got 17}}
  %ring = tile.ring stages 17 passed_by [1] : !tile.ring<!note>
}

// -----

!note = !tile.shared<2 x i32>
tile.kernel @ring_c3_alone(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects a station after the loader, got none}}
  %ring = tile.ring stages 2 passed_by [] : !tile.ring<!note>
}

// -----

!note = !tile.shared<2 x i32>
tile.kernel @ring_c3_warps(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  // expected-error @below {{expects each station to have 1 warp or a multiple of 4, got 6}}
  %ring = tile.ring stages 2 passed_by [6] : !tile.ring<!note>
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_acquire_c1_pieces(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    // expected-error @below {{expects the pieces of '!tile.ring<!tile.shared<2 x i32>>', got '!tile.shared<3 x i32>'}}
    %note = tile.ring_acquire %ring[%at] : !ring -> !tile.shared<3 x i32>
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_acquire_c2_role(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    // expected-error @below {{expects a one-warp role around it, got one of more warps}}
    %note = tile.ring_acquire %ring[%at] : !ring -> !note
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @ring_commit_c1_other_cursor(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot = tile.ring_acquire %ring[%at] : !ring -> !slot
    %next = tile.ring_next %ring[%at] : !ring -> !tile.cursor
    // expected-error @below {{expects loads acquired from this ring and cursor, got another slot}}
    tile.ring_commit %ring[%next] loads(%slot : !slot) : !ring
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_commit_c2_note(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %note = tile.ring_acquire %ring[%at] : !ring -> !note
    // expected-error @below {{expects loads to be matrices, got '!tile.shared<2 x i32>'}}
    tile.ring_commit %ring[%at] loads(%note : !note) : !ring
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_wait_c1_pieces(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    // expected-error @below {{expects the pieces of '!tile.ring<!tile.shared<2 x i32>>', got '!tile.shared<2 x i32>', '!tile.shared<2 x i32>'}}
    %a, %b = tile.ring_wait %ring[%at] : !ring -> !note, !note
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_wait_c2_station(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    // expected-error @below {{expects a station from 1 to 1, got 2}}
    %note = tile.ring_wait %ring[%at] station 2 : !ring -> !note
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_release_c1_station(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    // expected-error @below {{expects a station from 1 to 1, got 0}}
    tile.ring_release %ring[%at] station 0 : !ring
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_release_c2_warps(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    // expected-error @below {{expects a role of 8 warps, as the ring says, got 4}}
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
tile.kernel @store_note_c1_matrix(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c1 = arith.constant 1 : i32
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %slot = tile.ring_acquire %ring[%at] : !ring -> !slot
    // expected-error @below {{expects a note of rank 1 and i32, got '!tile.shared<64 x 64 x bf16, swizzle 128>'}}
    tile.store_note (%c1), %slot : !slot
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @store_note_c2_words(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c1 = arith.constant 1 : i32
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %note = tile.ring_acquire %ring[%at] : !ring -> !note
    // expected-error @below {{expects 2 words as the note has, got 1}}
    tile.store_note (%c1), %note : !note
  }
}

// -----

!note = !tile.shared<2 x f32>
!ring = !tile.ring<!note>
tile.kernel @load_note_c1_element(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    %note = tile.ring_wait %ring[%at] : !ring -> !note
    // expected-error @below {{expects a note of rank 1 and i32, got '!tile.shared<2 x f32>'}}
    %a, %b = tile.load_note %note : !note -> i32, i32
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @load_note_c2_words(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    %note = tile.ring_wait %ring[%at] : !ring -> !note
    // expected-error @below {{expects 2 words as the note has, got 1}}
    %a = tile.load_note %note : !note -> i32
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>
tile.kernel @ring_pieces_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "storer" warps 1 registers 24 {
    // expected-error @below {{expects the pieces of '!tile.ring<!tile.shared<2 x i32>>', got '!tile.shared<4 x i32>'}}
    %note = tile.ring_pieces %ring[%at] : !ring -> !tile.shared<4 x i32>
  }
}

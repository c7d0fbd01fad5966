// SPDX-License-Identifier: Apache-2.0
//
// invert_blocks for Hopper: which query blocks list a key block.
//
//   key_indices[b, h, j, 0 … key_counts[b, h, j] - 1] = the query blocks i,
//   ascending, with j in indices[b, h, i, 0 … counts[b, h, i] - 1]
//
// Entries that are no key blocks count for nothing, and a block that a list names
// twice counts once. What stands behind a key block's last entry is left as it is.
//
// A CTA works on 32 key blocks, one a lane. Each warp reads the lists of 32 query
// blocks, four ahead, and marks in its row of scratch what they name of the 32; a
// lane then has one bit a query block. From the sums of the warps before it each
// warp knows where its query blocks go, so that the order is always the same.
//
// Parameter that follows from others: invert_rows = 32 invert_warps.

!lanes = tensor<32xi32>
!lane_mask = tensor<32xi1>
!marks = !tile.scratch<invert_warps, i32>

tile.kernel @invert_blocks(%indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %key_indices: !tile.global<4 x i32>, %key_counts: !tile.global<3 x i32>)
    parameters [invert_keys, invert_warps, invert_ctas]
    grid %key_counts by invert_keys {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %minus_one = arith.constant -1 : i32
  %invert_keys = tile.parameter "invert_keys" : index
  %invert_warps = tile.parameter "invert_warps" : index
  %member, %warp = tile.team members 1 warps invert_warps ctas invert_ctas : index, index
  %marks = tile.scratch %c32 multiple %c32 : !marks
  %sums = tile.scratch %c32 multiple %c32 : !marks
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_key = arith.muli %tile, %invert_keys : index
  %first_key_i32 = arith.index_cast %first_key : index to i32
  %q_blocks = tile.dim %counts, 2 : !tile.global<3 x i32>
  %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
  %capacity_i32 = arith.index_cast %capacity : index to i32
  %row_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  %key_lists = tile.slice %key_indices[%batch, %head] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %numbers = tile.iota : !lanes
  %zeros = tile.splat %c0_i32 : i32 -> !lanes
  %ones = tile.splat %c1_i32 : i32 -> !lanes
  %first_keys = tile.splat %first_key_i32 : i32 -> !lanes
  %keys = arith.addi %first_keys, %numbers : !lanes
  %nothing = tile.splat %minus_one : i32 -> !lanes
  tile.launch_next
  // The lists may be what the launch before this one selects.
  tile.launch_wait

  %chunk = arith.muli %invert_warps, %c32 : index
  tile.row_store %zeros, %marks[%warp, %c0] : !lanes, !marks
  %base = scf.for %first_row = %c0 to %q_blocks step %chunk iter_args(%before = %zeros) -> (!lanes) {
    %own_rows = arith.muli %warp, %c32 : index
    %row_0 = arith.addi %first_row, %own_rows : index
    %row_0_i32 = arith.index_cast %row_0 : index to i32
    // No count reaches beyond the list's memory, whatever it says.
    %raw_counts = tile.load_values %row_counts[%row_0] otherwise %c0_i32 : !tile.view<1 x i32>, i32 -> !lanes
    %not_negative = arith.maxsi %raw_counts, %zeros : !lanes
    %capacities = tile.splat %capacity_i32 : i32 -> !lanes
    %list_counts = arith.minsi %not_negative, %capacities : !lanes
    %last_row = arith.subi %q_blocks, %c1 : index

    // Bit r: query block row_0 + r lists this lane's key block. The first 32
    // entries of a list are read four lists ahead.
    %row_1 = arith.addi %row_0, %c1 : index
    %row_2 = arith.addi %row_0, %c2 : index
    %row_3 = arith.addi %row_0, %c3 : index
    %safe_0 = arith.minsi %row_0, %last_row : index
    %safe_1 = arith.minsi %row_1, %last_row : index
    %safe_2 = arith.minsi %row_2, %last_row : index
    %safe_3 = arith.minsi %row_3, %last_row : index
    %list_0 = tile.slice %indices[%batch, %head, %safe_0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %list_1 = tile.slice %indices[%batch, %head, %safe_1] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %list_2 = tile.slice %indices[%batch, %head, %safe_2] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %list_3 = tile.slice %indices[%batch, %head, %safe_3] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %ahead_0 = tile.load_values %list_0[%c0] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
    %ahead_1 = tile.load_values %list_1[%c0] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
    %ahead_2 = tile.load_values %list_2[%c0] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
    %ahead_3 = tile.load_values %list_3[%c0] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
    %marked:6 = scf.for %r = %c0 to %c32 step %c1
        iter_args(%bits = %zeros, %sum = %zeros, %entries_0 = %ahead_0, %entries_1 = %ahead_1,
                  %entries_2 = %ahead_2, %entries_3 = %ahead_3)
        -> (!lanes, !lanes, !lanes, !lanes, !lanes, !lanes) {
      %row = arith.addi %row_0, %r : index
      %row_4 = arith.addi %row, %c4 : index
      %safe_4 = arith.minsi %row_4, %last_row : index
      %list_4 = tile.slice %indices[%batch, %head, %safe_4] : !tile.global<4 x i32> -> !tile.view<1 x i32>
      %entries_4 = tile.load_values %list_4[%c0] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
      %safe = arith.minsi %row, %last_row : index
      %list = tile.slice %indices[%batch, %head, %safe] : !tile.global<4 x i32> -> !tile.view<1 x i32>
      %count_i32 = tile.pick %list_counts[%r] : !lanes -> i32
      %count = arith.index_cast %count_i32 : i32 to index
      %row_i32 = arith.index_cast %row : index to i32
      %mark_i32 = arith.addi %row_i32, %c1_i32 : i32
      %mark = tile.splat %mark_i32 : i32 -> !lanes
      %limit = tile.splat %count_i32 : i32 -> !lanes
      %in_list = arith.cmpi slt, %numbers, %limit : !lanes
      %positions = arith.subi %entries_0, %first_keys : !lanes
      tile.row_scatter %mark at %positions where %in_list into %marks[%warp]
          : !lanes, !lanes, !lane_mask, !marks
      scf.for %first = %c32 to %count step %c32 {
        %entries = tile.load_values %list[%first] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
        %first_i32 = arith.index_cast %first : index to i32
        %rest_i32 = arith.subi %count_i32, %first_i32 : i32
        %rest = tile.splat %rest_i32 : i32 -> !lanes
        %in_rest = arith.cmpi slt, %numbers, %rest : !lanes
        %more_positions = arith.subi %entries, %first_keys : !lanes
        tile.row_scatter %mark at %more_positions where %in_rest into %marks[%warp]
            : !lanes, !lanes, !lane_mask, !marks
      }
      %seen = tile.row_load %marks[%warp, %c0] : !marks -> !lanes
      %is_listed = arith.cmpi eq, %seen, %mark : !lanes
      %r_i32 = arith.index_cast %r : index to i32
      %bit_i32 = arith.shli %c1_i32, %r_i32 : i32
      %bit = tile.splat %bit_i32 : i32 -> !lanes
      %own_bit = arith.select %is_listed, %bit, %zeros : !lane_mask, !lanes
      %own_one = arith.select %is_listed, %ones, %zeros : !lane_mask, !lanes
      %new_bits = arith.ori %bits, %own_bit : !lanes
      %new_sum = arith.addi %sum, %own_one : !lanes
      scf.yield %new_bits, %new_sum, %entries_1, %entries_2, %entries_3, %entries_4
          : !lanes, !lanes, !lanes, !lanes, !lanes, !lanes
    }

    // Where this warp's query blocks go, and how many there are in all.
    tile.row_store %marked#1, %sums[%warp, %c0] : !lanes, !marks
    tile.team_barrier
    %offset, %after = scf.for %other = %c0 to %invert_warps step %c1
        iter_args(%own = %before, %all = %before) -> (!lanes, !lanes) {
      %part = tile.row_load %sums[%other, %c0] : !marks -> !lanes
      %is_before = arith.cmpi slt, %other, %warp : index
      %own_after = arith.addi %own, %part : !lanes
      %new_own = scf.if %is_before -> (!lanes) {
        scf.yield %own_after : !lanes
      } else {
        scf.yield %own : !lanes
      }
      %new_all = arith.addi %all, %part : !lanes
      scf.yield %new_own, %new_all : !lanes, !lanes
    }
    tile.team_barrier

    %end = scf.for %r = %c0 to %c32 step %c1 iter_args(%place = %offset) -> (!lanes) {
      %r_i32 = arith.index_cast %r : index to i32
      %shift = tile.splat %r_i32 : i32 -> !lanes
      %shifted = arith.shrui %marked#0, %shift : !lanes
      %bit = arith.andi %shifted, %ones : !lanes
      %is_listed = arith.cmpi eq, %bit, %ones : !lanes
      %row_i32 = arith.addi %row_0_i32, %r_i32 : i32
      %row = tile.splat %row_i32 : i32 -> !lanes
      tile.scatter_at %row at %keys, %place where %is_listed into %key_lists
          : !lanes, !lanes, !lanes, !lane_mask, !tile.view<2 x i32>
      %next = arith.addi %place, %bit : !lanes
      scf.yield %next : !lanes
    }
    scf.yield %after : !lanes
  }
  %is_first = arith.cmpi eq, %warp, %c0 : index
  scf.if %is_first {
    %key_sums = tile.slice %key_counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
    %true = arith.constant true
    %all = tile.splat %true : i1 -> !lane_mask
    tile.scatter %base at %keys where %all into %key_sums : !lanes, !lanes, !lane_mask, !tile.view<1 x i32>
  }
}

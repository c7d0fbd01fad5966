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
// With has_places it also hands out the places of attention_bwd_q_kept.mlir, of
// which a head has kept_room: row blocks get as many as their lists have entries,
// one row block after the other.
//
//   row_places[b, h, i] = sum over i' < i of counts[b, h, i'], or -1 where those of i
//   do not fit, or where its list has an entry that is no key block; such a list
//   takes no room
//   places[b, h, j, n] = row_places[b, h, i] + p for i = key_indices[b, h, j, n] and
//   indices[b, h, i, p] = j, or -1 where i has no place
//   unkept[b, 0, h] = how many row blocks of the head have no place
//
// Parameter that follows from others: invert_rows = 32 invert_warps.

!lanes = tensor<32xi32>
!lane_mask = tensor<32xi1>
!marks = !tile.scratch<invert_warps, i32>
!spots = !tile.scratch<invert_rows, i32>

tile.kernel @invert_blocks(%indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %key_indices: !tile.global<4 x i32>, %key_counts: !tile.global<3 x i32>,
                           %places: !tile.global<4 x i32>, %row_places: !tile.global<3 x i32>,
                           %unkept: !tile.global<3 x i32>, %kept_room: index)
    parameters [has_places, invert_keys, invert_warps, invert_rows, invert_ctas]
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
  %spots = tile.scratch %c32 multiple %c32 : !spots
  %takes = tile.scratch %c32 multiple %c32 : !marks
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
  %keeps = tile.parameter "has_places" : i1
  %is_first_tile = arith.cmpi eq, %tile, %c0 : index
  %gives_places = arith.andi %keeps, %is_first_tile : i1
  %key_blocks = tile.dim %key_counts, 2 : !tile.global<3 x i32>
  %key_blocks_i32 = arith.index_cast %key_blocks : index to i32
  %all_key_blocks = tile.splat %key_blocks_i32 : i32 -> !lanes
  %kept_room_i32 = arith.index_cast %kept_room : index to i32
  %room = tile.splat %kept_room_i32 : i32 -> !lanes
  %head_places = tile.slice %places[%batch, %head] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %head_row_places = tile.slice %row_places[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  %q_blocks_i32 = arith.index_cast %q_blocks : index to i32
  %all_rows = tile.splat %q_blocks_i32 : i32 -> !lanes
  tile.launch_next
  // The lists may be what the launch before this one selects.
  tile.launch_wait

  %chunk = arith.muli %invert_warps, %c32 : index
  tile.row_store %zeros, %marks[%warp, %c0] : !lanes, !marks
  %base, %taken, %without = scf.for %first_row = %c0 to %q_blocks step %chunk
      iter_args(%before = %zeros, %taken_before = %zeros, %without_before = %zeros) -> (!lanes, !lanes, !lanes) {
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
    %marked:7 = scf.for %r = %c0 to %c32 step %c1
        iter_args(%bits = %zeros, %sum = %zeros, %strangers = %c0_i32, %entries_0 = %ahead_0, %entries_1 = %ahead_1,
                  %entries_2 = %ahead_2, %entries_3 = %ahead_3)
        -> (!lanes, !lanes, i32, !lanes, !lanes, !lanes, !lanes) {
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
      // Where in the list it stands, and whether the list names what is no block.
      %own_row = arith.addi %own_rows, %r : index
      %is_strange = scf.if %keeps -> (i1) {
        tile.row_scatter %numbers at %positions where %in_list into %spots[%own_row]
            : !lanes, !lanes, !lane_mask, !spots
        %beyond = arith.cmpi uge, %entries_0, %all_key_blocks : !lanes
        %strange = arith.andi %beyond, %in_list : !lane_mask
        %any_strange = tile.any %strange : !lane_mask
        scf.yield %any_strange : i1
      } else {
        %false = arith.constant false
        scf.yield %false : i1
      }
      %is_strange_list = scf.for %first = %c32 to %count step %c32 iter_args(%strange_before = %is_strange) -> (i1) {
        %entries = tile.load_values %list[%first] otherwise %minus_one : !tile.view<1 x i32>, i32 -> !lanes
        %first_i32 = arith.index_cast %first : index to i32
        %rest_i32 = arith.subi %count_i32, %first_i32 : i32
        %rest = tile.splat %rest_i32 : i32 -> !lanes
        %in_rest = arith.cmpi slt, %numbers, %rest : !lanes
        %more_positions = arith.subi %entries, %first_keys : !lanes
        tile.row_scatter %mark at %more_positions where %in_rest into %marks[%warp]
            : !lanes, !lanes, !lane_mask, !marks
        %is_strange_rest = scf.if %keeps -> (i1) {
          %firsts = tile.splat %first_i32 : i32 -> !lanes
          %rest_numbers = arith.addi %firsts, %numbers : !lanes
          tile.row_scatter %rest_numbers at %more_positions where %in_rest into %spots[%own_row]
              : !lanes, !lanes, !lane_mask, !spots
          %beyond_rest = arith.cmpi uge, %entries, %all_key_blocks : !lanes
          %strange_rest = arith.andi %beyond_rest, %in_rest : !lane_mask
          %any_strange_rest = tile.any %strange_rest : !lane_mask
          scf.yield %any_strange_rest : i1
        } else {
          %false_rest = arith.constant false
          scf.yield %false_rest : i1
        }
        %strange_after = arith.ori %strange_before, %is_strange_rest : i1
        scf.yield %strange_after : i1
      }
      %seen = tile.row_load %marks[%warp, %c0] : !marks -> !lanes
      %is_listed = arith.cmpi eq, %seen, %mark : !lanes
      %r_i32 = arith.index_cast %r : index to i32
      %bit_i32 = arith.shli %c1_i32, %r_i32 : i32
      %bit = tile.splat %bit_i32 : i32 -> !lanes
      %strange_bit = arith.select %is_strange_list, %bit_i32, %c0_i32 : i32
      %new_strangers = arith.ori %strangers, %strange_bit : i32
      %own_bit = arith.select %is_listed, %bit, %zeros : !lane_mask, !lanes
      %own_one = arith.select %is_listed, %ones, %zeros : !lane_mask, !lanes
      %new_bits = arith.ori %bits, %own_bit : !lanes
      %new_sum = arith.addi %sum, %own_one : !lanes
      scf.yield %new_bits, %new_sum, %new_strangers, %entries_1, %entries_2, %entries_3, %entries_4
          : !lanes, !lanes, i32, !lanes, !lanes, !lanes, !lanes
    }

    // A lane's row block, and the room that it and those before it take.
    %strange_lists = tile.splat %marked#2 : i32 -> !lanes
    %strange_shifted = arith.shrui %strange_lists, %numbers : !lanes
    %strange_bits = arith.andi %strange_shifted, %ones : !lanes
    %is_stranger = arith.cmpi eq, %strange_bits, %ones : !lanes
    %take = arith.select %is_stranger, %zeros, %list_counts : !lane_mask, !lanes
    %take_until = tile.sum_up_to %take : !lanes -> !lanes

    // Where this warp's query blocks go, and how many there are in all.
    tile.row_store %marked#1, %sums[%warp, %c0] : !lanes, !marks
    scf.if %keeps {
      %c31 = arith.constant 31 : index
      %take_of_warp = tile.pick %take_until[%c31] : !lanes -> i32
      %take_of_warps = tile.splat %take_of_warp : i32 -> !lanes
      tile.row_store %take_of_warps, %takes[%warp, %c0] : !lanes, !marks
    }
    tile.team_barrier
    %offset, %after, %taken_until, %taken_after = scf.for %other = %c0 to %invert_warps step %c1
        iter_args(%own = %before, %all = %before, %own_taken = %taken_before, %all_taken = %taken_before)
        -> (!lanes, !lanes, !lanes, !lanes) {
      %part = tile.row_load %sums[%other, %c0] : !marks -> !lanes
      %part_taken = scf.if %keeps -> (!lanes) {
        %taken_of_warp = tile.row_load %takes[%other, %c0] : !marks -> !lanes
        scf.yield %taken_of_warp : !lanes
      } else {
        scf.yield %zeros : !lanes
      }
      %is_before = arith.cmpi slt, %other, %warp : index
      %own_after = arith.addi %own, %part : !lanes
      %own_taken_after = arith.addi %own_taken, %part_taken : !lanes
      %new_own, %new_own_taken = scf.if %is_before -> (!lanes, !lanes) {
        scf.yield %own_after, %own_taken_after : !lanes, !lanes
      } else {
        scf.yield %own, %own_taken : !lanes, !lanes
      }
      %new_all = arith.addi %all, %part : !lanes
      %new_all_taken = arith.addi %all_taken, %part_taken : !lanes
      scf.yield %new_own, %new_all, %new_own_taken, %new_all_taken : !lanes, !lanes, !lanes, !lanes
    }
    %end_of_row = arith.addi %taken_until, %take_until : !lanes
    %start_of_row = arith.subi %end_of_row, %take : !lanes
    %fits = arith.cmpi sle, %end_of_row, %room : !lanes
    %is_empty = arith.cmpi eq, %list_counts, %zeros : !lanes
    %true_here = arith.constant true
    %everywhere = tile.splat %true_here : i1 -> !lane_mask
    %is_known = arith.xori %is_stranger, %everywhere : !lane_mask
    %has_room = arith.andi %fits, %is_known : !lane_mask
    %start_or_none = arith.select %has_room, %start_of_row, %nothing : !lane_mask, !lanes
    // A list without entries needs no room.
    %row_place = arith.select %is_empty, %zeros, %start_or_none : !lane_mask, !lanes
    %without_after = scf.if %gives_places -> (!lanes) {
      %first_rows = tile.splat %row_0_i32 : i32 -> !lanes
      %own_numbers = arith.addi %first_rows, %numbers : !lanes
      tile.scatter %row_place at %own_numbers where %everywhere into %head_row_places
          : !lanes, !lanes, !lane_mask, !tile.view<1 x i32>
      %is_row = arith.cmpi slt, %own_numbers, %all_rows : !lanes
      %is_none = arith.cmpi eq, %row_place, %nothing : !lanes
      %is_without = arith.andi %is_row, %is_none : !lane_mask
      %one_without = arith.select %is_without, %ones, %zeros : !lane_mask, !lanes
      %more_without = arith.addi %without_before, %one_without : !lanes
      scf.yield %more_without : !lanes
    } else {
      scf.yield %without_before : !lanes
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
      scf.if %keeps {
        %own_row = arith.addi %own_rows, %r : index
        %spot = tile.row_load %spots[%own_row, %c0] : !spots -> !lanes
        %row_place_i32 = tile.pick %row_place[%r] : !lanes -> i32
        %row_places_here = tile.splat %row_place_i32 : i32 -> !lanes
        %spot_place = arith.addi %row_places_here, %spot : !lanes
        %has_place = arith.cmpi sge, %row_places_here, %zeros : !lanes
        %place_or_none = arith.select %has_place, %spot_place, %nothing : !lane_mask, !lanes
        tile.scatter_at %place_or_none at %keys, %place where %is_listed into %head_places
            : !lanes, !lanes, !lanes, !lane_mask, !tile.view<2 x i32>
      }
      %next = arith.addi %place, %bit : !lanes
      scf.yield %next : !lanes
    }
    scf.yield %after, %taken_after, %without_after : !lanes, !lanes, !lanes
  }
  scf.if %keeps {
    tile.row_store %without, %takes[%warp, %c0] : !lanes, !marks
    tile.team_barrier
  }
  %is_first = arith.cmpi eq, %warp, %c0 : index
  scf.if %is_first {
    %key_sums = tile.slice %key_counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
    %true = arith.constant true
    %all = tile.splat %true : i1 -> !lane_mask
    tile.scatter %base at %keys where %all into %key_sums : !lanes, !lanes, !lane_mask, !tile.view<1 x i32>
  }
  %counts_rows = arith.andi %is_first, %gives_places : i1
  scf.if %counts_rows {
    %all_without = scf.for %other = %c0 to %invert_warps step %c1 iter_args(%sum = %zeros) -> (!lanes) {
      %part = tile.row_load %takes[%other, %c0] : !marks -> !lanes
      %next = arith.addi %sum, %part : !lanes
      scf.yield %next : !lanes
    }
    %number_without = tile.total sum %all_without : !lanes -> i32
    %unkept_heads = tile.slice %unkept[%batch, %c0] : !tile.global<3 x i32> -> !tile.view<1 x i32>
    tile.store_scalar %number_without, %unkept_heads[%head] : i32, !tile.view<1 x i32>
  }
}

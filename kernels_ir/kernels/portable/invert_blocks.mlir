// SPDX-License-Identifier: Apache-2.0
//
// invert_blocks: which blocks of query rows list a key block.
//
//   key list of j = the i, ascending, whose list has j
//
// Entries outside [0, kvBlocks) and slots beyond a count or the capacity are
// nothing; unused slots of a key list are -1. One program a few key blocks: it
// goes over all lists of the head and compares each entry with its numbers, so
// that the result does not depend on who comes first.

!hits = tensor<?x?xi32, #tile.sizes<tile_rows, tile_columns>>
!mask = tensor<?x?xi1, #tile.sizes<tile_rows, tile_columns>>
!rows = tensor<?xi32, #tile.sizes<tile_rows>>
!columns = tensor<?xi32, #tile.sizes<tile_columns>>
!columns_i1 = tensor<?xi1, #tile.sizes<tile_columns>>
!one_slot = tensor<?x?xi32, #tile.sizes<tile_columns, 1>>

tile.kernel @invert_blocks(%indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %key_indices: !tile.global<4 x i32>, %key_counts: !tile.global<3 x i32>)
    parameters [tile_rows, tile_columns]
    grid %key_indices by tile_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %minus_one = arith.constant -1 : i32
  %tile_rows = tile.parameter "tile_rows" : index
  %tile_columns = tile.parameter "tile_columns" : index
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_key_block = arith.muli %tile, %tile_rows : index
  %q_blocks = tile.dim %indices, 2 : !tile.global<4 x i32>
  %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
  %lists = tile.slice %indices[%batch, %head] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %lengths = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  %key_lists = tile.slice %key_indices[%batch, %head] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %key_lengths = tile.slice %key_counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>

  %first_i32 = arith.index_cast %first_key_block : index to i32
  %firsts = tile.splat %first_i32 : i32 -> !rows
  %row_iota = tile.iota : !rows
  %row_numbers = arith.addi %firsts, %row_iota : !rows
  %numbers = tile.expand %row_numbers axis 1 : !rows -> !hits
  %no_hits = tile.splat %i0 : i32 -> !hits
  %one_hit = tile.splat %i1 : i32 -> !hits
  %no_entries = tile.splat %minus_one : i32 -> !columns
  %no_lengths = tile.splat %i0 : i32 -> !rows

  %final_lengths = scf.for %column = %c0 to %q_blocks step %tile_columns
      iter_args(%old_lengths = %no_lengths) -> (!rows) {
    // As many slots as the longest of these lists has.
    %column_lengths = tile.load_values %lengths[%column] otherwise %i0 : !tile.view<1 x i32>, i32 -> !columns
    %last_column = arith.addi %column, %tile_columns : index
    %column_end = arith.minsi %last_column, %q_blocks : index
    %longest = scf.for %row = %column to %column_end step %c1
        iter_args(%longest_yet = %i0) -> (i32) {
      %length = tile.load_scalar %lengths[%row] : !tile.view<1 x i32> -> i32
      %longer = arith.maxsi %longest_yet, %length : i32
      scf.yield %longer : i32
    }
    %longest_index = arith.index_cast %longest : i32 to index
    %slots = arith.minsi %longest_index, %capacity : index
    %hits = scf.for %slot = %c0 to %slots step %c1
        iter_args(%old_hits = %no_hits) -> (!hits) {
      %slot_tile = tile.load %lists[%column, %slot] : !tile.view<2 x i32> -> !one_slot
      %entries = tile.reduce sum %slot_tile : !one_slot -> !columns
      %slot_i32 = arith.index_cast %slot : index to i32
      %slot_numbers = tile.splat %slot_i32 : i32 -> !columns
      %is_counted = arith.cmpi slt, %slot_numbers, %column_lengths : !columns
      %counted = arith.select %is_counted, %entries, %no_entries : !columns_i1, !columns
      %counted_all = tile.expand %counted axis 0 : !columns -> !hits
      %is_listed = arith.cmpi eq, %counted_all, %numbers : !hits
      %new_hits = arith.select %is_listed, %one_hit, %old_hits : !mask, !hits
      scf.yield %new_hits : !hits
    }
    %keep = arith.cmpi ne, %hits, %no_hits : !hits
    %new_lengths = tile.append_indices %keep from %column counts %old_lengths into %key_lists[%first_key_block]
        : !mask, !rows, !tile.view<2 x i32> -> !rows
    scf.yield %new_lengths : !rows
  }
  tile.fill_tail %minus_one after %final_lengths into %key_lists[%first_key_block] : !rows, !tile.view<2 x i32>
  tile.store %final_lengths, %key_lengths[%first_key_block] : !rows, !tile.view<1 x i32>
}

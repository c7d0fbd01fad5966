// SPDX-License-Identifier: Apache-2.0
//
// list_blocks: the lists that a mask spells.
//
//   indices[b, h, i, :] = the j with mask[b, h, i, j] != 0, ascending, then -1
//   counts[b, h, i]     = their number
//
// A warp takes a row and reads it once, a run of list_run bytes at a time: one
// byte for each pair of blocks in, four out. Batch and heads of the mask may have
// strides of 0.
//
// Parameter that follows from others: list_rows = list_warps.

!run_i32 = tensor<?xi32, #tile.sizes<list_run>>
!run_i1 = tensor<?xi1, #tile.sizes<list_run>>

tile.kernel @list_blocks(%mask: !tile.global<4 x i8>, %indices: !tile.global<4 x i32>,
                         %counts: !tile.global<3 x i32>)
    parameters [list_run, list_rows, list_warps, list_ctas]
    grid %mask by list_rows {
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32
  %minus_one = arith.constant -1 : i32
  %run = tile.parameter "list_run" : index
  %list_warps = tile.parameter "list_warps" : index
  %member, %warp = tile.team members 1 warps list_warps ctas list_ctas : index, index
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %list_warps : index
  %row = arith.addi %first_row, %warp : index
  %rows = tile.dim %mask, 2 : !tile.global<4 x i8>
  %kv_blocks = tile.dim %mask, 3 : !tile.global<4 x i8>
  %exists = arith.cmpi slt, %row, %rows : index
  scf.if %exists {
    %flags = tile.slice %mask[%batch, %head, %row] : !tile.global<4 x i8> -> !tile.view<1 x i8>
    %list = tile.slice %indices[%batch, %head, %row] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %zeros = tile.splat %i0 : i32 -> !run_i32
    %numbers = tile.iota : !run_i32
    %length = scf.for %column = %c0 to %kv_blocks step %run iter_args(%old = %i0) -> (i32) {
      %bytes = tile.load_run %flags[%column] : !tile.view<1 x i8> -> !run_i32
      %keep = arith.cmpi ne, %bytes, %zeros : !run_i32
      %ranks = tile.rank %keep : !run_i1 -> !run_i32
      %ones = arith.extui %keep : !run_i1 to !run_i32
      %here = tile.total sum %ones : !run_i32 -> i32
      %start = arith.index_cast %column : index to i32
      %starts = tile.splat %start : i32 -> !run_i32
      %places = arith.addi %starts, %numbers : !run_i32
      %olds = tile.splat %old : i32 -> !run_i32
      %slots = arith.addi %ranks, %olds : !run_i32
      tile.scatter %places at %slots where %keep into %list : !run_i32, !run_i32, !run_i1, !tile.view<1 x i32>
      %new = arith.addi %old, %here : i32
      scf.yield %new : i32
    }
    %length_index = arith.index_cast %length : i32 to index
    tile.fill_rest %minus_one into %list[%length_index] : i32, !tile.view<1 x i32>
    %list_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
    tile.store_scalar %length, %list_counts[%row] : i32, !tile.view<1 x i32>
  }
}

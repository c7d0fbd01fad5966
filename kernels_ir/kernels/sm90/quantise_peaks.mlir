// SPDX-License-Identifier: Apache-2.0
//
// quantise_peaks for Hopper: the largest absolute value of each channel, block of
// rows by block of rows.
//
//   peaks[b, h, i, c] = max of |x[b, h, t, c]| over t in block i, t < length
//
// A stream, as in pool.mlir; quantise_factors.mlir takes the peaks from here.
//
// Parameter that follows from others: quantise_rows = quantise_warps *
// quantise_block.

!elem = !tile.element<"elem">
!channels = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @quantise_peaks(%x: !tile.global<4 x !elem>, %peaks: !tile.global<4 x f32>)
    parameters [elem, head_dim, quantise_block, quantise_rows, quantise_warps, quantise_ctas]
    grid %x by quantise_rows {
  %c0 = arith.constant 0 : index
  %quantise_block = tile.parameter "quantise_block" : index
  %quantise_warps = tile.parameter "quantise_warps" : index
  %member, %warp = tile.team members 1 warps quantise_warps ctas quantise_ctas : index, index
  tile.launch_next
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_block = arith.muli %tile, %quantise_warps : index
  %block = arith.addi %first_block, %warp : index
  %first = arith.muli %block, %quantise_block : index
  %length = tile.dim %x, 2 : !tile.global<4 x !elem>
  %exists = arith.cmpi slt, %first, %length : index
  scf.if %exists {
    %whole_end = arith.addi %first, %quantise_block : index
    %end = arith.minsi %whole_end, %length : index
    %rows = tile.slice %x[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %peak = tile.peak_rows %rows[%first to %end] : !tile.view<2 x !elem> -> !channels
    %peak_rows = tile.slice %peaks[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
    tile.store %peak, %peak_rows[%block, %c0] : !channels, !tile.view<2 x f32>
  }
  tile.launch_wait
}

// SPDX-License-Identifier: Apache-2.0
//
// quantise_factors: what q, k and v are multiplied with before they are rounded to
// eight bits, from the peaks of their blocks (quantise_survey.mlir).
//
//   u = 8 log2(e) softmax_scale,  r = sqrt(peak(k) / |u| peak(q))
//   q_factors[b, h] = u r,  k_factors[b, h] = 1 / r
//   v_factors[b, h, c] = 448 / peak(v, c),  v_scales = 1 / v_factors
//
// so that scores q kᵀ of the rounded tensors are in eighths of an octave, q and k
// reach equally far, and each channel of v reaches the largest number. A peak of q
// or k is over all channels, and of q over all heads that share a head of k. Where
// a peak is 0, r or the channel's factor is 1. One program a head of k.
//
// Parameter that follows from others: head_rows is more than any number of
// blocks, so that a head is one program.

!channels = tensor<?xf32, #tile.sizes<head_dim>>
!channel_mask = tensor<?xi1, #tile.sizes<head_dim>>
!row = tensor<?x?xf32, #tile.sizes<1, head_dim>>
!number = tensor<?xf32, #tile.sizes<1>>
!number_mask = tensor<?xi1, #tile.sizes<1>>
!peaks = !tile.global<4 x f32>

tile.kernel @quantise_factors(%q_peaks: !peaks, %k_peaks: !peaks, %v_peaks: !peaks,
                              %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                              %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                              %softmax_scale: f32)
    parameters [head_dim, head_rows]
    grid %k_peaks by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %largest = arith.constant 448.0 : f32
  %units_per_score = arith.constant 11.5415603 : f32
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %q_heads = tile.dim %q_peaks, 1 : !peaks
  %kv_heads = tile.dim %k_peaks, 1 : !peaks
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %first_head = arith.muli %kv_head, %heads_per_kv : index
  %end_head = arith.addi %first_head, %heads_per_kv : index
  %q_blocks = tile.dim %q_peaks, 2 : !peaks
  %kv_blocks = tile.dim %k_peaks, 2 : !peaks

  // Each block's peak is no less than 0, so that these are maxima.
  %none = tile.splat %f0 : f32 -> !number
  %q_peak = scf.for %head = %first_head to %end_head step %c1 iter_args(%head_most = %none) -> (!number) {
    %rows = tile.slice %q_peaks[%batch, %head] : !peaks -> !tile.view<2 x f32>
    %most = scf.for %block = %c0 to %q_blocks step %c1 iter_args(%so_far = %head_most) -> (!number) {
      %row = tile.load %rows[%block, %c0] : !tile.view<2 x f32> -> !row
      %peak = tile.reduce max %row : !row -> !number
      %more = arith.maximumf %so_far, %peak : !number
      scf.yield %more : !number
    }
    scf.yield %most : !number
  }
  %k_rows = tile.slice %k_peaks[%batch, %kv_head] : !peaks -> !tile.view<2 x f32>
  %no_channels = tile.splat %f0 : f32 -> !channels
  %k_peak, %v_peak = scf.for %block = %c0 to %kv_blocks step %c1
      iter_args(%k_most = %none, %v_most = %no_channels) -> (!number, !channels) {
    %k_row = tile.load %k_rows[%block, %c0] : !tile.view<2 x f32> -> !row
    %k_block = tile.reduce max %k_row : !row -> !number
    %k_more = arith.maximumf %k_most, %k_block : !number
    %v_row = tile.slice %v_peaks[%batch, %kv_head, %block] : !peaks -> !tile.view<1 x f32>
    %v_block = tile.load_values %v_row[%c0] otherwise %f0 : !tile.view<1 x f32>, f32 -> !channels
    %v_more = arith.maximumf %v_most, %v_block : !channels
    scf.yield %k_more, %v_more : !number, !channels
  }

  // A scale of 0 or below is in q's factor, and its size alone in the reach.
  %unit = arith.mulf %softmax_scale, %units_per_score : f32
  %units = tile.splat %unit : f32 -> !number
  %unit_sizes = math.absf %units : !number
  %ones = tile.splat %f1 : f32 -> !number
  %reach = arith.mulf %unit_sizes, %q_peak : !number
  %product = arith.mulf %reach, %k_peak : !number
  %has_both = arith.cmpf ogt, %product, %none : !number
  %ratio = arith.divf %k_peak, %reach : !number
  %safe_ratio = arith.select %has_both, %ratio, %ones : !number_mask, !number
  %root = math.sqrt %safe_ratio : !number
  %q_factor = arith.mulf %units, %root : !number
  %k_factor = arith.divf %ones, %root : !number
  %q_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
  scf.for %head = %first_head to %end_head step %c1 {
    tile.store %q_factor, %q_row[%head] : !number, !tile.view<1 x f32>
  }
  %k_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
  tile.store %k_factor, %k_row[%kv_head] : !number, !tile.view<1 x f32>

  %largests = tile.splat %largest : f32 -> !channels
  %channel_ones = tile.splat %f1 : f32 -> !channels
  %is_zero = arith.cmpf oeq, %v_peak, %no_channels : !channels
  %scale = arith.divf %v_peak, %largests : !channels
  %safe_scale = arith.select %is_zero, %channel_ones, %scale : !channel_mask, !channels
  %factor = arith.divf %channel_ones, %safe_scale : !channels
  %factor_rows = tile.slice %v_factors[%batch] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  tile.store %factor, %factor_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
  %scale_rows = tile.slice %v_scales[%batch] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  tile.store %safe_scale, %scale_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
}

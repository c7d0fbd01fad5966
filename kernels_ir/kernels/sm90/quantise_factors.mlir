// SPDX-License-Identifier: Apache-2.0
//
// quantise_factors for Hopper: what q, k and v are multiplied with before they are
// rounded to eight bits, from the peaks of their blocks (quantise_survey.mlir,
// quantise_peaks.mlir).
//
//   u = 8 log2(e) softmax_scale,  r = sqrt(peak(k) / (u peak(q)))
//   q_factors[b, h] = u r,  k_factors[b, h] = 1 / r
//   v_factors[b, h, c] = 448 / peak(v, c),  v_scales = 1 / v_factors
//
// so that scores q kᵀ of the rounded tensors are in eighths of an octave, q and k
// reach equally far, and each channel of v reaches the largest number. A peak of q
// or k is over all channels, and of q over all heads that share a head of k. Where
// a peak is 0, r or the channel's factor is 1.
//
// A program is a head of k: its warps share the blocks, then one works out q's and
// k's factors, another v's.
//
// Parameters that follow from others: factor_columns is head_dim or, so that lanes
// have equally many, the next power of two, the columns beyond 0; factor_rows = 3 *
// factor_warps; head_rows is more than any number of blocks, so that a head is one
// program.

!channels = tensor<?xf32, #tile.sizes<factor_columns>>
!lanes = tensor<32xf32>
!peaks = !tile.global<4 x f32>
!row = !tile.view<1 x f32>
!scratch = !tile.scratch<factor_rows, f32>

tile.kernel @quantise_factors(%q_peaks: !peaks, %k_peaks: !peaks, %v_peaks: !peaks,
                              %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                              %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                              %softmax_scale: f32)
    parameters [factor_columns, factor_rows, factor_warps, head_rows]
    grid %k_peaks by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %largest = arith.constant 448.0 : f32
  %units_per_score = arith.constant 11.5415603 : f32
  %factor_warps = tile.parameter "factor_warps" : index
  %scratch = tile.scratch %c256 multiple %c32 : !scratch
  %member, %warp = tile.team members 1 warps factor_warps ctas 1 : index, index
  tile.launch_next
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %q_heads = tile.dim %q_peaks, 1 : !peaks
  %kv_heads = tile.dim %k_peaks, 1 : !peaks
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %first_head = arith.muli %kv_head, %heads_per_kv : index
  %end_head = arith.addi %first_head, %heads_per_kv : index
  %q_blocks = tile.dim %q_peaks, 2 : !peaks
  %kv_blocks = tile.dim %k_peaks, 2 : !peaks
  %none = tile.splat %f0 : f32 -> !channels
  %two_warps = arith.muli %factor_warps, %c2 : index
  %three_warps = arith.addi %two_warps, %factor_warps : index
  %stride = arith.muli %two_warps, %c2 : index
  tile.launch_wait

  // This warp's blocks, four at a time; the last one again in place of one beyond.
  %q_last = arith.subi %q_blocks, %c1 : index
  %kv_last = arith.subi %kv_blocks, %c1 : index
  %q_peak = scf.for %head = %first_head to %end_head step %c1 iter_args(%head_most = %none) -> (!channels) {
    %most = scf.for %block = %warp to %q_blocks step %stride iter_args(%so_far_0 = %head_most) -> (!channels) {
      %inside_0 = arith.minsi %block, %q_last : index
      %row_0 = tile.slice %q_peaks[%batch, %head, %inside_0] : !peaks -> !row
      %peak_0 = tile.load_values %row_0[%c0] otherwise %f0 : !row, f32 -> !channels
      %block_1 = arith.addi %block, %factor_warps : index
      %inside_1 = arith.minsi %block_1, %q_last : index
      %row_1 = tile.slice %q_peaks[%batch, %head, %inside_1] : !peaks -> !row
      %peak_1 = tile.load_values %row_1[%c0] otherwise %f0 : !row, f32 -> !channels
      %block_2 = arith.addi %block, %two_warps : index
      %inside_2 = arith.minsi %block_2, %q_last : index
      %row_2 = tile.slice %q_peaks[%batch, %head, %inside_2] : !peaks -> !row
      %peak_2 = tile.load_values %row_2[%c0] otherwise %f0 : !row, f32 -> !channels
      %block_3 = arith.addi %block, %three_warps : index
      %inside_3 = arith.minsi %block_3, %q_last : index
      %row_3 = tile.slice %q_peaks[%batch, %head, %inside_3] : !peaks -> !row
      %peak_3 = tile.load_values %row_3[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      scf.yield %so_far_4 : !channels
    }
    scf.yield %most : !channels
  }
  %k_peak, %v_peak = scf.for %block = %warp to %kv_blocks step %stride
      iter_args(%k_most_0 = %none, %v_most_0 = %none) -> (!channels, !channels) {
    %inside_0 = arith.minsi %block, %kv_last : index
    %k_row_0 = tile.slice %k_peaks[%batch, %kv_head, %inside_0] : !peaks -> !row
    %k_peak_0 = tile.load_values %k_row_0[%c0] otherwise %f0 : !row, f32 -> !channels
    %v_row_0 = tile.slice %v_peaks[%batch, %kv_head, %inside_0] : !peaks -> !row
    %v_peak_0 = tile.load_values %v_row_0[%c0] otherwise %f0 : !row, f32 -> !channels
    %block_1 = arith.addi %block, %factor_warps : index
    %inside_1 = arith.minsi %block_1, %kv_last : index
    %k_row_1 = tile.slice %k_peaks[%batch, %kv_head, %inside_1] : !peaks -> !row
    %k_peak_1 = tile.load_values %k_row_1[%c0] otherwise %f0 : !row, f32 -> !channels
    %v_row_1 = tile.slice %v_peaks[%batch, %kv_head, %inside_1] : !peaks -> !row
    %v_peak_1 = tile.load_values %v_row_1[%c0] otherwise %f0 : !row, f32 -> !channels
    %block_2 = arith.addi %block, %two_warps : index
    %inside_2 = arith.minsi %block_2, %kv_last : index
    %k_row_2 = tile.slice %k_peaks[%batch, %kv_head, %inside_2] : !peaks -> !row
    %k_peak_2 = tile.load_values %k_row_2[%c0] otherwise %f0 : !row, f32 -> !channels
    %v_row_2 = tile.slice %v_peaks[%batch, %kv_head, %inside_2] : !peaks -> !row
    %v_peak_2 = tile.load_values %v_row_2[%c0] otherwise %f0 : !row, f32 -> !channels
    %block_3 = arith.addi %block, %three_warps : index
    %inside_3 = arith.minsi %block_3, %kv_last : index
    %k_row_3 = tile.slice %k_peaks[%batch, %kv_head, %inside_3] : !peaks -> !row
    %k_peak_3 = tile.load_values %k_row_3[%c0] otherwise %f0 : !row, f32 -> !channels
    %v_row_3 = tile.slice %v_peaks[%batch, %kv_head, %inside_3] : !peaks -> !row
    %v_peak_3 = tile.load_values %v_row_3[%c0] otherwise %f0 : !row, f32 -> !channels
    %k_most_1 = arith.maxnumf %k_most_0, %k_peak_0 : !channels
    %v_most_1 = arith.maxnumf %v_most_0, %v_peak_0 : !channels
    %k_most_2 = arith.maxnumf %k_most_1, %k_peak_1 : !channels
    %v_most_2 = arith.maxnumf %v_most_1, %v_peak_1 : !channels
    %k_most_3 = arith.maxnumf %k_most_2, %k_peak_2 : !channels
    %v_most_3 = arith.maxnumf %v_most_2, %v_peak_2 : !channels
    %k_most_4 = arith.maxnumf %k_most_3, %k_peak_3 : !channels
    %v_most_4 = arith.maxnumf %v_most_3, %v_peak_3 : !channels
    scf.yield %k_most_4, %v_most_4 : !channels, !channels
  }
  %k_place = arith.addi %factor_warps, %warp : index
  %v_place = arith.addi %two_warps, %warp : index
  tile.row_store %q_peak, %scratch[%warp, %c0] : !channels, !scratch
  tile.row_store %k_peak, %scratch[%k_place, %c0] : !channels, !scratch
  tile.row_store %v_peak, %scratch[%v_place, %c0] : !channels, !scratch
  tile.team_barrier

  %is_first = arith.cmpi eq, %warp, %c0 : index
  scf.if %is_first {
    %q_most, %k_most = scf.for %other = %c0 to %factor_warps step %c1
        iter_args(%q_so_far = %none, %k_so_far = %none) -> (!channels, !channels) {
      %q_other = tile.row_load %scratch[%other, %c0] : !scratch -> !channels
      %k_other_place = arith.addi %factor_warps, %other : index
      %k_other = tile.row_load %scratch[%k_other_place, %c0] : !scratch -> !channels
      %q_more = arith.maxnumf %q_so_far, %q_other : !channels
      %k_more = arith.maxnumf %k_so_far, %k_other : !channels
      scf.yield %q_more, %k_more : !channels, !channels
    }
    %q_total = tile.total max %q_most : !channels -> f32
    %k_total = tile.total max %k_most : !channels -> f32
    %unit = arith.mulf %softmax_scale, %units_per_score : f32
    %reach = arith.mulf %unit, %q_total : f32
    %product = arith.mulf %reach, %k_total : f32
    %has_both = arith.cmpf ogt, %product, %f0 : f32
    %ratio = arith.divf %k_total, %reach : f32
    %safe_ratio = arith.select %has_both, %ratio, %f1 : f32
    %ratios = tile.splat %safe_ratio : f32 -> !lanes
    %roots = math.sqrt %ratios : !lanes
    %root = tile.total max %roots : !lanes -> f32
    %q_factor = arith.mulf %unit, %root : f32
    %k_factor = arith.divf %f1, %root : f32
    %q_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !row
    scf.for %head = %first_head to %end_head step %c1 {
      tile.store_scalar %q_factor, %q_row[%head] : f32, !row
    }
    %k_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !row
    tile.store_scalar %k_factor, %k_row[%kv_head] : f32, !row
  }
  %is_second = arith.cmpi eq, %warp, %c1 : index
  scf.if %is_second {
    %v_most = scf.for %other = %c0 to %factor_warps step %c1 iter_args(%so_far = %none) -> (!channels) {
      %place = arith.addi %two_warps, %other : index
      %v_other = tile.row_load %scratch[%place, %c0] : !scratch -> !channels
      %more = arith.maxnumf %so_far, %v_other : !channels
      scf.yield %more : !channels
    }
    %largests = tile.splat %largest : f32 -> !channels
    %ones = tile.splat %f1 : f32 -> !channels
    %is_zero = arith.cmpf oeq, %v_most, %none : !channels
    %scale = arith.divf %v_most, %largests : !channels
    %safe_scale = arith.select %is_zero, %ones, %scale : tensor<?xi1, #tile.sizes<factor_columns>>, !channels
    %factor = arith.divf %ones, %safe_scale : !channels
    %factor_row = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    tile.store %factor, %factor_row[%c0] : !channels, !row
    %scale_row = tile.slice %v_scales[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    tile.store %safe_scale, %scale_row[%c0] : !channels, !row
  }
}

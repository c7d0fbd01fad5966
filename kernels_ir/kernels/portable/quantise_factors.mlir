// SPDX-License-Identifier: Apache-2.0
//
// quantise_factors: what q, k and v are multiplied with before they are
// rounded to eight bits (quantise.mlir), from a sample of their rows.
//
//   u = 8 log2(e) softmax_scale,  r = sqrt(peak(k) / (|u| peak(q)))
//   q_factors[b, h] = u r,  k_factors[b, h] = 1 / r
//   v_factors[b, h, c] = 32 / peak(v, c),  v_scales = 1 / v_factors
//   saturated[b kv_heads + h] = 0
//
// so that scores q kᵀ of the rounded tensors are in eighths of an octave, and q and
// k reach equally far. A peak is the largest absolute value in a tensor's sample; of q
// or k over all channels, and of q over all heads that share a head of k. It is taken
// as at least 2^-60 (of v 2^-110); r is 1 where u is 0. NaN does not count.
//
// The sample of n rows is eight times 32: for i < 8 those from i (n - 32) / 7 on,
// rounded down, from the first row to the last, and all of them where n <= 256. What
// is not in it may be fourteen times as large before v reaches 448, and numbers of
// eight bits keep their three bits of mantissa down to 2^-11 of a peak. What reaches
// 448 all the same `quantise` notes in `saturated`, and quantise_again.mlir mends.
//
// One program a head of k; peaks is not written, which Hopper's warps talk through.
//
// Parameter that follows from others: head_rows is more than any number of rows, so
// that a head is one program.

!elem = !tile.element<"elem">
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!channels = tensor<?xf32, #tile.sizes<head_dim>>
!row = tensor<?x?xf32, #tile.sizes<1, head_dim>>
!number = tensor<?xf32, #tile.sizes<1>>
!number_mask = tensor<?xi1, #tile.sizes<1>>
!peaks = !tile.global<4 x f32>
!peak_rows = !tile.view<2 x f32>
!flags = !tile.global<1 x i32>
!sample = tensor<?x?xf32, #tile.sizes<head_dim, 32>>
!sample_mask = tensor<?x?xi1, #tile.sizes<head_dim, 32>>

tile.kernel @quantise_factors(%q: !wide, %k: !wide, %v: !wide, %peaks: !peaks,
                              %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                              %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                              %saturated: !flags, %softmax_scale: f32)
    parameters [elem, head_dim, head_rows]
    grid %k by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %reach_of_v = arith.constant 32.0 : f32
  %units_per_score = arith.constant 11.5415603 : f32
  %least = arith.constant 8.67361738e-19 : f32 // 2^-60
  %least_of_v = arith.constant 7.70371978e-34 : f32 // 2^-110
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %q_len = tile.dim %q, 2 : !wide
  %kv_len = tile.dim %k, 2 : !wide
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %first_head = arith.muli %kv_head, %heads_per_kv : index
  %end_head = arith.addi %first_head, %heads_per_kv : index
  %q_factor_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
  %k_factor_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
  %v_factor_rows = tile.slice %v_factors[%batch] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %v_scale_rows = tile.slice %v_scales[%batch] : !tile.global<3 x f32> -> !tile.view<2 x f32>
  %no_rows = tile.splat %f0 : f32 -> !sample
  %none = tile.splat %f0 : f32 -> !channels

  // Rows beyond the end are zeros, which are no peak.
  %q_rest = arith.subi %q_len, %c32 : index
  %q_span = arith.maxsi %q_rest, %c0 : index
  %kv_rest = arith.subi %kv_len, %c32 : index
  %kv_span = arith.maxsi %kv_rest, %c0 : index
  %q_most = scf.for %head = %first_head to %end_head step %c1 iter_args(%head_most = %none) -> (!channels) {
    %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
    %most = scf.for %run = %c0 to %c8 step %c1 iter_args(%so_far = %head_most) -> (!channels) {
      %steps = arith.muli %run, %q_span : index
      %first = arith.divui %steps, %c7 : index
      %q_elements = tile.load %q_rows[%first, %c0] transposed : !wide_rows -> !sample
      %q_sizes = math.absf %q_elements : !sample
      %q_is_number = arith.cmpf ord, %q_sizes, %q_sizes : !sample
      %q_numbers = arith.select %q_is_number, %q_sizes, %no_rows : !sample_mask, !sample
      %q_peak = tile.reduce max %q_numbers : !sample -> !channels
      %q_more = arith.maximumf %so_far, %q_peak : !channels
      scf.yield %q_more : !channels
    }
    scf.yield %most : !channels
  }
  %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
  %k_most = scf.for %run = %c0 to %c8 step %c1 iter_args(%so_far = %none) -> (!channels) {
    %steps = arith.muli %run, %kv_span : index
    %first = arith.divui %steps, %c7 : index
    %k_elements = tile.load %k_rows[%first, %c0] transposed : !wide_rows -> !sample
    %k_sizes = math.absf %k_elements : !sample
    %k_is_number = arith.cmpf ord, %k_sizes, %k_sizes : !sample
    %k_numbers = arith.select %k_is_number, %k_sizes, %no_rows : !sample_mask, !sample
    %k_peak = tile.reduce max %k_numbers : !sample -> !channels
    %k_more = arith.maximumf %so_far, %k_peak : !channels
    scf.yield %k_more : !channels
  }
  %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
  %v_most = scf.for %run = %c0 to %c8 step %c1 iter_args(%so_far = %none) -> (!channels) {
    %steps = arith.muli %run, %kv_span : index
    %first = arith.divui %steps, %c7 : index
    %v_elements = tile.load %v_rows[%first, %c0] transposed : !wide_rows -> !sample
    %v_sizes = math.absf %v_elements : !sample
    %v_is_number = arith.cmpf ord, %v_sizes, %v_sizes : !sample
    %v_numbers = arith.select %v_is_number, %v_sizes, %no_rows : !sample_mask, !sample
    %v_peak = tile.reduce max %v_numbers : !sample -> !channels
    %v_more = arith.maximumf %so_far, %v_peak : !channels
    scf.yield %v_more : !channels
  }
  %q_row = tile.expand %q_most axis 0 : !channels -> !row
  %q_total = tile.reduce max %q_row : !row -> !number
  %k_row = tile.expand %k_most axis 0 : !channels -> !row
  %k_total = tile.reduce max %k_row : !row -> !number
  %leasts = tile.splat %least : f32 -> !number
  %q_peak = arith.maximumf %q_total, %leasts : !number
  %k_peak = arith.maximumf %k_total, %leasts : !number
  %unit = arith.mulf %softmax_scale, %units_per_score : f32
  %units = tile.splat %unit : f32 -> !number
  %unit_sizes = math.absf %units : !number
  %zeros = tile.splat %f0 : f32 -> !number
  %ones = tile.splat %f1 : f32 -> !number
  %reach = arith.mulf %unit_sizes, %q_peak : !number
  %ratio = arith.divf %k_peak, %reach : !number
  %has_unit = arith.cmpf ogt, %unit_sizes, %zeros : !number
  %safe_ratio = arith.select %has_unit, %ratio, %ones : !number_mask, !number
  %root = math.sqrt %safe_ratio : !number
  %q_factor = arith.mulf %units, %root : !number
  %k_factor = arith.divf %ones, %root : !number
  %leasts_of_v = tile.splat %least_of_v : f32 -> !channels
  %v_peak = arith.maximumf %v_most, %leasts_of_v : !channels
  %reaches = tile.splat %reach_of_v : f32 -> !channels
  %channel_ones = tile.splat %f1 : f32 -> !channels
  %scale = arith.divf %v_peak, %reaches : !channels
  %v_factor = arith.divf %channel_ones, %scale : !channels
  scf.for %head = %first_head to %end_head step %c1 {
    tile.store %q_factor, %q_factor_row[%head] : !number, !tile.view<1 x f32>
  }
  tile.store %k_factor, %k_factor_row[%kv_head] : !number, !tile.view<1 x f32>
  tile.store %v_factor, %v_factor_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
  tile.store %scale, %v_scale_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
}

// SPDX-License-Identifier: Apache-2.0
//
// quantise_factors for Hopper: what q, k and v are multiplied with before they are
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
// A program is a head of k, which a team of eight CTAs shares: a warp takes 32 rows
// of q, k or v, then one works out q's and k's factors, another v's. peaks[b, h] is
// what they tell each other.
//
// Parameters that follow from others: factor_columns is head_dim or, so that lanes
// have equally many, the next power of two, the columns beyond 0; head_rows is more
// than any number of rows, so that a head is one program.

!elem = !tile.element<"elem">
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!sample = tensor<?xf32, #tile.sizes<head_dim>>
!channels = tensor<?xf32, #tile.sizes<factor_columns>>
!lanes = tensor<32xf32>
!peaks = !tile.global<4 x f32>
!peak_rows = !tile.view<2 x f32>
!row = !tile.view<1 x f32>
!flags = !tile.global<1 x i32>

tile.kernel @quantise_factors(%q: !wide, %k: !wide, %v: !wide, %peaks: !peaks,
                              %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                              %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                              %saturated: !flags, %softmax_scale: f32)
    parameters [elem, head_dim, factor_columns, head_rows]
    grid %k by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c32 = arith.constant 32 : index
  %i0 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %reach_of_v = arith.constant 32.0 : f32
  %units_per_score = arith.constant 11.5415603 : f32
  %least = arith.constant 8.67361738e-19 : f32 // 2^-60
  %least_of_v = arith.constant 7.70371978e-34 : f32 // 2^-110
  %run, %tensor = tile.team members 8 warps 3 ctas 4 : index, index
  tile.launch_next
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %first_head = arith.muli %kv_head, %heads_per_kv : index
  %end_head = arith.addi %first_head, %heads_per_kv : index
  %runs_before = arith.muli %tensor, %c8 : index
  %place = arith.addi %runs_before, %run : index
  %no_sample = tile.splat %f0 : f32 -> !sample
  %none = tile.splat %f0 : f32 -> !channels
  %found = tile.slice %peaks[%batch, %kv_head] : !peaks -> !peak_rows
  tile.launch_wait

  %is_q = arith.cmpi eq, %tensor, %c0 : index
  scf.if %is_q {
    %q_len = tile.dim %q, 2 : !wide
    %q_rest = arith.subi %q_len, %c32 : index
    %q_span = arith.maxsi %q_rest, %c0 : index
    %q_steps = arith.muli %run, %q_span : index
    %q_first = arith.divui %q_steps, %c7 : index
    %q_whole_end = arith.addi %q_first, %c32 : index
    %q_end = arith.minsi %q_whole_end, %q_len : index
    %q_peak = scf.for %head = %first_head to %end_head step %c1 iter_args(%most = %no_sample) -> (!sample) {
      %rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
      %peak = tile.peak_rows %rows[%q_first to %q_end] : !wide_rows -> !sample
      %more = arith.maxnumf %most, %peak : !sample
      scf.yield %more : !sample
    }
    tile.store %q_peak, %found[%place, %c0] : !sample, !peak_rows
  }
  %is_k = arith.cmpi eq, %tensor, %c1 : index
  scf.if %is_k {
    %k_len = tile.dim %k, 2 : !wide
    %k_rest = arith.subi %k_len, %c32 : index
    %k_span = arith.maxsi %k_rest, %c0 : index
    %k_steps = arith.muli %run, %k_span : index
    %k_first = arith.divui %k_steps, %c7 : index
    %k_whole_end = arith.addi %k_first, %c32 : index
    %k_end = arith.minsi %k_whole_end, %k_len : index
    %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %k_peak = tile.peak_rows %k_rows[%k_first to %k_end] : !wide_rows -> !sample
    tile.store %k_peak, %found[%place, %c0] : !sample, !peak_rows
  }
  %is_v = arith.cmpi eq, %tensor, %c2 : index
  scf.if %is_v {
    %v_len = tile.dim %v, 2 : !wide
    %v_rest = arith.subi %v_len, %c32 : index
    %v_span = arith.maxsi %v_rest, %c0 : index
    %v_steps = arith.muli %run, %v_span : index
    %v_first = arith.divui %v_steps, %c7 : index
    %v_whole_end = arith.addi %v_first, %c32 : index
    %v_end = arith.minsi %v_whole_end, %v_len : index
    %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
    %v_peak = tile.peak_rows %v_rows[%v_first to %v_end] : !wide_rows -> !sample
    tile.store %v_peak, %found[%place, %c0] : !sample, !peak_rows
  }
  tile.team_barrier

  %is_first = arith.cmpi eq, %place, %c0 : index
  scf.if %is_first {
    %q_most = scf.for %row = %c0 to %c8 step %c4 iter_args(%so_far_0 = %none) -> (!channels) {
      %view_0 = tile.slice %peaks[%batch, %kv_head, %row] : !peaks -> !row
      %peak_0 = tile.load_values %view_0[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_1 = arith.addi %row, %c1 : index
      %view_1 = tile.slice %peaks[%batch, %kv_head, %row_1] : !peaks -> !row
      %peak_1 = tile.load_values %view_1[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_2 = arith.addi %row, %c2 : index
      %view_2 = tile.slice %peaks[%batch, %kv_head, %row_2] : !peaks -> !row
      %peak_2 = tile.load_values %view_2[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_3 = arith.addi %row, %c3 : index
      %view_3 = tile.slice %peaks[%batch, %kv_head, %row_3] : !peaks -> !row
      %peak_3 = tile.load_values %view_3[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      scf.yield %so_far_4 : !channels
    }
    %k_most = scf.for %row = %c8 to %c16 step %c4 iter_args(%so_far_0 = %none) -> (!channels) {
      %view_0 = tile.slice %peaks[%batch, %kv_head, %row] : !peaks -> !row
      %peak_0 = tile.load_values %view_0[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_1 = arith.addi %row, %c1 : index
      %view_1 = tile.slice %peaks[%batch, %kv_head, %row_1] : !peaks -> !row
      %peak_1 = tile.load_values %view_1[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_2 = arith.addi %row, %c2 : index
      %view_2 = tile.slice %peaks[%batch, %kv_head, %row_2] : !peaks -> !row
      %peak_2 = tile.load_values %view_2[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_3 = arith.addi %row, %c3 : index
      %view_3 = tile.slice %peaks[%batch, %kv_head, %row_3] : !peaks -> !row
      %peak_3 = tile.load_values %view_3[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      scf.yield %so_far_4 : !channels
    }
    %q_total = tile.total max %q_most : !channels -> f32
    %k_total = tile.total max %k_most : !channels -> f32
    %q_peak = arith.maxnumf %q_total, %least : f32
    %k_peak = arith.maxnumf %k_total, %least : f32
    %unit = arith.mulf %softmax_scale, %units_per_score : f32
    %other_unit = arith.negf %unit : f32
    %unit_size = arith.maxnumf %unit, %other_unit : f32
    %reach = arith.mulf %unit_size, %q_peak : f32
    %ratio = arith.divf %k_peak, %reach : f32
    %has_unit = arith.cmpf ogt, %unit_size, %f0 : f32
    %safe_ratio = arith.select %has_unit, %ratio, %f1 : f32
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
    %batch_group = arith.muli %batch, %kv_heads : index
    %group = arith.addi %batch_group, %kv_head : index
    %flags = tile.slice %saturated[] : !flags -> !tile.view<1 x i32>
    tile.store_scalar %i0, %flags[%group] : i32, !tile.view<1 x i32>
  }
  %is_second = arith.cmpi eq, %place, %c8 : index
  scf.if %is_second {
    %v_most = scf.for %row = %c16 to %c24 step %c4 iter_args(%so_far_0 = %none) -> (!channels) {
      %view_0 = tile.slice %peaks[%batch, %kv_head, %row] : !peaks -> !row
      %peak_0 = tile.load_values %view_0[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_1 = arith.addi %row, %c1 : index
      %view_1 = tile.slice %peaks[%batch, %kv_head, %row_1] : !peaks -> !row
      %peak_1 = tile.load_values %view_1[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_2 = arith.addi %row, %c2 : index
      %view_2 = tile.slice %peaks[%batch, %kv_head, %row_2] : !peaks -> !row
      %peak_2 = tile.load_values %view_2[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_3 = arith.addi %row, %c3 : index
      %view_3 = tile.slice %peaks[%batch, %kv_head, %row_3] : !peaks -> !row
      %peak_3 = tile.load_values %view_3[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      scf.yield %so_far_4 : !channels
    }
    %leasts = tile.splat %least_of_v : f32 -> !channels
    %v_peak = arith.maxnumf %v_most, %leasts : !channels
    %reaches = tile.splat %reach_of_v : f32 -> !channels
    %ones = tile.splat %f1 : f32 -> !channels
    %scale = arith.divf %v_peak, %reaches : !channels
    %factor = arith.divf %ones, %scale : !channels
    %factor_row = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    tile.store %factor, %factor_row[%c0] : !channels, !row
    %scale_row = tile.slice %v_scales[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    tile.store %scale, %scale_row[%c0] : !channels, !row
  }
}

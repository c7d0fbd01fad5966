// SPDX-License-Identifier: Apache-2.0
//
// quantise_survey: what quantise_factors.mlir makes factors of.
//
//   q_peaks[b, h, i, c] = max of |q[b, h, t, c]| over t in part i, t < length
//   k_peaks, v_peaks: of k and v alike
//
// A part is survey_rows rows. NaN does not count, since one row's would spoil all
// others'. A program takes a part of q, and the parts of k and v of its batch are
// shared out among the batch's programs, as in pool.mlir.

!elem = !tile.element<"elem">
!part = tensor<?x?xf32, #tile.sizes<head_dim, survey_rows>>
!part_mask = tensor<?x?xi1, #tile.sizes<head_dim, survey_rows>>
!channels = tensor<?xf32, #tile.sizes<head_dim>>
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!peaks = !tile.global<4 x f32>
!peak_rows = !tile.view<2 x f32>

tile.kernel @quantise_survey(%q: !wide, %k: !wide, %v: !wide,
                             %q_peaks: !peaks, %k_peaks: !peaks, %v_peaks: !peaks)
    parameters [elem, head_dim, survey_rows]
    grid %q by survey_rows {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %survey_rows = tile.parameter "survey_rows" : index
  %batch, %head, %part = tile.program_id : index, index, index
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %q_parts = tile.dim %q_peaks, 2 : !peaks
  %kv_parts = tile.dim %k_peaks, 2 : !peaks
  %zeros = tile.splat %f0 : f32 -> !part

  // Beyond the end are zeros, which are no peak.
  %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
  %q_into = tile.slice %q_peaks[%batch, %head] : !peaks -> !peak_rows
  %q_first = arith.muli %part, %survey_rows : index
  %q_elements = tile.load %q_rows[%q_first, %c0] transposed : !wide_rows -> !part
  %q_sizes = math.absf %q_elements : !part
  %q_is_number = arith.cmpf ord, %q_sizes, %q_sizes : !part
  %q_numbers = arith.select %q_is_number, %q_sizes, %zeros : !part_mask, !part
  %q_peak = tile.reduce max %q_numbers : !part -> !channels
  tile.store %q_peak, %q_into[%part, %c0] : !channels, !peak_rows

  // Every so many-th part of k and v, over all of the batch's heads.
  %before = arith.muli %head, %q_parts : index
  %program = arith.addi %before, %part : index
  %programs = arith.muli %q_heads, %q_parts : index
  %all_kv_parts = arith.muli %kv_heads, %kv_parts : index
  scf.for %of_all = %program to %all_kv_parts step %programs {
    %kv_head = arith.divui %of_all, %kv_parts : index
    %head_start = arith.muli %kv_head, %kv_parts : index
    %j = arith.subi %of_all, %head_start : index
    %first = arith.muli %j, %survey_rows : index
    %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %k_into = tile.slice %k_peaks[%batch, %kv_head] : !peaks -> !peak_rows
    %k_elements = tile.load %k_rows[%first, %c0] transposed : !wide_rows -> !part
    %k_sizes = math.absf %k_elements : !part
    %k_is_number = arith.cmpf ord, %k_sizes, %k_sizes : !part
    %k_numbers = arith.select %k_is_number, %k_sizes, %zeros : !part_mask, !part
    %k_peak = tile.reduce max %k_numbers : !part -> !channels
    tile.store %k_peak, %k_into[%j, %c0] : !channels, !peak_rows
    %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
    %v_into = tile.slice %v_peaks[%batch, %kv_head] : !peaks -> !peak_rows
    %v_elements = tile.load %v_rows[%first, %c0] transposed : !wide_rows -> !part
    %v_sizes = math.absf %v_elements : !part
    %v_is_number = arith.cmpf ord, %v_sizes, %v_sizes : !part
    %v_numbers = arith.select %v_is_number, %v_sizes, %zeros : !part_mask, !part
    %v_peak = tile.reduce max %v_numbers : !part -> !channels
    tile.store %v_peak, %v_into[%j, %c0] : !channels, !peak_rows
  }
}

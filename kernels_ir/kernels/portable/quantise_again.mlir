// SPDX-License-Identifier: Apache-2.0
//
// quantise_again: rounds anew where factors of a sample were too large; the same
// function as kernels/sm90/quantise_again.mlir, which has the definition. Here each
// head of k is surveyed, whether it is flagged or not.
//
// One program a head of k, whose first row of peaks[b, h] gets the largest scaled
// element.
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
!narrow = !tile.global<4 x f8E4M3FN>
!narrow_rows = !tile.view<2 x f8E4M3FN>
!part = tensor<?x?xf32, #tile.sizes<head_dim, 64>>
!part_mask = tensor<?x?xi1, #tile.sizes<head_dim, 64>>
!rows = tensor<?x?xf32, #tile.sizes<64, head_dim>>

tile.kernel @quantise_again(%q: !wide, %k: !wide, %v: !wide, %saturated: !flags, %peaks: !peaks,
                            %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                            %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                            %into_q: !narrow, %into_k: !narrow, %image: !narrow, %softmax_scale: f32)
    parameters [elem, head_dim, head_rows]
    grid %k by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %rounds_to_largest = arith.constant 432.0 : f32
  %largest = arith.constant 448.0 : f32
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
  %no_rows = tile.splat %f0 : f32 -> !part
  %none = tile.splat %f0 : f32 -> !channels

  // Rows beyond the end are zeros, which are no peak.
  %q_most = scf.for %head = %first_head to %end_head step %c1 iter_args(%head_most = %none) -> (!channels) {
    %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
    %most = scf.for %first = %c0 to %q_len step %c64 iter_args(%so_far = %head_most) -> (!channels) {
      %q_elements = tile.load %q_rows[%first, %c0] transposed : !wide_rows -> !part
      %q_sizes = math.absf %q_elements : !part
      %q_is_number = arith.cmpf ord, %q_sizes, %q_sizes : !part
      %q_numbers = arith.select %q_is_number, %q_sizes, %no_rows : !part_mask, !part
      %q_peak = tile.reduce max %q_numbers : !part -> !channels
      %q_more = arith.maximumf %so_far, %q_peak : !channels
      scf.yield %q_more : !channels
    }
    scf.yield %most : !channels
  }
  %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
  %k_most = scf.for %first = %c0 to %kv_len step %c64 iter_args(%so_far = %none) -> (!channels) {
    %k_elements = tile.load %k_rows[%first, %c0] transposed : !wide_rows -> !part
    %k_sizes = math.absf %k_elements : !part
    %k_is_number = arith.cmpf ord, %k_sizes, %k_sizes : !part
    %k_numbers = arith.select %k_is_number, %k_sizes, %no_rows : !part_mask, !part
    %k_peak = tile.reduce max %k_numbers : !part -> !channels
    %k_more = arith.maximumf %so_far, %k_peak : !channels
    scf.yield %k_more : !channels
  }
  %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
  %v_most = scf.for %first = %c0 to %kv_len step %c64 iter_args(%so_far = %none) -> (!channels) {
    %v_elements = tile.load %v_rows[%first, %c0] transposed : !wide_rows -> !part
    %v_sizes = math.absf %v_elements : !part
    %v_is_number = arith.cmpf ord, %v_sizes, %v_sizes : !part
    %v_numbers = arith.select %v_is_number, %v_sizes, %no_rows : !part_mask, !part
    %v_peak = tile.reduce max %v_numbers : !part -> !channels
    %v_more = arith.maximumf %so_far, %v_peak : !channels
    scf.yield %v_more : !channels
  }
  %q_row = tile.expand %q_most axis 0 : !channels -> !row
  %q_total = tile.reduce max %q_row : !row -> !number
  %k_row = tile.expand %k_most axis 0 : !channels -> !row
  %k_total = tile.reduce max %k_row : !row -> !number
  %old_q_factor = tile.load_scalar %q_factor_row[%first_head] : !tile.view<1 x f32> -> f32
  %old_k_factor = tile.load_scalar %k_factor_row[%kv_head] : !tile.view<1 x f32> -> f32
  %v_factor_row = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %old_v_factor = tile.load_values %v_factor_row[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> !channels
  %old_q_factors = tile.splat %old_q_factor : f32 -> !number
  %old_k_factors = tile.splat %old_k_factor : f32 -> !number
  %old_q_sizes = math.absf %old_q_factors : !number
  %q_reach = arith.mulf %q_total, %old_q_sizes : !number
  %k_reach = arith.mulf %k_total, %old_k_factors : !number
  %v_reaches = arith.mulf %v_most, %old_v_factor : !channels
  %v_reach_row = tile.expand %v_reaches axis 0 : !channels -> !row
  %v_reach = tile.reduce max %v_reach_row : !row -> !number
  %qk_reach = arith.maximumf %q_reach, %k_reach : !number
  %all_reach = arith.maximumf %qk_reach, %v_reach : !number
  %found = tile.slice %peaks[%batch, %kv_head, %c0] : !peaks -> !tile.view<1 x f32>
  tile.store %all_reach, %found[%c0] : !number, !tile.view<1 x f32>
  %most_of_all = tile.load_scalar %found[%c0] : !tile.view<1 x f32> -> f32
  %saturates = arith.cmpf oge, %most_of_all, %rounds_to_largest : f32

  scf.if %saturates {
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
    %reaches = tile.splat %largest : f32 -> !channels
    %channel_ones = tile.splat %f1 : f32 -> !channels
    %scale = arith.divf %v_peak, %reaches : !channels
    %v_factor = arith.divf %channel_ones, %scale : !channels
    scf.for %head = %first_head to %end_head step %c1 {
      tile.store %q_factor, %q_factor_row[%head] : !number, !tile.view<1 x f32>
    }
    tile.store %k_factor, %k_factor_row[%kv_head] : !number, !tile.view<1 x f32>
    tile.store %v_factor, %v_factor_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
    tile.store %scale, %v_scale_rows[%kv_head, %c0] : !channels, !tile.view<2 x f32>
    %new_q_factor = tile.load_scalar %q_factor_row[%first_head] : !tile.view<1 x f32> -> f32
    %new_k_factor = tile.load_scalar %k_factor_row[%kv_head] : !tile.view<1 x f32> -> f32
    %q_scale = tile.splat %new_q_factor : f32 -> !rows
    %k_scale = tile.splat %new_k_factor : f32 -> !rows
    %v_scale = tile.expand %v_factor axis 0 : !channels -> !rows
    scf.for %head = %first_head to %end_head step %c1 {
      %q_from = tile.slice %q[%batch, %head] : !wide -> !wide_rows
      %q_into = tile.slice %into_q[%batch, %head] : !narrow -> !narrow_rows
      scf.for %first = %c0 to %q_len step %c64 {
        %elements = tile.load %q_from[%first, %c0] : !wide_rows -> !rows
        %scaled = arith.mulf %elements, %q_scale : !rows
        tile.store %scaled, %q_into[%first, %c0] : !rows, !narrow_rows
      }
    }
    %k_into = tile.slice %into_k[%batch, %kv_head] : !narrow -> !narrow_rows
    %v_into = tile.slice %image[%batch, %kv_head] : !narrow -> !narrow_rows
    scf.for %first = %c0 to %kv_len step %c64 {
      %k_elements = tile.load %k_rows[%first, %c0] : !wide_rows -> !rows
      %k_scaled = arith.mulf %k_elements, %k_scale : !rows
      tile.store %k_scaled, %k_into[%first, %c0] : !rows, !narrow_rows
      %v_elements = tile.load %v_rows[%first, %c0] : !wide_rows -> !rows
      %v_scaled = arith.mulf %v_elements, %v_scale : !rows
      tile.store %v_scaled, %v_into[%first, %c0] : !rows, !narrow_rows
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// quantise_again for Hopper: rounds anew where factors of a sample were too large.
//
// A head of k with its heads of q and its v, for which saturated[b kv_heads + h] is
// not 0, is surveyed as a whole. Where q_factors peak(q), k_factors peak(k) or any
// v_factors[c] peak(v, c) is 432 or more in size, and becomes 448, with the peaks of
// all rows
//
//   u = 8 log2(e) softmax_scale,  r = sqrt(peak(k) / (|u| peak(q)))
//   q_factors[b, h] = u r,  k_factors[b, h] = 1 / r
//   v_factors[b, h, c] = 448 / peak(v, c),  v_scales = 1 / v_factors
//
// and q, k and v are rounded as quantise.mlir does; peaks are at least what
// quantise_factors.mlir takes them for. (A NaN is noted as well, and alone changes
// nothing.) All other heads cost a look at the flag.
//
// A program is a head of k, which a team of eight CTAs shares: each warp surveys
// 128 rows in every 8192 of q, k and v, writes its peaks to peaks[b, h], reads what
// all have found, and then rounds the same rows.
//
// Parameters that follow from others: factor_columns and head_rows as of
// quantise_factors.mlir.

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
!narrow = !tile.global<4 x f8E4M3FN>
!narrow_rows = !tile.view<2 x f8E4M3FN>

tile.kernel @quantise_again(%q: !wide, %k: !wide, %v: !wide, %saturated: !flags, %peaks: !peaks,
                            %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                            %v_factors: !tile.global<3 x f32>, %v_scales: !tile.global<3 x f32>,
                            %into_q: !narrow, %into_k: !narrow, %image: !narrow, %softmax_scale: f32)
    parameters [elem, head_dim, factor_columns, head_rows]
    grid %k by head_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %i0 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %rounds_to_largest = arith.constant 432.0 : f32
  %largest = arith.constant 448.0 : f32
  %units_per_score = arith.constant 11.5415603 : f32
  %least = arith.constant 8.67361738e-19 : f32 // 2^-60
  %least_of_v = arith.constant 7.70371978e-34 : f32 // 2^-110
  %member, %warp = tile.team members 8 warps 8 ctas 2 : index, index
  tile.launch_next
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %batch_group = arith.muli %batch, %kv_heads : index
  %group = arith.addi %batch_group, %kv_head : index
  %flags = tile.slice %saturated[] : !flags -> !tile.view<1 x i32>
  tile.launch_wait
  %flag = tile.load_scalar %flags[%group] : !tile.view<1 x i32> -> i32
  %is_flagged = arith.cmpi ne, %flag, %i0 : i32
  scf.if %is_flagged {
    %q_len = tile.dim %q, 2 : !wide
    %kv_len = tile.dim %k, 2 : !wide
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %first_head = arith.muli %kv_head, %heads_per_kv : index
    %end_head = arith.addi %first_head, %heads_per_kv : index
    %member_warps = arith.muli %member, %c8 : index
    %worker = arith.addi %member_warps, %warp : index
    %own_first = arith.muli %worker, %c128 : index
    %step = arith.muli %c64, %c128 : index
    %no_rows = tile.splat %f0 : f32 -> !sample
    %none = tile.splat %f0 : f32 -> !channels
    %found = tile.slice %peaks[%batch, %kv_head] : !peaks -> !peak_rows
    %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows

    // ---- peaks of all rows -------------------------------------------------------
    %q_found = scf.for %head = %first_head to %end_head step %c1 iter_args(%head_most = %no_rows) -> (!sample) {
      %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
      %most = scf.for %first = %own_first to %q_len step %step iter_args(%so_far = %head_most) -> (!sample) {
        %whole_end = arith.addi %first, %c128 : index
        %end = arith.minsi %whole_end, %q_len : index
        %peak = tile.peak_rows %q_rows[%first to %end] : !wide_rows -> !sample
        %more = arith.maxnumf %so_far, %peak : !sample
        scf.yield %more : !sample
      }
      scf.yield %most : !sample
    }
    %k_found = scf.for %first = %own_first to %kv_len step %step iter_args(%so_far = %no_rows) -> (!sample) {
      %whole_end = arith.addi %first, %c128 : index
      %end = arith.minsi %whole_end, %kv_len : index
      %peak = tile.peak_rows %k_rows[%first to %end] : !wide_rows -> !sample
      %more = arith.maxnumf %so_far, %peak : !sample
      scf.yield %more : !sample
    }
    %v_found = scf.for %first = %own_first to %kv_len step %step iter_args(%so_far = %no_rows) -> (!sample) {
      %whole_end = arith.addi %first, %c128 : index
      %end = arith.minsi %whole_end, %kv_len : index
      %peak = tile.peak_rows %v_rows[%first to %end] : !wide_rows -> !sample
      %more = arith.maxnumf %so_far, %peak : !sample
      scf.yield %more : !sample
    }
    %k_place = arith.addi %worker, %c64 : index
    %v_place = arith.addi %worker, %c128 : index
    tile.store %q_found, %found[%worker, %c0] : !sample, !peak_rows
    tile.store %k_found, %found[%k_place, %c0] : !sample, !peak_rows
    tile.store %v_found, %found[%v_place, %c0] : !sample, !peak_rows
    %q_factor_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !row
    %k_factor_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !row
    %v_factor_row = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    %v_scale_row = tile.slice %v_scales[%batch, %kv_head] : !tile.global<3 x f32> -> !row
    %old_q_factor = tile.load_scalar %q_factor_row[%first_head] : !row -> f32
    %old_k_factor = tile.load_scalar %k_factor_row[%kv_head] : !row -> f32
    %old_v_factor = tile.load_values %v_factor_row[%c0] otherwise %f1 : !row, f32 -> !channels
    tile.team_barrier

    // ---- what all have found: the same in every warp ---------------------------------
    %q_most = scf.for %row = %c0 to %c64 step %c8 iter_args(%so_far_0 = %none) -> (!channels) {
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
      %row_4 = arith.addi %row, %c4 : index
      %view_4 = tile.slice %peaks[%batch, %kv_head, %row_4] : !peaks -> !row
      %peak_4 = tile.load_values %view_4[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_5 = arith.addi %row, %c5 : index
      %view_5 = tile.slice %peaks[%batch, %kv_head, %row_5] : !peaks -> !row
      %peak_5 = tile.load_values %view_5[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_6 = arith.addi %row, %c6 : index
      %view_6 = tile.slice %peaks[%batch, %kv_head, %row_6] : !peaks -> !row
      %peak_6 = tile.load_values %view_6[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_7 = arith.addi %row, %c7 : index
      %view_7 = tile.slice %peaks[%batch, %kv_head, %row_7] : !peaks -> !row
      %peak_7 = tile.load_values %view_7[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      %so_far_5 = arith.maxnumf %so_far_4, %peak_4 : !channels
      %so_far_6 = arith.maxnumf %so_far_5, %peak_5 : !channels
      %so_far_7 = arith.maxnumf %so_far_6, %peak_6 : !channels
      %so_far_8 = arith.maxnumf %so_far_7, %peak_7 : !channels
      scf.yield %so_far_8 : !channels
    }
    %k_most = scf.for %row = %c64 to %c128 step %c8 iter_args(%so_far_0 = %none) -> (!channels) {
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
      %row_4 = arith.addi %row, %c4 : index
      %view_4 = tile.slice %peaks[%batch, %kv_head, %row_4] : !peaks -> !row
      %peak_4 = tile.load_values %view_4[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_5 = arith.addi %row, %c5 : index
      %view_5 = tile.slice %peaks[%batch, %kv_head, %row_5] : !peaks -> !row
      %peak_5 = tile.load_values %view_5[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_6 = arith.addi %row, %c6 : index
      %view_6 = tile.slice %peaks[%batch, %kv_head, %row_6] : !peaks -> !row
      %peak_6 = tile.load_values %view_6[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_7 = arith.addi %row, %c7 : index
      %view_7 = tile.slice %peaks[%batch, %kv_head, %row_7] : !peaks -> !row
      %peak_7 = tile.load_values %view_7[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      %so_far_5 = arith.maxnumf %so_far_4, %peak_4 : !channels
      %so_far_6 = arith.maxnumf %so_far_5, %peak_5 : !channels
      %so_far_7 = arith.maxnumf %so_far_6, %peak_6 : !channels
      %so_far_8 = arith.maxnumf %so_far_7, %peak_7 : !channels
      scf.yield %so_far_8 : !channels
    }
    %v_most = scf.for %row = %c128 to %c192 step %c8 iter_args(%so_far_0 = %none) -> (!channels) {
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
      %row_4 = arith.addi %row, %c4 : index
      %view_4 = tile.slice %peaks[%batch, %kv_head, %row_4] : !peaks -> !row
      %peak_4 = tile.load_values %view_4[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_5 = arith.addi %row, %c5 : index
      %view_5 = tile.slice %peaks[%batch, %kv_head, %row_5] : !peaks -> !row
      %peak_5 = tile.load_values %view_5[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_6 = arith.addi %row, %c6 : index
      %view_6 = tile.slice %peaks[%batch, %kv_head, %row_6] : !peaks -> !row
      %peak_6 = tile.load_values %view_6[%c0] otherwise %f0 : !row, f32 -> !channels
      %row_7 = arith.addi %row, %c7 : index
      %view_7 = tile.slice %peaks[%batch, %kv_head, %row_7] : !peaks -> !row
      %peak_7 = tile.load_values %view_7[%c0] otherwise %f0 : !row, f32 -> !channels
      %so_far_1 = arith.maxnumf %so_far_0, %peak_0 : !channels
      %so_far_2 = arith.maxnumf %so_far_1, %peak_1 : !channels
      %so_far_3 = arith.maxnumf %so_far_2, %peak_2 : !channels
      %so_far_4 = arith.maxnumf %so_far_3, %peak_3 : !channels
      %so_far_5 = arith.maxnumf %so_far_4, %peak_4 : !channels
      %so_far_6 = arith.maxnumf %so_far_5, %peak_5 : !channels
      %so_far_7 = arith.maxnumf %so_far_6, %peak_6 : !channels
      %so_far_8 = arith.maxnumf %so_far_7, %peak_7 : !channels
      scf.yield %so_far_8 : !channels
    }
    %q_total = tile.total max %q_most : !channels -> f32
    %k_total = tile.total max %k_most : !channels -> f32
    %other_q_factor = arith.negf %old_q_factor : f32
    %old_q_size = arith.maxnumf %old_q_factor, %other_q_factor : f32
    %q_reach = arith.mulf %q_total, %old_q_size : f32
    %k_reach = arith.mulf %k_total, %old_k_factor : f32
    %v_reaches = arith.mulf %v_most, %old_v_factor : !channels
    %v_reach = tile.total max %v_reaches : !channels -> f32
    %qk_reach = arith.maxnumf %q_reach, %k_reach : f32
    %all_reach = arith.maxnumf %qk_reach, %v_reach : f32
    %saturates = arith.cmpf oge, %all_reach, %rounds_to_largest : f32
    // The old factors have been read before new ones are written.
    tile.team_barrier

    scf.if %saturates {
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
      %leasts = tile.splat %least_of_v : f32 -> !channels
      %v_peak = arith.maxnumf %v_most, %leasts : !channels
      %largests = tile.splat %largest : f32 -> !channels
      %ones = tile.splat %f1 : f32 -> !channels
      %scale = arith.divf %v_peak, %largests : !channels
      %v_factor = arith.divf %ones, %scale : !channels
      // Each warp has all factors, and the first writes them down; of v they are read
      // again, since lanes hold them in another way where head_dim is no power of two.
      %is_first = arith.cmpi eq, %worker, %c0 : index
      scf.if %is_first {
        scf.for %head = %first_head to %end_head step %c1 {
          tile.store_scalar %q_factor, %q_factor_row[%head] : f32, !row
        }
        tile.store_scalar %k_factor, %k_factor_row[%kv_head] : f32, !row
        tile.store %v_factor, %v_factor_row[%c0] : !channels, !row
        tile.store %scale, %v_scale_row[%c0] : !channels, !row
      }
      tile.team_barrier
      %v_factors_again = tile.load_values %v_factor_row[%c0] otherwise %f1 : !row, f32 -> !sample

      // ---- rounding --------------------------------------------------------------
      scf.for %head = %first_head to %end_head step %c1 {
        %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
        %q_into = tile.slice %into_q[%batch, %head] : !narrow -> !narrow_rows
        scf.for %first = %own_first to %q_len step %step {
          %whole_end = arith.addi %first, %c128 : index
          %end = arith.minsi %whole_end, %q_len : index
          tile.scale_rows %q_rows[%first to %end] by %q_factor into %q_into columns head_dim
              : !wide_rows, !narrow_rows
        }
      }
      %k_into = tile.slice %into_k[%batch, %kv_head] : !narrow -> !narrow_rows
      %v_into = tile.slice %image[%batch, %kv_head] : !narrow -> !narrow_rows
      scf.for %first = %own_first to %kv_len step %step {
        %whole_end = arith.addi %first, %c128 : index
        %end = arith.minsi %whole_end, %kv_len : index
        tile.scale_rows %k_rows[%first to %end] by %k_factor into %k_into columns head_dim
            : !wide_rows, !narrow_rows
        scf.for %key = %first to %end step %c16 {
          tile.scale_cores %v_rows[%key to %end] by %v_factors_again into %v_into
              : !wide_rows, !sample, !narrow_rows
        }
      }
    }
  }
}

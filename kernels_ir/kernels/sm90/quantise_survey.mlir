// SPDX-License-Identifier: Apache-2.0
//
// quantise_survey for Hopper: what quantise_factors.mlir makes factors of, and on
// request the means of q's and k's blocks, in one reading of q, k and v.
//
//   q_peaks[b, h, i, c] = max of |q[b, h, t, c]| over t in part i, t < length
//   k_peaks, v_peaks: of k and v alike
//   pooled_q, pooled_k, progress: as pool.mlir (split_means too); all three or none
//
// A part is survey_rows rows, a multiple of both mask blocks. NaN does not count
// among peaks. A stream: a program takes a part of q and its share of the parts of k
// and v, a warp each, as in quantise.mlir.

!elem = !tile.element<"elem">
!channels = tensor<?xf32, #tile.sizes<head_dim>>
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!rows = !tile.global<4 x f32>
!row_view = !tile.view<2 x f32>

tile.kernel @quantise_survey(%q: !wide, %k: !wide, %v: !wide,
                             %q_peaks: !rows, %k_peaks: !rows, %v_peaks: !rows,
                             %pooled_q: !rows, %pooled_k: !rows, %progress: !tile.global<1 x i32>)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, survey_rows, survey_ctas, split_means]
    grid %q by survey_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %survey_rows = tile.parameter "survey_rows" : index
  %is_split = tile.parameter "split_means" : i1
  %member, %warp = tile.team members 1 warps 3 ctas survey_ctas : index, index
  // Whatever follows reads what this launch writes, and waits for it.
  tile.launch_next
  %batch, %q_head, %part = tile.program_id : index, index, index
  %pools = tile.is_present %pooled_q : !rows
  %q_len = tile.dim %q, 2 : !wide
  %kv_len = tile.dim %k, 2 : !wide
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %kv_head = arith.divui %q_head, %heads_per_kv : index
  %batch_group = arith.muli %batch, %kv_heads : index
  %group = arith.addi %batch_group, %kv_head : index
  // Parts of k and v go round the programs of the heads that share them.
  %q_parts = arith.ceildivui %q_len, %survey_rows : index
  %kv_parts = arith.ceildivui %kv_len, %survey_rows : index
  %group_first = arith.muli %kv_head, %heads_per_kv : index
  %in_group = arith.subi %q_head, %group_first : index
  %group_start = arith.muli %in_group, %q_parts : index
  %first_kv_part = arith.addi %group_start, %part : index
  %kv_step = arith.muli %heads_per_kv, %q_parts : index
  %none = tile.splat %f0 : f32 -> !channels
  tile.launch_wait

  %is_q = arith.cmpi eq, %warp, %c0 : index
  scf.if %is_q {
    %rows = tile.slice %q[%batch, %q_head] : !wide -> !wide_rows
    %q_means = tile.slice %pooled_q[%batch, %q_head] : !rows -> !row_view
    %peak_rows = tile.slice %q_peaks[%batch, %q_head] : !rows -> !row_view
    %part_first = arith.muli %part, %survey_rows : index
    %part_whole = arith.addi %part_first, %survey_rows : index
    %part_end = arith.minsi %part_whole, %q_len : index
    %peak, %done = scf.for %first = %part_first to %part_end step %mask_block_q iter_args(%most = %none, %so_far = %c0) -> (!channels, index) {
      %whole_end = arith.addi %first, %mask_block_q : index
      %end = arith.minsi %whole_end, %q_len : index
      %block_peak, %sum = tile.peak_rows %rows[%first to %end] : !wide_rows -> !channels, !channels
      scf.if %pools {
        %block = arith.divui %first, %mask_block_q : index
        %count = arith.subi %end, %first : index
        %count_i32 = arith.index_cast %count : index to i32
        %count_f32 = arith.sitofp %count_i32 : i32 to f32
        %divisor = tile.splat %count_f32 : f32 -> !channels
        %mean = arith.divf %sum, %divisor : !channels
        scf.if %is_split {
          tile.store_split %mean, %q_means[%block] : !channels, !row_view
        } else {
          tile.store %mean, %q_means[%block, %c0] : !channels, !row_view
        }
      }
      %more = arith.maxnumf %most, %block_peak : !channels
      %so_many = arith.addi %so_far, %c1 : index
      scf.yield %more, %so_many : !channels, index
    }
    tile.store %peak, %peak_rows[%part, %c0] : !channels, !row_view
    scf.if %pools {
      tile.signal %progress[%group] by %done : !tile.global<1 x i32>
    }
  }

  %is_k = arith.cmpi eq, %warp, %c1 : index
  scf.if %is_k {
    %rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %k_means = tile.slice %pooled_k[%batch, %kv_head] : !rows -> !row_view
    %peak_rows = tile.slice %k_peaks[%batch, %kv_head] : !rows -> !row_view
    %all_done = scf.for %kv_part = %first_kv_part to %kv_parts step %kv_step iter_args(%parts_done = %c0) -> (index) {
      %part_first = arith.muli %kv_part, %survey_rows : index
      %part_whole = arith.addi %part_first, %survey_rows : index
      %part_end = arith.minsi %part_whole, %kv_len : index
      %peak, %done = scf.for %first = %part_first to %part_end step %mask_block_kv iter_args(%most = %none, %so_far = %parts_done) -> (!channels, index) {
        %whole_end = arith.addi %first, %mask_block_kv : index
        %end = arith.minsi %whole_end, %kv_len : index
        %block_peak, %sum = tile.peak_rows %rows[%first to %end] : !wide_rows -> !channels, !channels
        scf.if %pools {
          %block = arith.divui %first, %mask_block_kv : index
          %count = arith.subi %end, %first : index
          %count_i32 = arith.index_cast %count : index to i32
          %count_f32 = arith.sitofp %count_i32 : i32 to f32
          %divisor = tile.splat %count_f32 : f32 -> !channels
          %mean = arith.divf %sum, %divisor : !channels
          scf.if %is_split {
            tile.store_split %mean, %k_means[%block] : !channels, !row_view
          } else {
            tile.store %mean, %k_means[%block, %c0] : !channels, !row_view
          }
        }
        %more = arith.maxnumf %most, %block_peak : !channels
        %so_many = arith.addi %so_far, %c1 : index
        scf.yield %more, %so_many : !channels, index
      }
      tile.store %peak, %peak_rows[%kv_part, %c0] : !channels, !row_view
      scf.yield %done : index
    }
    scf.if %pools {
      tile.signal %progress[%group] by %all_done : !tile.global<1 x i32>
    }
  }

  %is_v = arith.cmpi eq, %warp, %c2 : index
  scf.if %is_v {
    %rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
    %peak_rows = tile.slice %v_peaks[%batch, %kv_head] : !rows -> !row_view
    scf.for %kv_part = %first_kv_part to %kv_parts step %kv_step {
      %part_first = arith.muli %kv_part, %survey_rows : index
      %part_whole = arith.addi %part_first, %survey_rows : index
      %part_end = arith.minsi %part_whole, %kv_len : index
      %peak = tile.peak_rows %rows[%part_first to %part_end] : !wide_rows -> !channels
      tile.store %peak, %peak_rows[%kv_part, %c0] : !channels, !row_view
    }
  }
}

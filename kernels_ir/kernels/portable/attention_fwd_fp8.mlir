// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd_fp8: block-sparse attention of 8-bit q, k and v, with an online
// softmax.
//
//   o[i]   = v_scale sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = round(2^(s[i, j] / 8))
//   lse[i] = ln sum_j p[i, j],                             s = q kᵀ
//
// over the keys j of the blocks listed for row i's block (all keys without
// lists), and with causal only j <= i + kv_len - q_len. A row without keys gives
// o = 0, lse = -inf; to others' lse softmax_scale lse_shift[i] is added where that
// is given. q holds 8 log2(e) softmax_scale q 2^n and k k 2^-n for some n
// of the head, v is divided by v_scale, one a channel; all are f8E4M3FN. One
// program a tile of query rows; several listed blocks lie side by side in one key
// tile. The same function as kernels/sm90/attention_fwd_fp8.mlir, which has the
// sources.
//
// Arithmetic is float32; what the eight-bit tensor cores of a GPU round is rounded:
// weights to f8E4M3FN, and with `half` scores to float16. Weights come without any
// exp2: n = s + 120 - 8 reference, rounded and clamped at 0, are the bits of
// 2^((s - 8 reference) / 8 + 8) as f8E4M3FN, but for a mantissa that grows linearly
// between powers of two (with `fast`: 4 % too large in the mean, which o does not
// see and lse is corrected for). Without `fast`, s is first lowered by 3 / 16 of its
// distance from the nearest whole octave, which brings the weight within 1.3 %.
// Scores that are not rounded themselves are so less the reference so far, near
// which the 11 bits of a float16 are plenty.
//
// Weights are taken relative to a reference, the row's maximum so far rounded up
// to a whole octave, at most 2^8; rows whose scores are all below -4096 octaves
// give 0.

!elem = !tile.element<"elem">
!q_tile = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!kv_tile = tensor<?x?xf32, #tile.sizes<tile_kv, head_dim>>
!scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<tile_q, tile_kv>>
!mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!half_scores = tensor<?x?xf16, #tile.sizes<tile_q, tile_kv>>
!half_rows = tensor<?xf16, #tile.sizes<tile_q>>
!channels = tensor<?xf32, #tile.sizes<head_dim>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>
!row_mask = tensor<?xi1, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>

tile.kernel @attention_fwd_fp8(%q: !tile.global<4 x f8E4M3FN>, %k: !tile.global<4 x f8E4M3FN>,
                           %v: !tile.global<4 x f8E4M3FN>, %v_scale: !tile.global<3 x f32>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %o: !tile.global<4 x !elem>, %lse: !tile.global<3 x f32>,
                           %lse_shift: !tile.global<3 x f32>, %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, half, fast, tile_q, tile_kv]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %ln_2 = arith.constant 0.693147181 : f32
  %tile_q = tile.parameter "tile_q" : index
  %tile_kv = tile.parameter "tile_kv" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1
  %half = tile.parameter "half" : i1
  %fast = tile.parameter "fast" : i1

  // Where this program works.
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %tile_q : index
  %q_heads = tile.dim %q, 1 : !tile.global<4 x f8E4M3FN>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x f8E4M3FN>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %kv_head = arith.divui %head, %heads_per_kv : index
  %q_len = tile.dim %q, 2 : !tile.global<4 x f8E4M3FN>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x f8E4M3FN>
  %q_view = tile.slice %q[%batch, %head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %k_view = tile.slice %k[%batch, %kv_head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %v_view = tile.slice %v[%batch, %kv_head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>

  // The keys that it visits, in steps of one key tile.
  %mask_row = arith.divui %first_row, %mask_block_q : index
  %list = tile.slice %indices[%batch, %head, %mask_row] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %blocks_per_tile = arith.divui %tile_kv, %mask_block_kv : index
  %count, %steps = scf.if %has_lists -> (index, index) {
    %row_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
    %count_i32 = tile.load_scalar %row_counts[%mask_row] : !tile.view<1 x i32> -> i32
    %wanted = arith.index_cast %count_i32 : i32 to index
    // No count reaches beyond the list's memory, whatever it says.
    %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
    %listed = arith.minsi %wanted, %capacity : index
    %list_steps = arith.ceildivsi %listed, %blocks_per_tile : index
    scf.yield %listed, %list_steps : index, index
  } else {
    // Without lists causality bounds the keys: none beyond the last row's limit.
    %last_row_end = arith.addi %first_row, %tile_q : index
    %row_end = arith.minsi %last_row_end, %q_len : index
    %shift_all = arith.subi %kv_len, %q_len : index
    %visible = arith.addi %row_end, %shift_all : index
    %visible_end = arith.minsi %visible, %kv_len : index
    %key_end = arith.select %causal, %visible_end, %kv_len : index
    %reached = arith.maxsi %key_end, %c0 : index
    %dense_steps = arith.ceildivsi %reached, %tile_kv : index
    scf.yield %c0, %dense_steps : index, index
  }

  // Row i sees keys up to i + kv_len - q_len.
  %shift = arith.subi %kv_len, %q_len : index
  %first_limit = arith.addi %first_row, %shift : index
  %first_limit_i32 = arith.index_cast %first_limit : index to i32
  %first_limits = tile.splat %first_limit_i32 : i32 -> !row_numbers
  %row_numbers = tile.iota : !row_numbers
  %row_limits = arith.addi %first_limits, %row_numbers : !row_numbers
  %limits = tile.expand %row_limits axis 1 : !row_numbers -> !positions

  %q_tile = tile.load %q_view[%first_row, %c0] : !tile.view<2 x f8E4M3FN> -> !q_tile

  %zero_scores = tile.splat %f0 : f32 -> !scores
  %masked = tile.splat %minus_inf : f32 -> !scores
  %no_position = tile.splat %c0_i32 : i32 -> !positions
  %no_sum = tile.splat %f0 : f32 -> !rows
  %no_output = tile.splat %f0 : f32 -> !q_tile
  %zero_rows = tile.splat %f0 : f32 -> !rows
  %least = arith.constant -4096.0 : f32
  %no_reference = tile.splat %least : f32 -> !rows

  // The bits of a weight are s + 120 - 8 reference.
  %eighth = arith.constant 0.125 : f32
  %row_eighths = tile.splat %eighth : f32 -> !rows
  %no_rows = tile.splat %minus_inf : f32 -> !rows
  // Adding 1.5 2^26 rounds to whole octaves.
  %octave_magic = arith.constant 100663296.0 : f32
  %octave_magics = tile.splat %octave_magic : f32 -> !scores
  %bend = arith.constant 0.1875 : f32
  %bends = tile.splat %bend : f32 -> !scores
  // The bits' offset has the precision of a float16 that counts in its smallest
  // steps, 2^-24: all whole numbers up to 2048.
  %unit = arith.constant 5.9604644775390625e-08 : f32
  %units = tile.splat %unit : f32 -> !rows
  %per_unit = arith.constant 16777216.0 : f32
  %per_units = tile.splat %per_unit : f32 -> !rows
  %bits_start = arith.constant 120.0 : f32
  %bits_starts = tile.splat %bits_start : f32 -> !rows
  %minus_octave_bits = arith.constant -8.0 : f32
  %octave_bits = tile.splat %minus_octave_bits : f32 -> !rows
  // Adding 2^23 rounds to a whole number, which is then in the last bits.
  %magic = arith.constant 8388608.0 : f32
  %magics = tile.splat %magic : f32 -> !scores
  // From the bits of an f8E4M3FN to those of an f32; its subnormals, below 8, are
  // multiples of 2^-9.
  %shift_bits = arith.constant 20 : i32
  %shifts = tile.splat %shift_bits : i32 -> !positions
  %exponent_difference = arith.constant 1006632960 : i32
  %exponent_differences = tile.splat %exponent_difference : i32 -> !positions
  %first_normal = arith.constant 8.0 : f32
  %first_normals = tile.splat %first_normal : f32 -> !scores
  %subnormal_step = arith.constant 0.001953125 : f32
  %subnormal_steps = tile.splat %subnormal_step : f32 -> !scores
  // log2 of the weights' sum: 8 too much, and with a linear mantissa the mean of
  // (1 + f) / 2^f over f from 0 to 1, 1.0407, too much (lowered, 1.0068).
  %linear_excess = arith.constant -8.0575 : f32
  %bent_excess = arith.constant -8.0098 : f32
  %excess = arith.select %fast, %linear_excess, %bent_excess : f32
  %excesses = tile.splat %excess : f32 -> !rows

  %reference, %row_sum, %output = scf.for %step = %c0 to %steps step %c1
      iter_args(%old_reference = %no_reference, %old_sum = %no_sum, %old_output = %no_output)
      -> (!rows, !rows, !q_tile) {
    // Load one key tile and the positions of its keys (-1: no key).
    %k_tile, %v_tile, %keys = scf.if %has_lists -> (!kv_tile, !kv_tile, !key_numbers) {
      %first_block = arith.muli %step, %blocks_per_tile : index
      %k_listed = tile.gather %k_view by %list[%first_block] count %count block %mask_block_kv
          : !tile.view<2 x f8E4M3FN>, !tile.view<1 x i32> -> !kv_tile
      %v_listed = tile.gather %v_view by %list[%first_block] count %count block %mask_block_kv
          : !tile.view<2 x f8E4M3FN>, !tile.view<1 x i32> -> !kv_tile
      %listed_keys = tile.gather_positions %list[%first_block] count %count block %mask_block_kv limit %kv_len
          : !tile.view<1 x i32> -> !key_numbers
      scf.yield %k_listed, %v_listed, %listed_keys : !kv_tile, !kv_tile, !key_numbers
    } else {
      %first_key = arith.muli %step, %tile_kv : index
      %k_next = tile.load %k_view[%first_key, %c0] : !tile.view<2 x f8E4M3FN> -> !kv_tile
      %v_next = tile.load %v_view[%first_key, %c0] : !tile.view<2 x f8E4M3FN> -> !kv_tile
      %first_key_i32 = arith.index_cast %first_key : index to i32
      %kv_len_i32 = arith.index_cast %kv_len : index to i32
      %minus_one = arith.constant -1 : i32
      %offsets = tile.iota : !key_numbers
      %start = tile.splat %first_key_i32 : i32 -> !key_numbers
      %end = tile.splat %kv_len_i32 : i32 -> !key_numbers
      %none = tile.splat %minus_one : i32 -> !key_numbers
      %numbers = arith.addi %start, %offsets : !key_numbers
      %inside = arith.cmpi slt, %numbers, %end : !key_numbers
      %next_keys = arith.select %inside, %numbers, %none : tensor<?xi1, #tile.sizes<tile_kv>>, !key_numbers
      scf.yield %k_next, %v_next, %next_keys : !kv_tile, !kv_tile, !key_numbers
    }

    // Scores, -inf where there is no key or causality hides it.
    %products = tile.dot %q_tile, %k_tile transposed, %zero_scores : !q_tile, !kv_tile -> !scores
    %key_positions = tile.expand %keys axis 0 : !key_numbers -> !positions
    %is_key = arith.cmpi sge, %key_positions, %no_position : !positions
    %visible_scores = scf.if %causal -> (!scores) {
      %not_later = arith.cmpi sle, %key_positions, %limits : !positions
      %both = arith.andi %is_key, %not_later : !mask
      %kept = arith.select %both, %products, %masked : !mask, !scores
      scf.yield %kept : !scores
    } else {
      %kept = arith.select %is_key, %products, %masked : !mask, !scores
      scf.yield %kept : !scores
    }

    // Scores in float16, of float32 less a base: the reference so far, or where no
    // key was seen yet the tile's own, 0 without keys.
    %base = scf.if %half -> (!rows) {
      scf.yield %zero_rows : !rows
    } else {
      %float_max = tile.reduce max %visible_scores : !scores -> !rows
      %float_octaves = arith.mulf %float_max, %row_eighths : !rows
      %own = math.ceil %float_octaves : !rows
      %has_keys = arith.cmpf ogt, %float_max, %no_rows : !rows
      %own_or_zero = arith.select %has_keys, %own, %zero_rows : !row_mask, !rows
      %is_first = arith.cmpf oeq, %old_reference, %no_reference : !rows
      %chosen = arith.select %is_first, %own_or_zero, %old_reference : !row_mask, !rows
      scf.yield %chosen : !rows
    }
    %base_units = arith.mulf %base, %octave_bits : !rows
    %base_all = tile.expand %base_units axis 1 : !rows -> !scores
    %less_base = arith.addf %visible_scores, %base_all : !scores
    %halves = arith.truncf %less_base : !scores to !half_scores
    %relative = arith.extf %halves : !half_scores to !scores

    // Online softmax. A NaN among the scores is no maximum.
    %tile_max = tile.reduce max %relative : !scores -> !rows
    %octaves = arith.mulf %tile_max, %row_eighths : !rows
    %whole_octaves = math.ceil %octaves : !rows
    %reached = arith.addf %base, %whole_octaves : !rows
    %new_reference = arith.maxnumf %old_reference, %reached : !rows
    %bent = scf.if %fast -> (!scores) {
      scf.yield %relative : !scores
    } else {
      %with_octaves = arith.addf %relative, %octave_magics : !scores
      %nearest_octave = arith.subf %with_octaves, %octave_magics : !scores
      %distance_in_octave = arith.subf %relative, %nearest_octave : !scores
      %is_score = arith.cmpf ogt, %relative, %masked : !scores
      %distances = arith.select %is_score, %distance_in_octave, %zero_scores : !mask, !scores
      %parts = arith.mulf %distances, %bends : !scores
      %half_parts = arith.truncf %parts : !scores to !half_scores
      %rounded_parts = arith.extf %half_parts : !half_scores to !scores
      %sizes = math.absf %rounded_parts : !scores
      %lowered = arith.subf %relative, %sizes : !scores
      %half_lowered = arith.truncf %lowered : !scores to !half_scores
      %rounded_lowered = arith.extf %half_lowered : !half_scores to !scores
      scf.yield %rounded_lowered : !scores
    }
    %from_base = arith.subf %new_reference, %base : !rows
    %offset = math.fma %from_base, %octave_bits, %bits_starts : !rows
    %small_offset = arith.mulf %offset, %units : !rows
    %half_offset = arith.truncf %small_offset : !rows to !half_rows
    %rounded_offset = arith.extf %half_offset : !half_rows to !rows
    %whole_offset = arith.mulf %rounded_offset, %per_units : !rows
    %offsets = tile.expand %whole_offset axis 1 : !rows -> !scores
    %sum = arith.addf %bent, %offsets : !scores
    %clamped = arith.maximumf %sum, %zero_scores : !scores
    %shifted = arith.addf %clamped, %magics : !scores
    %codes = arith.subf %shifted, %magics : !scores
    %code_bits = arith.bitcast %shifted : !scores to !positions
    %mantissas = arith.shli %code_bits, %shifts : !positions
    %normal_bits = arith.addi %mantissas, %exponent_differences : !positions
    %normals = arith.bitcast %normal_bits : !positions to !scores
    %subnormals = arith.mulf %codes, %subnormal_steps : !scores
    %is_normal = arith.cmpf oge, %codes, %first_normals : !scores
    %p = arith.select %is_normal, %normals, %subnormals : !mask, !scores
    %distance = arith.subf %old_reference, %new_reference : !rows
    %shrink = math.exp2 %distance : !rows
    %tile_sum = tile.reduce sum %p : !scores -> !rows
    %kept_sum = arith.mulf %old_sum, %shrink : !rows
    %new_sum = arith.addf %kept_sum, %tile_sum : !rows

    %shrink_all = tile.expand %shrink axis 1 : !rows -> !q_tile
    %kept_output = arith.mulf %old_output, %shrink_all : !q_tile
    %new_output = tile.dot %p, %v_tile, %kept_output : !scores, !kv_tile -> !q_tile
    scf.yield %new_reference, %new_sum, %new_output : !rows, !rows, !q_tile
  }

  // o = output / sum, 0 for a row without keys, each channel in its scale.
  %ones = tile.splat %f1 : f32 -> !rows
  %empty = arith.cmpf oeq, %row_sum, %zero_rows : !rows
  %reciprocal = arith.divf %ones, %row_sum : !rows
  %factor = arith.select %empty, %zero_rows, %reciprocal : tensor<?xi1, #tile.sizes<tile_q>>, !rows
  %factor_all = tile.expand %factor axis 1 : !rows -> !q_tile
  %normalised = arith.mulf %output, %factor_all : !q_tile
  %scale_view = tile.slice %v_scale[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %scales = tile.load_values %scale_view[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> !channels
  %channel_scales = tile.expand %scales axis 0 : !channels -> !q_tile
  %in_scale = arith.mulf %normalised, %channel_scales : !q_tile
  tile.store %in_scale, %o_view[%first_row, %c0] : !q_tile, !tile.view<2 x !elem>

  %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
  scf.if %wants_lse {
    %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %log_sum = math.log2 %row_sum : !rows
    %less = arith.addf %log_sum, %excesses : !rows
    %lse_log2 = arith.addf %reference, %less : !rows
    %ln_2s = tile.splat %ln_2 : f32 -> !rows
    %lse_plain = arith.mulf %lse_log2, %ln_2s : !rows
    %has_shift = tile.is_present %lse_shift : !tile.global<3 x f32>
    %shifts_of_lse = scf.if %has_shift -> (!rows) {
      %shift_view = tile.slice %lse_shift[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
      %given_shifts = tile.load_values %shift_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
      %scale_rows = tile.splat %softmax_scale : f32 -> !rows
      %scaled_shifts = arith.mulf %given_shifts, %scale_rows : !rows
      scf.yield %scaled_shifts : !rows
    } else {
      scf.yield %zero_rows : !rows
    }
    // -inf stays.
    %lse_rows = arith.addf %lse_plain, %shifts_of_lse : !rows
    tile.store %lse_rows, %lse_view[%first_row] : !rows, !tile.view<1 x f32>
  }
}

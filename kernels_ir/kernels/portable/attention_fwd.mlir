// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd: block-sparse attention with an online softmax.
//
//   o[i]   = sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = exp(s[i, j] - max)
//   lse[i] = ln sum_j exp(s[i, j]),               s = softmax_scale q kᵀ
//
// over the keys j of the blocks listed for row i's block (all keys without
// lists), and with causal only j <= i + kv_len - q_len. A row without keys gives
// o = 0, lse = -inf. One program a tile of query rows; several listed blocks lie
// side by side in one key tile. (FlashAttention-2, arXiv 2307.08691, section 3.1;
// SpargeAttention2, arXiv 2602.13515.)

!elem = !tile.element<"elem">
!q_tile = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!kv_tile = tensor<?x?xf32, #tile.sizes<tile_kv, head_dim>>
!scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<tile_q, tile_kv>>
!mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>

tile.kernel @attention_fwd(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                           %v: !tile.global<4 x !elem>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %o: !tile.global<4 x !elem>, %lse: !tile.global<3 x f32>,
                           %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, tile_q, tile_kv]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %ln_2 = arith.constant 0.693147181 : f32
  %tile_q = tile.parameter "tile_q" : index
  %tile_kv = tile.parameter "tile_kv" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1

  // Where this program works.
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %tile_q : index
  %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %kv_head = arith.divui %head, %heads_per_kv : index
  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  %q_view = tile.slice %q[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %k_view = tile.slice %k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %v_view = tile.slice %v[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
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

  // The softmax runs in base 2: s2 = scale log2(e) q kᵀ.
  %scale_log2 = arith.mulf %softmax_scale, %log2_e : f32
  %scale = tile.splat %scale_log2 : f32 -> !scores
  %q_tile = tile.load %q_view[%first_row, %c0] : !tile.view<2 x !elem> -> !q_tile

  %zero_scores = tile.splat %f0 : f32 -> !scores
  %masked = tile.splat %minus_inf : f32 -> !scores
  %no_position = tile.splat %c0_i32 : i32 -> !positions
  %no_max = tile.splat %minus_inf : f32 -> !rows
  %no_sum = tile.splat %f0 : f32 -> !rows
  %no_output = tile.splat %f0 : f32 -> !q_tile
  %zero_rows = tile.splat %f0 : f32 -> !rows

  %row_max, %row_sum, %output = scf.for %step = %c0 to %steps step %c1
      iter_args(%old_max = %no_max, %old_sum = %no_sum, %old_output = %no_output)
      -> (!rows, !rows, !q_tile) {
    // Load one key tile and the positions of its keys (-1: no key).
    %k_tile, %v_tile, %keys = scf.if %has_lists -> (!kv_tile, !kv_tile, !key_numbers) {
      %first_block = arith.muli %step, %blocks_per_tile : index
      %k_listed = tile.gather %k_view by %list[%first_block] count %count block %mask_block_kv
          : !tile.view<2 x !elem>, !tile.view<1 x i32> -> !kv_tile
      %v_listed = tile.gather %v_view by %list[%first_block] count %count block %mask_block_kv
          : !tile.view<2 x !elem>, !tile.view<1 x i32> -> !kv_tile
      %listed_keys = tile.gather_positions %list[%first_block] count %count block %mask_block_kv limit %kv_len
          : !tile.view<1 x i32> -> !key_numbers
      scf.yield %k_listed, %v_listed, %listed_keys : !kv_tile, !kv_tile, !key_numbers
    } else {
      %first_key = arith.muli %step, %tile_kv : index
      %k_next = tile.load %k_view[%first_key, %c0] : !tile.view<2 x !elem> -> !kv_tile
      %v_next = tile.load %v_view[%first_key, %c0] : !tile.view<2 x !elem> -> !kv_tile
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
    %scaled = arith.mulf %products, %scale : !scores
    %key_positions = tile.expand %keys axis 0 : !key_numbers -> !positions
    %is_key = arith.cmpi sge, %key_positions, %no_position : !positions
    %visible_scores = scf.if %causal -> (!scores) {
      %not_later = arith.cmpi sle, %key_positions, %limits : !positions
      %both = arith.andi %is_key, %not_later : !mask
      %kept = arith.select %both, %scaled, %masked : !mask, !scores
      scf.yield %kept : !scores
    } else {
      %kept = arith.select %is_key, %scaled, %masked : !mask, !scores
      scf.yield %kept : !scores
    }

    // Online softmax. A row that has seen no key keeps max = -inf; subtracting 0
    // instead keeps its exponentials at 0 rather than NaN.
    %tile_max = tile.reduce max %visible_scores : !scores -> !rows
    %new_max = arith.maximumf %old_max, %tile_max : !rows
    %unseen = arith.cmpf oeq, %new_max, %no_max : !rows
    %subtracted = arith.select %unseen, %zero_rows, %new_max : tensor<?xi1, #tile.sizes<tile_q>>, !rows
    %subtracted_all = tile.expand %subtracted axis 1 : !rows -> !scores
    %exponents = arith.subf %visible_scores, %subtracted_all : !scores
    %p = math.exp2 %exponents : !scores
    %shrink_exponent = arith.subf %old_max, %subtracted : !rows
    %shrink = math.exp2 %shrink_exponent : !rows
    %tile_sum = tile.reduce sum %p : !scores -> !rows
    %kept_sum = arith.mulf %old_sum, %shrink : !rows
    %new_sum = arith.addf %kept_sum, %tile_sum : !rows

    %shrink_all = tile.expand %shrink axis 1 : !rows -> !q_tile
    %kept_output = arith.mulf %old_output, %shrink_all : !q_tile
    %new_output = tile.dot %p, %v_tile, %kept_output : !scores, !kv_tile -> !q_tile
    scf.yield %new_max, %new_sum, %new_output : !rows, !rows, !q_tile
  }

  // o = output / sum, 0 for a row without keys.
  %ones = tile.splat %f1 : f32 -> !rows
  %empty = arith.cmpf oeq, %row_sum, %zero_rows : !rows
  %reciprocal = arith.divf %ones, %row_sum : !rows
  %factor = arith.select %empty, %zero_rows, %reciprocal : tensor<?xi1, #tile.sizes<tile_q>>, !rows
  %factor_all = tile.expand %factor axis 1 : !rows -> !q_tile
  %normalised = arith.mulf %output, %factor_all : !q_tile
  tile.store %normalised, %o_view[%first_row, %c0] : !q_tile, !tile.view<2 x !elem>

  %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
  scf.if %wants_lse {
    %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %log_sum = math.log2 %row_sum : !rows
    %lse_log2 = arith.addf %row_max, %log_sum : !rows
    %ln_2s = tile.splat %ln_2 : f32 -> !rows
    %lse_rows = arith.mulf %lse_log2, %ln_2s : !rows
    tile.store %lse_rows, %lse_view[%first_row] : !rows, !tile.view<1 x f32>
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_q: the gradient of q in block-sparse attention.
//
//   p[i, j]   = exp(s[i, j] - lse[i]),   s = softmax_scale q kᵀ
//   d_s[i, j] = p[i, j] (d_o[i] · v[j] - delta[i])
//   d_q[i]    = softmax_scale sum_j d_s[i, j] k[j]
//
// over the keys j of the blocks listed for row i's block (all keys without
// lists), and with causal only j <= i + kv_len - q_len. A row without keys (lse =
// -inf) gives 0. One program a tile of query rows, as in attention_fwd.
// (FlashAttention-2, arXiv 2307.08691, section 3.2.)
//
//   delta[i]  = sum_d d_o[i, d] o[i, d] - d_lse[i]
//
// is what a launch before has left, or with forms_delta formed here and left for
// attention_bwd_kv; without d_lse nothing is subtracted (that it joins delta follows
// from d lse / d s = p).

!elem = !tile.element<"elem">
!q_tile = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!kv_tile = tensor<?x?xf32, #tile.sizes<tile_kv, head_dim>>
!scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<tile_q, tile_kv>>
!mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>
!rows_i1 = tensor<?xi1, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>

tile.kernel @attention_bwd_q(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                             %v: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                             %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                             %lse: !tile.global<3 x f32>, %o: !tile.global<4 x !elem>,
                             %d_lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>,
                             %d_q: !tile.global<4 x !elem>, %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, forms_delta, tile_q, tile_kv]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %plus_inf = arith.constant 0x7F800000 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %tile_q = tile.parameter "tile_q" : index
  %tile_kv = tile.parameter "tile_kv" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1
  %forms_delta = tile.parameter "forms_delta" : i1

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
  %d_o_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %d_q_view = tile.slice %d_q[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>

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
    %visible_all = arith.addi %row_end, %shift_all : index
    %visible_end = arith.minsi %visible_all, %kv_len : index
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

  // Exponentials are of base 2. A row without keys subtracts +inf, so that its
  // weights are 0 and not exp(s + inf).
  %lse_rows = tile.load_values %lse_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
  %log2_es = tile.splat %log2_e : f32 -> !rows
  %lse_log2 = arith.mulf %lse_rows, %log2_es : !rows
  %lowest = tile.splat %minus_inf : f32 -> !rows
  %highest = tile.splat %plus_inf : f32 -> !rows
  %is_empty = arith.cmpf oeq, %lse_rows, %lowest : !rows
  %subtracted = arith.select %is_empty, %highest, %lse_log2 : !rows_i1, !rows
  %scale_log2 = arith.mulf %softmax_scale, %log2_e : f32
  %scale = tile.splat %scale_log2 : f32 -> !scores

  %q_tile = tile.load %q_view[%first_row, %c0] : !tile.view<2 x !elem> -> !q_tile
  %d_o_tile = tile.load %d_o_view[%first_row, %c0] : !tile.view<2 x !elem> -> !q_tile
  %delta_rows = scf.if %forms_delta -> (!rows) {
    %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %o_tile = tile.load %o_view[%first_row, %c0] : !tile.view<2 x !elem> -> !q_tile
    %o_products = arith.mulf %d_o_tile, %o_tile : !q_tile
    %sums = tile.reduce sum %o_products : !q_tile -> !rows
    %has_d_lse = tile.is_present %d_lse : !tile.global<3 x f32>
    %formed = scf.if %has_d_lse -> (!rows) {
      %d_lse_view = tile.slice %d_lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
      %d_lse_rows = tile.load_values %d_lse_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
      %less = arith.subf %sums, %d_lse_rows : !rows
      scf.yield %less : !rows
    } else {
      scf.yield %sums : !rows
    }
    tile.store %formed, %delta_view[%first_row] : !rows, !tile.view<1 x f32>
    scf.yield %formed : !rows
  } else {
    %left = tile.load_values %delta_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
    scf.yield %left : !rows
  }
  %zero_scores = tile.splat %f0 : f32 -> !scores
  %no_position = tile.splat %c0_i32 : i32 -> !positions
  %no_gradient = tile.splat %f0 : f32 -> !q_tile

  %sum = scf.for %step = %c0 to %steps step %c1
      iter_args(%old_sum = %no_gradient) -> (!q_tile) {
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

    // Weights again, from the scores and the row's log-sum-exp.
    %products = tile.dot %q_tile, %k_tile transposed, %zero_scores : !q_tile, !kv_tile -> !scores
    %scaled = arith.mulf %products, %scale : !scores
    %subtracted_all = tile.expand %subtracted axis 1 : !rows -> !scores
    %exponents = arith.subf %scaled, %subtracted_all : !scores
    %p = math.exp2 %exponents : !scores

    %d_p = tile.dot %d_o_tile, %v_tile transposed, %zero_scores : !q_tile, !kv_tile -> !scores
    %delta_all = tile.expand %delta_rows axis 1 : !rows -> !scores
    %above_delta = arith.subf %d_p, %delta_all : !scores
    %raw = arith.mulf %p, %above_delta : !scores

    // 0 where there is no key or causality hides it, whatever stands there.
    %key_positions = tile.expand %keys axis 0 : !key_numbers -> !positions
    %is_key = arith.cmpi sge, %key_positions, %no_position : !positions
    %d_s = scf.if %causal -> (!scores) {
      %not_later = arith.cmpi sle, %key_positions, %limits : !positions
      %both = arith.andi %is_key, %not_later : !mask
      %kept = arith.select %both, %raw, %zero_scores : !mask, !scores
      scf.yield %kept : !scores
    } else {
      %kept = arith.select %is_key, %raw, %zero_scores : !mask, !scores
      scf.yield %kept : !scores
    }
    %new_sum = tile.dot %d_s, %k_tile, %old_sum : !scores, !kv_tile -> !q_tile
    scf.yield %new_sum : !q_tile
  }

  %scales = tile.splat %softmax_scale : f32 -> !q_tile
  %result = arith.mulf %sum, %scales : !q_tile
  tile.store %result, %d_q_view[%first_row, %c0] : !q_tile, !tile.view<2 x !elem>
}

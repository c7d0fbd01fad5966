// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_kv: the gradients of k and v in block-sparse attention.
//
//   p[i, j]   = exp(s[i, j] - lse[i]),   s = softmax_scale q kᵀ
//   d_s[i, j] = p[i, j] (d_o[i] · v[j] - delta[i])
//   d_k[j]    = softmax_scale sum_i d_s[i, j] q[i],   d_v[j] = sum_i p[i, j] d_o[i]
//
// over the rows i of the query blocks listed for key j's block (all rows without
// lists) of every query head that reads this key head, and with causal only
// j <= i + kv_len - q_len; delta as attention_bwd_q leaves it. A key that no
// row sees gives 0. One program a tile of keys of one block, which are the rows
// here: sᵀ = k qᵀ. Sums run over heads and lists in order, so nothing is added
// by two programs. (FlashAttention-2, arXiv 2307.08691, section 3.2.)

!elem = !tile.element<"elem">
!key_tile = tensor<?x?xf32, #tile.sizes<tile_keys, head_dim>>
!query_tile = tensor<?x?xf32, #tile.sizes<tile_queries, head_dim>>
!scores = tensor<?x?xf32, #tile.sizes<tile_keys, tile_queries>>
!positions = tensor<?x?xi32, #tile.sizes<tile_keys, tile_queries>>
!keys_i32 = tensor<?xi32, #tile.sizes<tile_keys>>
!queries = tensor<?xf32, #tile.sizes<tile_queries>>
!queries_i1 = tensor<?xi1, #tile.sizes<tile_queries>>
!queries_i32 = tensor<?xi32, #tile.sizes<tile_queries>>
!mask = tensor<?x?xi1, #tile.sizes<tile_keys, tile_queries>>

tile.kernel @attention_bwd_kv(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                              %v: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                              %key_indices: !tile.global<4 x i32>, %key_counts: !tile.global<3 x i32>,
                              %lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>,
                              %d_k: !tile.global<4 x !elem>, %d_v: !tile.global<4 x !elem>,
                              %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, tile_keys, tile_queries]
    grid %k by tile_keys {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %plus_inf = arith.constant 0x7F800000 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %tile_keys = tile.parameter "tile_keys" : index
  %tile_queries = tile.parameter "tile_queries" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1

  // Where this program works.
  %batch, %kv_head, %tile = tile.program_id : index, index, index
  %first_key = arith.muli %tile, %tile_keys : index
  %mask_column = arith.divui %first_key, %mask_block_kv : index
  %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %first_head = arith.muli %kv_head, %heads_per_kv : index
  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  %k_view = tile.slice %k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %v_view = tile.slice %v[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %d_k_view = tile.slice %d_k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %d_v_view = tile.slice %d_v[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>

  // A listed block is so many tiles of queries. Without lists causality bounds
  // them: none before the first row that sees the first key.
  %tiles_per_block = arith.divui %mask_block_q, %tile_queries : index
  %shift = arith.subi %kv_len, %q_len : index
  %earliest = arith.subi %first_key, %shift : index
  %earliest_row = arith.maxsi %earliest, %c0 : index
  %earliest_tile = arith.divui %earliest_row, %tile_queries : index
  %dense_first = arith.select %causal, %earliest_tile, %c0 : index
  %dense_end = arith.ceildivsi %q_len, %tile_queries : index

  %key_iota = tile.iota : !keys_i32
  %first_key_i32 = arith.index_cast %first_key : index to i32
  %first_keys = tile.splat %first_key_i32 : i32 -> !keys_i32
  %key_numbers = arith.addi %first_keys, %key_iota : !keys_i32
  %key_positions = tile.expand %key_numbers axis 1 : !keys_i32 -> !positions

  // Exponentials are of base 2. A row without keys subtracts +inf, so that its
  // weights are 0 and not exp(s + inf).
  %log2_es = tile.splat %log2_e : f32 -> !queries
  %lowest = tile.splat %minus_inf : f32 -> !queries
  %highest = tile.splat %plus_inf : f32 -> !queries
  %scale_log2 = arith.mulf %softmax_scale, %log2_e : f32
  %scale = tile.splat %scale_log2 : f32 -> !scores
  %k_tile = tile.load %k_view[%first_key, %c0] : !tile.view<2 x !elem> -> !key_tile
  %v_tile = tile.load %v_view[%first_key, %c0] : !tile.view<2 x !elem> -> !key_tile
  %zero_scores = tile.splat %f0 : f32 -> !scores
  %no_d_k = tile.splat %f0 : f32 -> !key_tile
  %no_d_v = tile.splat %f0 : f32 -> !key_tile

  %sum_d_k, %sum_d_v = scf.for %member = %c0 to %heads_per_kv step %c1
      iter_args(%head_d_k = %no_d_k, %head_d_v = %no_d_v) -> (!key_tile, !key_tile) {
    %head = arith.addi %first_head, %member : index
    %q_view = tile.slice %q[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %d_o_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %list = tile.slice %key_indices[%batch, %head, %mask_column] : !tile.global<4 x i32> -> !tile.view<1 x i32>
    %first_step, %end_step = scf.if %has_lists -> (index, index) {
      %column_counts = tile.slice %key_counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
      %count_i32 = tile.load_scalar %column_counts[%mask_column] : !tile.view<1 x i32> -> i32
      %count = arith.index_cast %count_i32 : i32 to index
      %list_steps = arith.muli %count, %tiles_per_block : index
      scf.yield %c0, %list_steps : index, index
    } else {
      scf.yield %dense_first, %dense_end : index, index
    }

    %new_head_d_k, %new_head_d_v = scf.for %step = %first_step to %end_step step %c1
        iter_args(%old_d_k = %head_d_k, %old_d_v = %head_d_v) -> (!key_tile, !key_tile) {
      // The next tile of queries: rows beyond the end load as zeros, with lse
      // and delta 0, and so add nothing.
      %first_query = scf.if %has_lists -> (index) {
        %slot = arith.divui %step, %tiles_per_block : index
        %part = arith.remui %step, %tiles_per_block : index
        %block_i32 = tile.load_scalar %list[%slot] : !tile.view<1 x i32> -> i32
        %block = arith.index_cast %block_i32 : i32 to index
        %block_row = arith.muli %block, %mask_block_q : index
        %part_row = arith.muli %part, %tile_queries : index
        %listed_row = arith.addi %block_row, %part_row : index
        scf.yield %listed_row : index
      } else {
        %next_row = arith.muli %step, %tile_queries : index
        scf.yield %next_row : index
      }
      %q_tile = tile.load %q_view[%first_query, %c0] : !tile.view<2 x !elem> -> !query_tile
      %d_o_tile = tile.load %d_o_view[%first_query, %c0] : !tile.view<2 x !elem> -> !query_tile
      %lse_queries = tile.load_values %lse_view[%first_query] otherwise %f0 : !tile.view<1 x f32>, f32 -> !queries
      %delta_queries = tile.load_values %delta_view[%first_query] otherwise %f0 : !tile.view<1 x f32>, f32 -> !queries
      %lse_log2 = arith.mulf %lse_queries, %log2_es : !queries
      %is_empty = arith.cmpf oeq, %lse_queries, %lowest : !queries
      %subtracted = arith.select %is_empty, %highest, %lse_log2 : !queries_i1, !queries

      // Weights again, and 0 where causality hides the key.
      %products = tile.dot %k_tile, %q_tile transposed, %zero_scores : !key_tile, !query_tile -> !scores
      %scaled = arith.mulf %products, %scale : !scores
      %subtracted_all = tile.expand %subtracted axis 0 : !queries -> !scores
      %exponents = arith.subf %scaled, %subtracted_all : !scores
      %p_all = math.exp2 %exponents : !scores
      %first_limit = arith.addi %first_query, %shift : index
      %first_limit_i32 = arith.index_cast %first_limit : index to i32
      %first_limits = tile.splat %first_limit_i32 : i32 -> !queries_i32
      %query_iota = tile.iota : !queries_i32
      %query_limits = arith.addi %first_limits, %query_iota : !queries_i32
      %limits = tile.expand %query_limits axis 0 : !queries_i32 -> !positions
      %p = scf.if %causal -> (!scores) {
        %is_visible = arith.cmpi sle, %key_positions, %limits : !positions
        %kept = arith.select %is_visible, %p_all, %zero_scores : !mask, !scores
        scf.yield %kept : !scores
      } else {
        scf.yield %p_all : !scores
      }
      %new_d_v = tile.dot %p, %d_o_tile, %old_d_v : !scores, !query_tile -> !key_tile

      %d_p = tile.dot %v_tile, %d_o_tile transposed, %zero_scores : !key_tile, !query_tile -> !scores
      %delta_all = tile.expand %delta_queries axis 0 : !queries -> !scores
      %above_delta = arith.subf %d_p, %delta_all : !scores
      %raw = arith.mulf %p, %above_delta : !scores
      // Also where 0 meets a d_o or delta that is not finite.
      %d_s = scf.if %causal -> (!scores) {
        %is_visible = arith.cmpi sle, %key_positions, %limits : !positions
        %kept = arith.select %is_visible, %raw, %zero_scores : !mask, !scores
        scf.yield %kept : !scores
      } else {
        scf.yield %raw : !scores
      }
      %new_d_k = tile.dot %d_s, %q_tile, %old_d_k : !scores, !query_tile -> !key_tile
      scf.yield %new_d_k, %new_d_v : !key_tile, !key_tile
    }
    scf.yield %new_head_d_k, %new_head_d_v : !key_tile, !key_tile
  }

  %scales = tile.splat %softmax_scale : f32 -> !key_tile
  %d_k_result = arith.mulf %sum_d_k, %scales : !key_tile
  tile.store %d_k_result, %d_k_view[%first_key, %c0] : !key_tile, !tile.view<2 x !elem>
  tile.store %sum_d_v, %d_v_view[%first_key, %c0] : !key_tile, !tile.view<2 x !elem>
}

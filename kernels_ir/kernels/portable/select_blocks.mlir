// SPDX-License-Identifier: Apache-2.0
//
// select_blocks: scores blocks of rows against blocks of keys and keeps the best.
//
//   s[i, j] = softmax_scale pooled_q[i] · pooled_k[j]     (NaN ranks as -inf)
//   prob    = softmax of s[i, :] over the blocks that causality leaves
//
// Row i keeps the shortest prefix of its ranking (score descending, ties to the
// lower index) that has at least max(k, 1) blocks and a probability mass of at
// least p; with both this is the union of Top-k and Top-p of SpargeAttention2
// (arXiv 2602.13515), because both are prefixes of one ranking. Blocks forced by
// keep_diagonal, keep_first and, with has_dense, by the call are added. Where the call brings k_values and
// p_values (one for each batch and head, in memory), these stand in the places of k
// and p: k = clamp(trunc(k_values · kv_blocks), 1, kv_blocks), with a product in f32.
//
// No sort: the ranking is cut at the largest score t such that the blocks with
// s >= t are enough. Scores are turned into integers of the same order, and t is
// found bit by bit, 32 passes over a row (own derivation: both conditions only
// grow as t falls). One program handles tile_rows rows of blocks side by side.

!q_tile = tensor<?x?xf32, #tile.sizes<tile_rows, head_dim>>
!k_tile = tensor<?x?xf32, #tile.sizes<tile_columns, head_dim>>
!tile_f32 = tensor<?x?xf32, #tile.sizes<tile_rows, tile_columns>>
!tile_i32 = tensor<?x?xi32, #tile.sizes<tile_rows, tile_columns>>
!tile_i1 = tensor<?x?xi1, #tile.sizes<tile_rows, tile_columns>>
!rows_f32 = tensor<?xf32, #tile.sizes<tile_rows>>
!rows_f64 = tensor<?xf64, #tile.sizes<tile_rows>>
!rows_i32 = tensor<?xi32, #tile.sizes<tile_rows>>
!columns_i32 = tensor<?xi32, #tile.sizes<tile_columns>>

tile.kernel @select_blocks(%pooled_q: !tile.global<4 x f32>, %pooled_k: !tile.global<4 x f32>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %softmax_scale: f32, %k: index, %p: f32,
                           %q_len: index, %kv_len: index,
                           %k_values: !tile.global<3 x f32>, %p_values: !tile.global<3 x f32>,
                           %dense_first: index, %dense_end: index,
                           %dense_row_first: index, %dense_row_end: index)
    parameters [head_dim, mask_block_q, mask_block_kv, causal, keep_diagonal, keep_first,
                has_dense, tile_rows, tile_columns]
    grid %pooled_q by tile_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i31 = arith.constant 31 : i32
  %lowest = arith.constant -2147483648 : i32
  %all_but_sign = arith.constant 2147483647 : i32
  %minus_one = arith.constant -1 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %d0 = arith.constant 0.0 : f64
  %d1 = arith.constant 1.0 : f64
  %infinite = arith.constant 0x7FF0000000000000 : f64
  %minus_inf = arith.constant 0xFF800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %tile_rows = tile.parameter "tile_rows" : index
  %tile_columns = tile.parameter "tile_columns" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %keep_diagonal = tile.parameter "keep_diagonal" : i1
  %keep_first = tile.parameter "keep_first" : index
  %has_dense = tile.parameter "has_dense" : i1

  // A row's ordered scores, and its scores, later its exponentials.
  %kv_blocks = tile.dim %pooled_k, 2 : !tile.global<4 x f32>
  %keys = tile.scratch %kv_blocks multiple %tile_columns : !tile.scratch<tile_rows, i32>
  %values = tile.scratch %kv_blocks multiple %tile_columns : !tile.scratch<tile_rows, f32>

  // Where this program works.
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %tile_rows : index
  %q_heads = tile.dim %pooled_q, 1 : !tile.global<4 x f32>
  %kv_heads = tile.dim %pooled_k, 1 : !tile.global<4 x f32>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %kv_head = arith.divui %head, %heads_per_kv : index
  %q_view = tile.slice %pooled_q[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %k_view = tile.slice %pooled_k[%batch, %kv_head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %lists = tile.slice %indices[%batch, %head] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %list_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  %q_tile = tile.load %q_view[%first_row, %c0] : !tile.view<2 x f32> -> !q_tile

  // The last key position that each row of blocks sees: that of its last real
  // query row, bottom-right aligned; may be negative.
  %row_iota = tile.iota : !rows_i32
  %first_row_i32 = arith.index_cast %first_row : index to i32
  %first_rows = tile.splat %first_row_i32 : i32 -> !rows_i32
  %block_rows = arith.addi %first_rows, %row_iota : !rows_i32
  %mask_block_q_i32 = arith.index_cast %mask_block_q : index to i32
  %mask_block_qs = tile.splat %mask_block_q_i32 : i32 -> !rows_i32
  %ones_i32 = tile.splat %i1 : i32 -> !rows_i32
  %zeros_i32 = tile.splat %i0 : i32 -> !rows_i32
  %next_block_rows = arith.addi %block_rows, %ones_i32 : !rows_i32
  %whole_ends = arith.muli %next_block_rows, %mask_block_qs : !rows_i32
  %q_len_i32 = arith.index_cast %q_len : index to i32
  %q_lens = tile.splat %q_len_i32 : i32 -> !rows_i32
  %row_ends = arith.minsi %whole_ends, %q_lens : !rows_i32
  %shift = arith.subi %kv_len, %q_len : index
  %shift_i32 = arith.index_cast %shift : index to i32
  %shift_minus_one = arith.subi %shift_i32, %i1 : i32
  %shifts = tile.splat %shift_minus_one : i32 -> !rows_i32
  %last_keys = arith.addi %row_ends, %shifts : !rows_i32
  %limits = tile.expand %last_keys axis 1 : !rows_i32 -> !tile_i32

  // The block that holds it, for keep_diagonal.
  %kv_len_i32 = arith.index_cast %kv_len : index to i32
  %kv_last = arith.subi %kv_len_i32, %i1 : i32
  %kv_lasts = tile.splat %kv_last : i32 -> !rows_i32
  %clipped_high = arith.minsi %last_keys, %kv_lasts : !rows_i32
  %clipped = arith.maxsi %clipped_high, %zeros_i32 : !rows_i32
  %mask_block_kv_i32 = arith.index_cast %mask_block_kv : index to i32
  %mask_block_kvs = tile.splat %mask_block_kv_i32 : i32 -> !rows_i32
  %diagonal_rows = arith.divsi %clipped, %mask_block_kvs : !rows_i32
  %diagonal = tile.expand %diagonal_rows axis 1 : !rows_i32 -> !tile_i32

  // The key blocks that a row has without asking, with has_dense: the call's, or
  // all where the row is one of the call's.
  %kv_blocks_i32 = arith.index_cast %kv_blocks : index to i32
  %dense_row_first_i32 = arith.index_cast %dense_row_first : index to i32
  %dense_row_end_i32 = arith.index_cast %dense_row_end : index to i32
  %dense_row_firsts = tile.splat %dense_row_first_i32 : i32 -> !rows_i32
  %dense_row_ends = tile.splat %dense_row_end_i32 : i32 -> !rows_i32
  %from_dense_row = arith.cmpi sge, %block_rows, %dense_row_firsts : !rows_i32
  %to_dense_row = arith.cmpi slt, %block_rows, %dense_row_ends : !rows_i32
  %is_dense_row = arith.andi %from_dense_row, %to_dense_row : tensor<?xi1, #tile.sizes<tile_rows>>
  %dense_first_i32 = arith.index_cast %dense_first : index to i32
  %dense_end_i32 = arith.index_cast %dense_end : index to i32
  %dense_firsts = tile.splat %dense_first_i32 : i32 -> !rows_i32
  %dense_ends = tile.splat %dense_end_i32 : i32 -> !rows_i32
  %every_block = tile.splat %kv_blocks_i32 : i32 -> !rows_i32
  %row_dense_first = arith.select %is_dense_row, %zeros_i32, %dense_firsts : tensor<?xi1, #tile.sizes<tile_rows>>, !rows_i32
  %row_dense_end = arith.select %is_dense_row, %every_block, %dense_ends : tensor<?xi1, #tile.sizes<tile_rows>>, !rows_i32
  %dense_from = tile.expand %row_dense_first axis 1 : !rows_i32 -> !tile_i32
  %dense_to = tile.expand %row_dense_end axis 1 : !rows_i32 -> !tile_i32

  %kv_blocks_all = tile.splat %kv_blocks_i32 : i32 -> !tile_i32
  %mask_block_kv_all = tile.splat %mask_block_kv_i32 : i32 -> !tile_i32
  %lowest_all = tile.splat %lowest : i32 -> !tile_i32
  %minus_inf_all = tile.splat %minus_inf : f32 -> !tile_f32
  %zero_tile = tile.splat %f0 : f32 -> !tile_f32
  %scales = tile.splat %softmax_scale : f32 -> !tile_f32
  %no_max = tile.splat %minus_inf : f32 -> !rows_f32
  %zero_rows = tile.splat %f0 : f32 -> !rows_f32
  %zero_rows_f64 = tile.splat %d0 : f64 -> !rows_f64

  // Scores, and the same order as signed integers: flip all bits but the sign of
  // negative numbers. Hidden blocks get the lowest integer, below that of -inf.
  %row_max = scf.for %column = %c0 to %kv_blocks step %tile_columns
      iter_args(%old_max = %no_max) -> (!rows_f32) {
    %k_tile = tile.load %k_view[%column, %c0] : !tile.view<2 x f32> -> !k_tile
    %products = tile.dot %q_tile, %k_tile transposed, %zero_tile : !q_tile, !k_tile -> !tile_f32
    %scaled = arith.mulf %products, %scales : !tile_f32
    // + 0.0 makes -0 and 0 one score.
    %signed = arith.addf %scaled, %zero_tile : !tile_f32
    %is_number = arith.cmpf ord, %signed, %signed : !tile_f32
    %scores = arith.select %is_number, %signed, %minus_inf_all : !tile_i1, !tile_f32
    %column_iota = tile.iota : !columns_i32
    %column_i32 = arith.index_cast %column : index to i32
    %column_starts = tile.splat %column_i32 : i32 -> !columns_i32
    %column_numbers = arith.addi %column_starts, %column_iota : !columns_i32
    %numbers = tile.expand %column_numbers axis 0 : !columns_i32 -> !tile_i32
    %exists = arith.cmpi slt, %numbers, %kv_blocks_all : !tile_i32
    %first_keys = arith.muli %numbers, %mask_block_kv_all : !tile_i32
    %not_later = arith.cmpi sle, %first_keys, %limits : !tile_i32
    %visible = arith.andi %exists, %not_later : !tile_i1
    %allowed = arith.select %causal, %visible, %exists : !tile_i1

    %bits = arith.bitcast %scores : !tile_f32 to !tile_i32
    %sign_shift = tile.splat %i31 : i32 -> !tile_i32
    %sign = arith.shrsi %bits, %sign_shift : !tile_i32
    %all_but_signs = tile.splat %all_but_sign : i32 -> !tile_i32
    %flip = arith.andi %sign, %all_but_signs : !tile_i32
    %ordered = arith.xori %bits, %flip : !tile_i32
    %allowed_keys = arith.select %allowed, %ordered, %lowest_all : !tile_i1, !tile_i32
    tile.scratch_store %allowed_keys, %keys[%column] : !tile_i32, !tile.scratch<tile_rows, i32>
    %allowed_scores = arith.select %allowed, %scores, %minus_inf_all : !tile_i1, !tile_f32
    tile.scratch_store %allowed_scores, %values[%column] : !tile_f32, !tile.scratch<tile_rows, f32>
    %stored_scores = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
    %tile_max = tile.reduce max %stored_scores : !tile_f32 -> !rows_f32
    %new_max = arith.maximumf %old_max, %tile_max : !rows_f32
    scf.yield %new_max : !rows_f32
  }

  // exp(s - max) and their sum; a row of -inf has mass 0 everywhere.
  %unseen = arith.cmpf oeq, %row_max, %no_max : !rows_f32
  %subtracted = arith.select %unseen, %zero_rows, %row_max : tensor<?xi1, #tile.sizes<tile_rows>>, !rows_f32
  %subtracted_all = tile.expand %subtracted axis 1 : !rows_f32 -> !tile_f32
  %log2_e_all = tile.splat %log2_e : f32 -> !tile_f32
  %total = scf.for %column = %c0 to %kv_blocks step %tile_columns
      iter_args(%old_total = %zero_rows_f64) -> (!rows_f64) {
    %scores = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
    %differences = arith.subf %scores, %subtracted_all : !tile_f32
    %exponents = arith.mulf %differences, %log2_e_all : !tile_f32
    %exponentials = math.exp2 %exponents : !tile_f32
    tile.scratch_store %exponentials, %values[%column] : !tile_f32, !tile.scratch<tile_rows, f32>
    %stored = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
    %tile_total = tile.reduce sum %stored : !tile_f32 -> !rows_f32
    %tile_total_f64 = arith.extf %tile_total : !rows_f32 to !rows_f64
    %new_total = arith.addf %old_total, %tile_total_f64 : !rows_f64
    scf.yield %new_total : !rows_f64
  }
  // This head's k and p.
  %has_k_values = tile.is_present %k_values : !tile.global<3 x f32>
  %k_now = scf.if %has_k_values -> (i32) {
    %k_value = tile.slice %k_values[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %share = tile.load_scalar %k_value[%c0] : !tile.view<1 x f32> -> f32
    %kv_blocks_f32 = arith.sitofp %kv_blocks_i32 : i32 to f32
    %share_blocks = arith.mulf %share, %kv_blocks_f32 : f32
    // NaN becomes 1.
    %at_least_one = arith.maxnumf %share_blocks, %f1 : f32
    %at_most_all = arith.minnumf %at_least_one, %kv_blocks_f32 : f32
    %share_i32 = arith.fptosi %at_most_all : f32 to i32
    scf.yield %share_i32 : i32
  } else {
    %k_i32 = arith.index_cast %k : index to i32
    scf.yield %k_i32 : i32
  }
  %has_p_values = tile.is_present %p_values : !tile.global<3 x f32>
  %p_now = scf.if %has_p_values -> (f32) {
    %p_value = tile.slice %p_values[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %mass_share = tile.load_scalar %p_value[%c0] : !tile.view<1 x f32> -> f32
    scf.yield %mass_share : f32
  } else {
    scf.yield %p : f32
  }

  // p = 1 asks for every block. Rounded sums reach 1 before the last ones; what
  // is infinite they never reach.
  %p_f64 = arith.extf %p_now : f32 to f64
  %wants_all = arith.cmpf oge, %p_f64, %d1 : f64
  %wanted_share = arith.select %wants_all, %infinite, %p_f64 : f64
  %p_rows = tile.splat %wanted_share : f64 -> !rows_f64
  %wanted_mass = arith.mulf %total, %p_rows : !rows_f64
  %k_least = arith.maxsi %k_now, %i1 : i32
  %wanted_count = tile.splat %k_least : i32 -> !rows_i32

  // The threshold, most significant bit first (adding 2^31 to the lowest integer
  // wraps to 0, which is the first candidate).
  %threshold_start = tile.splat %lowest : i32 -> !rows_i32
  %threshold = scf.for %pass = %c0 to %c32 step %c1
      iter_args(%old_threshold = %threshold_start) -> (!rows_i32) {
    %pass_i32 = arith.index_cast %pass : index to i32
    %bit_number = arith.subi %i31, %pass_i32 : i32
    %bit = arith.shli %i1, %bit_number : i32
    %bits = tile.splat %bit : i32 -> !rows_i32
    %candidate = arith.addi %old_threshold, %bits : !rows_i32
    %candidate_all = tile.expand %candidate axis 1 : !rows_i32 -> !tile_i32
    %count, %mass = scf.for %column = %c0 to %kv_blocks step %tile_columns
        iter_args(%old_count = %zeros_i32, %old_mass = %zero_rows_f64) -> (!rows_i32, !rows_f64) {
      %ordered = tile.scratch_load %keys[%column] : !tile.scratch<tile_rows, i32> -> !tile_i32
      %exponentials = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
      %above = arith.cmpi sge, %ordered, %candidate_all : !tile_i32
      %above_i32 = arith.extui %above : !tile_i1 to !tile_i32
      %tile_count = tile.reduce sum %above_i32 : !tile_i32 -> !rows_i32
      %above_mass = arith.select %above, %exponentials, %zero_tile : !tile_i1, !tile_f32
      %tile_mass = tile.reduce sum %above_mass : !tile_f32 -> !rows_f32
      %tile_mass_f64 = arith.extf %tile_mass : !rows_f32 to !rows_f64
      %new_count = arith.addi %old_count, %tile_count : !rows_i32
      %new_mass = arith.addf %old_mass, %tile_mass_f64 : !rows_f64
      scf.yield %new_count, %new_mass : !rows_i32, !rows_f64
    }
    %enough_blocks = arith.cmpi sge, %count, %wanted_count : !rows_i32
    %enough_mass = arith.cmpf oge, %mass, %wanted_mass : !rows_f64
    %enough = arith.andi %enough_blocks, %enough_mass : tensor<?xi1, #tile.sizes<tile_rows>>
    %new_threshold = arith.select %enough, %candidate, %old_threshold : tensor<?xi1, #tile.sizes<tile_rows>>, !rows_i32
    scf.yield %new_threshold : !rows_i32
  }

  // What lies above the threshold is kept whole.
  %threshold_all = tile.expand %threshold axis 1 : !rows_i32 -> !tile_i32
  %count_above, %mass_above = scf.for %column = %c0 to %kv_blocks step %tile_columns
      iter_args(%old_count = %zeros_i32, %old_mass = %zero_rows_f64) -> (!rows_i32, !rows_f64) {
    %ordered = tile.scratch_load %keys[%column] : !tile.scratch<tile_rows, i32> -> !tile_i32
    %exponentials = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
    %above = arith.cmpi sgt, %ordered, %threshold_all : !tile_i32
    %above_i32 = arith.extui %above : !tile_i1 to !tile_i32
    %tile_count = tile.reduce sum %above_i32 : !tile_i32 -> !rows_i32
    %above_mass = arith.select %above, %exponentials, %zero_tile : !tile_i1, !tile_f32
    %tile_mass = tile.reduce sum %above_mass : !tile_f32 -> !rows_f32
    %tile_mass_f64 = arith.extf %tile_mass : !rows_f32 to !rows_f64
    %new_count = arith.addi %old_count, %tile_count : !rows_i32
    %new_mass = arith.addf %old_mass, %tile_mass_f64 : !rows_f64
    scf.yield %new_count, %new_mass : !rows_i32, !rows_f64
  }

  // Of the blocks that tie at the threshold, the first ones in index order: the
  // r-th (from 1) is needed if what comes before it is not enough. Before it are
  // the blocks above and r - 1 of equal mass.
  %missing_count = arith.subi %wanted_count, %count_above : !rows_i32
  %missing_mass = arith.subf %wanted_mass, %mass_above : !rows_f64
  %missing_mass_f32 = arith.truncf %missing_mass : !rows_f64 to !rows_f32
  %missing_counts = tile.expand %missing_count axis 1 : !rows_i32 -> !tile_i32
  %missing_masses = tile.expand %missing_mass_f32 axis 1 : !rows_f32 -> !tile_f32
  %keep_first_i32 = arith.index_cast %keep_first : index to i32
  %keep_firsts = tile.splat %keep_first_i32 : i32 -> !tile_i32
  %last_column = arith.subi %tile_columns, %c1 : index
  %list_lengths, %ties_seen = scf.for %column = %c0 to %kv_blocks step %tile_columns
      iter_args(%old_lengths = %zeros_i32, %old_ties = %zeros_i32) -> (!rows_i32, !rows_i32) {
    %ordered = tile.scratch_load %keys[%column] : !tile.scratch<tile_rows, i32> -> !tile_i32
    %exponentials = tile.scratch_load %values[%column] : !tile.scratch<tile_rows, f32> -> !tile_f32
    %above = arith.cmpi sgt, %ordered, %threshold_all : !tile_i32
    %tied = arith.cmpi eq, %ordered, %threshold_all : !tile_i32
    %tied_i32 = arith.extui %tied : !tile_i1 to !tile_i32
    %ranks = tile.scan %tied_i32 carry %old_ties : !tile_i32, !rows_i32 -> !tile_i32
    %tile_ties = tile.reduce sum %tied_i32 : !tile_i32 -> !rows_i32
    %new_ties = arith.addi %old_ties, %tile_ties : !rows_i32

    %few_blocks = arith.cmpi sle, %ranks, %missing_counts : !tile_i32
    %one_tile = tile.splat %i1 : i32 -> !tile_i32
    %earlier = arith.subi %ranks, %one_tile : !tile_i32
    %earlier_f32 = arith.sitofp %earlier : !tile_i32 to !tile_f32
    %earlier_mass = arith.mulf %earlier_f32, %exponentials : !tile_f32
    %little_mass = arith.cmpf olt, %earlier_mass, %missing_masses : !tile_f32
    %needed = arith.ori %few_blocks, %little_mass : !tile_i1
    %tied_needed = arith.andi %tied, %needed : !tile_i1
    %selected = arith.ori %above, %tied_needed : !tile_i1

    // Forced blocks join, hidden ones never do.
    %column_iota = tile.iota : !columns_i32
    %column_i32 = arith.index_cast %column : index to i32
    %column_starts = tile.splat %column_i32 : i32 -> !columns_i32
    %column_numbers = arith.addi %column_starts, %column_iota : !columns_i32
    %numbers = tile.expand %column_numbers axis 0 : !columns_i32 -> !tile_i32
    %is_first = arith.cmpi slt, %numbers, %keep_firsts : !tile_i32
    %with_first = arith.ori %selected, %is_first : !tile_i1
    %is_diagonal = arith.cmpi eq, %numbers, %diagonal : !tile_i32
    %with_diagonal = arith.ori %with_first, %is_diagonal : !tile_i1
    %forced = arith.select %keep_diagonal, %with_diagonal, %with_first : !tile_i1
    %from_dense = arith.cmpi sge, %numbers, %dense_from : !tile_i32
    %to_dense = arith.cmpi slt, %numbers, %dense_to : !tile_i32
    %is_dense = arith.andi %from_dense, %to_dense : !tile_i1
    %with_dense = arith.ori %forced, %is_dense : !tile_i1
    %wanted = arith.select %has_dense, %with_dense, %forced : !tile_i1
    %is_allowed = arith.cmpi ne, %ordered, %lowest_all : !tile_i32
    %keep = arith.andi %wanted, %is_allowed : !tile_i1
    %new_lengths = tile.append_indices %keep from %column counts %old_lengths into %lists[%first_row]
        : !tile_i1, !rows_i32, !tile.view<2 x i32> -> !rows_i32
    scf.yield %new_lengths, %new_ties : !rows_i32, !rows_i32
  }
  tile.fill_tail %minus_one after %list_lengths into %lists[%first_row] : !rows_i32, !tile.view<2 x i32>
  tile.store %list_lengths, %list_counts[%first_row] : !rows_i32, !tile.view<1 x i32>
}

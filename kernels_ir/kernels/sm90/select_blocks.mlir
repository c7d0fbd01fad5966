// SPDX-License-Identifier: Apache-2.0
//
// select_blocks for Hopper: scores blocks of rows against blocks of keys and keeps
// the best; the same function as kernels/portable/select_blocks.mlir.
//
//   s[i, j] = softmax_scale pooled_q[i] · pooled_k[j]     (NaN ranks as -inf)
//   prob    = softmax of s[i, :] over the blocks that causality leaves
//
// Row i keeps the shortest prefix of its ranking (score descending, ties to the
// lower index) that has at least max(k, 1) blocks and a probability mass of at
// least p (SpargeAttention2, arXiv 2602.13515), and the forced blocks.
//
// A team (a cluster of CTAs) takes tile_rows rows. Its warps share out the key
// blocks, 16 to a warp at a time, so that pooled_k is read once for all rows, and
// send each score to the CTA that selects from its row. Then each warp selects from
// rows of its own, whose scores lie in its CTA's shared memory:
//
//   1. maximum, minimum, number, mean and variance of the scores above -inf;
//   2. the cut lies in an interval [low, high): the blocks >= high are too little,
//      those >= low enough. Three thresholds divide it into four; one pass counts
//      and weighs what lies above each (and weighs all). The first three lie about
//      where the cut of a normal distribution would, twenty blocks apart, the next
//      ones beside them where the cut lies above or below all; then the interval is
//      divided evenly. It ends with at most 32 blocks inside, after one pass or some
//      two; after sixteen, it is halved in the order of floats, of which there are
//      2^32;
//   3. a flag for each block says that it lies above the interval, another that it
//      lies inside. The blocks inside, one a lane, are ranked by comparing each with
//      each, and those needed get the first flag, too;
//   4. the numbers of the flags are the list.
//
// What is kept is what lies above the cut score, and the first `ties` of the blocks
// that lie on it (own derivation). tile_rows = team_members * member_rows, and
// flag_rows is 2 member_rows, or eight.
//
// k_values, p_values and what has_dense brings are those of kernels/portable/select_blocks.mlir.

!scratch = !tile.scratch<member_rows, f32>
!candidates = !tile.scratch<team_warps, i32>
// For each row what is kept of it, then what lies inside its interval.
!flags = !tile.scratch<flag_rows, i1>
// A run of a row.
!run = tensor<?xf32, #tile.sizes<row_tile>>
!run_i32 = tensor<?xi32, #tile.sizes<row_tile>>
!run_i1 = tensor<?xi1, #tile.sizes<row_tile>>
// One element a lane.
!lane = tensor<32xf32>
!lane_i32 = tensor<32xi32>
!lane_i1 = tensor<32xi1>
!lane_f64 = tensor<32xf64>

tile.kernel @select_blocks(%pooled_q: !tile.global<4 x f32>, %pooled_k: !tile.global<4 x f32>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %softmax_scale: f32, %k: index, %p: f32,
                           %q_len: index, %kv_len: index,
                           %k_values: !tile.global<3 x f32>, %p_values: !tile.global<3 x f32>,
                           %dense_first: index, %dense_end: index,
                           %dense_row_first: index, %dense_row_end: index,
                           %progress: !tile.global<1 x i32>, %selected: !tile.global<1 x i32>)
    parameters [head_dim, mask_block_q, mask_block_kv, causal, keep_diagonal, keep_first, has_dense,
                tile_rows, member_rows, row_tile, team_members, team_warps, flag_rows, team_ctas]
    grid %pooled_q by tile_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %i16 = arith.constant 16 : i32
  %i31 = arith.constant 31 : i32
  %all_but_sign = arith.constant 2147483647 : i32
  %minus_one = arith.constant -1 : i32
  %true = arith.constant true
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %few = arith.constant 32.0 : f32
  %quarter = arith.constant 0.25 : f32
  %half = arith.constant 0.5 : f32
  %three_quarters = arith.constant 0.75 : f32
  %smallest_share = arith.constant 1.0e-6 : f32
  %guess_blocks = arith.constant 50.13 : f32 // 20 sqrt(2 pi)
  %minus_two_ln_2 = arith.constant -1.38629436 : f32
  %half_log2_e = arith.constant 0.72134752 : f32
  %above_0 = arith.constant 2.30753 : f32
  %above_1 = arith.constant 0.27061 : f32
  %below_1 = arith.constant 0.99229 : f32
  %below_2 = arith.constant 0.04481 : f32
  %d0 = arith.constant 0.0 : f64
  %minus_inf = arith.constant 0xFF800000 : f32
  %plus_inf = arith.constant 0x7F800000 : f32
  %log2_e = arith.constant 1.44269504 : f32
  %member_rows = tile.parameter "member_rows" : index
  %row_tile = tile.parameter "row_tile" : index
  %tile_rows = tile.parameter "tile_rows" : index
  %team_warps = tile.parameter "team_warps" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %keep_diagonal = tile.parameter "keep_diagonal" : i1
  %keep_first = tile.parameter "keep_first" : index
  %has_dense = tile.parameter "has_dense" : i1
  %member, %warp = tile.team members team_members warps team_warps ctas team_ctas : index, index
  %q_blocks = tile.dim %pooled_q, 2 : !tile.global<4 x f32>
  %kv_blocks = tile.dim %pooled_k, 2 : !tile.global<4 x f32>
  %close = tile.scratch %c32 multiple %c32 : !candidates
  %scores = tile.scratch %kv_blocks multiple %row_tile : !scratch
  %flags = tile.scratch %kv_blocks multiple %row_tile : !flags
  // Where this team works: heads from the last to the first, as pool does.
  %batches = tile.dim %pooled_q, 0 : !tile.global<4 x f32>
  %q_heads = tile.dim %pooled_q, 1 : !tile.global<4 x f32>
  %kv_heads = tile.dim %pooled_k, 1 : !tile.global<4 x f32>
  %batch_from_end, %head_from_end, %tile = tile.program_id : index, index, index
  %batches_after = arith.addi %batch_from_end, %c1 : index
  %batch = arith.subi %batches, %batches_after : index
  %heads_after = arith.addi %head_from_end, %c1 : index
  %head = arith.subi %q_heads, %heads_after : index
  %first_row = arith.muli %tile, %tile_rows : index
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %kv_head = arith.divui %head, %heads_per_kv : index
  %q_view = tile.slice %pooled_q[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %k_view = tile.slice %pooled_k[%batch, %kv_head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %list_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
  // Rows that are selected, for a launch that attends to heads as they are done.
  %heads_before = arith.muli %batch, %q_heads : index
  %counted_head = arith.addi %heads_before, %head : index
  tile.launch_next
  // The pooled rows of this head of k and of its heads of q.
  %batch_groups = arith.muli %batch, %kv_heads : index
  %group = arith.addi %batch_groups, %kv_head : index
  %group_q_blocks = arith.muli %heads_per_kv, %q_blocks : index
  %group_blocks = arith.addi %group_q_blocks, %kv_blocks : index
  %head_tiles = arith.ceildivui %q_blocks, %tile_rows : index
  %group_tiles = arith.muli %heads_per_kv, %head_tiles : index
  tile.await %progress[%group] until %group_blocks by %group_tiles : !tile.global<1 x i32>

  tile.spread_dots %k_view, %q_view[%first_row] by %softmax_scale columns head_dim into %scores
      : !tile.view<2 x f32>, !tile.view<2 x f32>, !scratch

  // ---- selection: a row a warp ------------------------------------------------
  %log2_es = tile.splat %log2_e : f32 -> !run
  %zero_run = tile.splat %f0 : f32 -> !run
  %one_run = tile.splat %f1 : f32 -> !run
  %lane_zeros = tile.splat %f0 : f32 -> !lane
  %minus_infs = tile.splat %minus_inf : f32 -> !run
  %numbers = tile.iota : !run_i32
  %shift = arith.subi %kv_len, %q_len : index
  %member_first = arith.muli %member, %member_rows : index
  %own_first = arith.addi %first_row, %member_first : index
  scf.for %local = %warp to %member_rows step %team_warps {
    %row = arith.addi %own_first, %local : index
    %inside_row = arith.addi %local, %member_rows : index
    %exists = arith.cmpi slt, %row, %q_blocks : index
    scf.if %exists {
      // Causality hides the blocks behind the last key that the row's last query sees.
      %next_row = arith.addi %row, %c1 : index
      %whole_end = arith.muli %next_row, %mask_block_q : index
      %row_end = arith.minsi %whole_end, %q_len : index
      %key_end = arith.addi %row_end, %shift : index
      %key_end_low = arith.minsi %key_end, %kv_len : index
      %seen_keys = arith.maxsi %key_end_low, %c0 : index
      %seen_blocks = arith.ceildivui %seen_keys, %mask_block_kv : index
      %visible = arith.select %causal, %seen_blocks, %kv_blocks : index
      %at_least_one = arith.maxsi %seen_keys, %c1 : index
      %last_key = arith.subi %at_least_one, %c1 : index
      %diagonal = arith.divui %last_key, %mask_block_kv : index
      %visible_i32 = arith.index_cast %visible : index to i32
      %limits = tile.splat %visible_i32 : i32 -> !run_i32

      // 1. Range of the scores, and how many are above -inf. Minima are maxima
      // of what is negated.
      %run_count = arith.divui %visible, %row_tile : index
      %last_run = arith.muli %run_count, %row_tile : index
      %whole_maxima, %whole_negated, %whole_sums, %whole_squares = scf.for %column = %c0 to %last_run step %row_tile
          iter_args(%old_max = %minus_infs, %old_min = %minus_infs, %old_sum = %lane_zeros, %old_squares = %lane_zeros)
          -> (!run, !run, !lane, !lane) {
        %s = tile.row_load %scores[%local, %column] : !scratch -> !run
        %new_max = arith.maxnumf %old_max, %s : !run
        %negated = arith.negf %s : !run
        %new_min = arith.maxnumf %old_min, %negated : !run
        %new_sum = tile.add_products %s, %one_run to %old_sum : !run, !run, !lane -> !lane
        %new_squares = tile.add_products %s, %s to %old_squares : !run, !run, !lane -> !lane
        scf.yield %new_max, %new_min, %new_sum, %new_squares : !run, !run, !lane, !lane
      }
      // The last run's rest becomes -inf.
      %has_rest = arith.cmpi slt, %last_run, %visible : index
      %maxima, %negated_minima, %score_sums, %square_sums = scf.if %has_rest -> (!run, !run, !lane, !lane) {
        %s = tile.row_load %scores[%local, %last_run] : !scratch -> !run
        %start = arith.index_cast %last_run : index to i32
        %starts = tile.splat %start : i32 -> !run_i32
        %places = arith.addi %starts, %numbers : !run_i32
        %inside = arith.cmpi slt, %places, %limits : !run_i32
        %clipped = arith.select %inside, %s, %minus_infs : !run_i1, !run
        tile.row_store %clipped, %scores[%local, %last_run] : !run, !scratch
        %new_max = arith.maxnumf %whole_maxima, %clipped : !run
        %negated = arith.negf %s : !run
        %counted = arith.select %inside, %negated, %minus_infs : !run_i1, !run
        %new_min = arith.maxnumf %whole_negated, %counted : !run
        %counted_score = arith.select %inside, %s, %zero_run : !run_i1, !run
        %new_sum = tile.add_products %counted_score, %one_run to %whole_sums : !run, !run, !lane -> !lane
        %new_squares = tile.add_products %counted_score, %counted_score to %whole_squares : !run, !run, !lane -> !lane
        scf.yield %new_max, %new_min, %new_sum, %new_squares : !run, !run, !lane, !lane
      } else {
        scf.yield %whole_maxima, %whole_negated, %whole_sums, %whole_squares : !run, !run, !lane, !lane
      }
      %max = tile.total max %maxima : !run -> f32
      %negated_any = tile.total max %negated_minima : !run -> f32
      %sum_any = tile.total sum %score_sums : !lane -> f32
      %square_any = tile.total sum %square_sums : !lane -> f32
      %visible_f32 = arith.sitofp %visible_i32 : i32 to f32
      // Once more without what is -inf, where some is.
      %some_lowest = arith.cmpf oeq, %negated_any, %plus_inf : f32
      %negated_min, %finite, %score_sum, %square_sum = scf.if %some_lowest -> (f32, f32, f32, f32) {
        %some_negated, %numbers_above, %some_sums, %some_squares = scf.for %column = %c0 to %visible step %row_tile
            iter_args(%old_min = %minus_infs, %old_count = %lane_zeros, %old_sum = %lane_zeros, %old_squares = %lane_zeros)
            -> (!run, !lane, !lane, !lane) {
          %s = tile.row_load %scores[%local, %column] : !scratch -> !run
          %is_finite = arith.cmpf ogt, %s, %minus_infs : !run
          %negated = arith.negf %s : !run
          %counted = arith.select %is_finite, %negated, %minus_infs : !run_i1, !run
          %new_min = arith.maxnumf %old_min, %counted : !run
          %one = arith.select %is_finite, %one_run, %zero_run : !run_i1, !run
          %new_count = tile.add_products %one, %one_run to %old_count : !run, !run, !lane -> !lane
          %counted_score = arith.select %is_finite, %s, %zero_run : !run_i1, !run
          %new_sum = tile.add_products %counted_score, %one_run to %old_sum : !run, !run, !lane -> !lane
          %new_squares = tile.add_products %counted_score, %counted_score to %old_squares : !run, !run, !lane -> !lane
          scf.yield %new_min, %new_count, %new_sum, %new_squares : !run, !lane, !lane, !lane
        }
        %some_min = tile.total max %some_negated : !run -> f32
        %some_finite = tile.total sum %numbers_above : !lane -> f32
        %some_sum = tile.total sum %some_sums : !lane -> f32
        %some_square = tile.total sum %some_squares : !lane -> f32
        scf.yield %some_min, %some_finite, %some_sum, %some_square : f32, f32, f32, f32
      } else {
        scf.yield %negated_any, %visible_f32, %sum_any, %square_any : f32, f32, f32, f32
      }
      %min = arith.subf %f0, %negated_min : f32
      %has_scores = arith.cmpf ogt, %max, %minus_inf : f32
      %reference = arith.select %has_scores, %max, %f0 : f32
      %scaled_reference = arith.mulf %reference, %log2_e : f32
      %offset = arith.negf %scaled_reference : f32
      %offsets = tile.splat %offset : f32 -> !run
      // This head's k and p, read here so that they take no registers before.
      %has_k_values = tile.is_present %k_values : !tile.global<3 x f32>
      %k_now = scf.if %has_k_values -> (i32) {
        %k_value = tile.slice %k_values[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %k_share = tile.load_scalar %k_value[%c0] : !tile.view<1 x f32> -> f32
        %kv_blocks_i32 = arith.index_cast %kv_blocks : index to i32
        %kv_blocks_f32 = arith.sitofp %kv_blocks_i32 : i32 to f32
        %share_blocks = arith.mulf %k_share, %kv_blocks_f32 : f32
        // NaN becomes 1.
        %share_or_one = arith.maxnumf %share_blocks, %f1 : f32
        %at_most_all = arith.minnumf %share_or_one, %kv_blocks_f32 : f32
        %k_of_share = arith.fptosi %at_most_all : f32 to i32
        scf.yield %k_of_share : i32
      } else {
        %k_of_call = arith.index_cast %k : index to i32
        scf.yield %k_of_call : i32
      }
      %has_p_values = tile.is_present %p_values : !tile.global<3 x f32>
      %p_now = scf.if %has_p_values -> (f32) {
        %p_value = tile.slice %p_values[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %p_of_head = tile.load_scalar %p_value[%c0] : !tile.view<1 x f32> -> f32
        scf.yield %p_of_head : f32
      } else {
        scf.yield %p : f32
      }
      %has_p = arith.cmpf ogt, %p_now, %f0 : f32
      %p_f64 = arith.extf %p_now : f32 to f64
      %wanted_i32 = arith.maxsi %k_now, %i1 : i32
      %wanted = arith.sitofp %wanted_i32 : i32 to f32
      // p = 1 asks for every block (rounded sums reach 1 before); so does NaN, as p
      // or, of an infinite score, as the sum of exponentials.
      %takes_row = arith.cmpi sge, %wanted_i32, %visible_i32 : i32
      %wants_all = arith.cmpf oge, %p_now, %f1 : f32
      %p_is_nan = arith.cmpf uno, %p_now, %p_now : f32
      %is_infinite = arith.cmpf oeq, %max, %plus_inf : f32
      %never_enough = arith.ori %p_is_nan, %is_infinite : i1
      %all_by_mass = arith.ori %wants_all, %never_enough : i1
      %all = arith.ori %takes_row, %all_by_mass : i1
      // More blocks than have a score: the first ones without, too.
      %beyond_scores = arith.cmpf olt, %finite, %wanted : f32
      %finite_i32 = arith.fptosi %finite : f32 to i32
      %cut, %ties, %unflagged = scf.if %all -> (f32, i32, i1) {
        %without_score = arith.subi %visible_i32, %finite_i32 : i32
        scf.yield %minus_inf, %without_score, %true : f32, i32, i1
      } else {
        %cut_0, %ties_0, %unflagged_0 = scf.if %beyond_scores -> (f32, i32, i1) {
          %missing = arith.subi %wanted_i32, %finite_i32 : i32
          scf.yield %minus_inf, %missing, %true : f32, i32, i1
        } else {
          // 2. The first thresholds. z(f), the point beyond which a normal
          // distribution has the share f, is about
          //   t - (2.30753 + 0.27061 t) / (1 + 0.99229 t + 0.04481 t²),  t = sqrt(-2 ln f)
          // for f <= 1/2 (Abramowitz and Stegun 26.2.22), and -z(1 - f) beyond. The
          // share of mass is p above z(p) + sigma, since weighting by e^s moves a
          // normal distribution by its variance. Lane 0 looks at k, lane 1 at p.
          %finites = tile.splat %finite : f32 -> !lane
          %finite_logs = math.log2 %finites : !lane
          %negated_logs = arith.negf %finite_logs : !lane
          %inverses = math.exp2 %negated_logs : !lane
          %inverse = tile.pick %inverses[%c0] : !lane -> f32
          %mean = arith.mulf %score_sum, %inverse : f32
          %mean_square = arith.mulf %square_sum, %inverse : f32
          %negated_mean = arith.negf %mean : f32
          %squared_mean = arith.mulf %negated_mean, %mean : f32
          %variance = arith.addf %mean_square, %squared_mean : f32
          %share_k = arith.mulf %wanted, %inverse : f32
          %lane_number = tile.iota : !lane_i32
          %lane_i1s = tile.splat %i1 : i32 -> !lane_i32
          %is_for_p = arith.cmpi eq, %lane_number, %lane_i1s : !lane_i32
          %shares_k = tile.splat %share_k : f32 -> !lane
          %shares_p = tile.splat %p_now : f32 -> !lane
          %shares_any = arith.select %is_for_p, %shares_p, %shares_k : !lane_i1, !lane
          %least_share = tile.splat %smallest_share : f32 -> !lane
          %all_shares = tile.splat %f1 : f32 -> !lane
          %other_shares = arith.subf %all_shares, %shares_any : !lane
          %smaller_shares = arith.minnumf %shares_any, %other_shares : !lane
          %shares = arith.maxnumf %smaller_shares, %least_share : !lane
          %share_logs = math.log2 %shares : !lane
          %minus_two_ln_2s = tile.splat %minus_two_ln_2 : f32 -> !lane
          %t_squares = arith.mulf %share_logs, %minus_two_ln_2s : !lane
          %t_square_logs = math.log2 %t_squares : !lane
          %halves = tile.splat %half : f32 -> !lane
          %t_logs = arith.mulf %t_square_logs, %halves : !lane
          %t = math.exp2 %t_logs : !lane
          %top_0 = tile.splat %above_0 : f32 -> !lane
          %top_1 = tile.splat %above_1 : f32 -> !lane
          %bottom_1 = tile.splat %below_1 : f32 -> !lane
          %bottom_2 = tile.splat %below_2 : f32 -> !lane
          %above_bar = math.fma %t, %top_1, %top_0 : !lane
          %below_inner = math.fma %t, %bottom_2, %bottom_1 : !lane
          %below_bar = math.fma %t, %below_inner, %all_shares : !lane
          %below_logs = math.log2 %below_bar : !lane
          %negated_below = arith.negf %below_logs : !lane
          %below_inverse = math.exp2 %negated_below : !lane
          %ratio = arith.mulf %above_bar, %below_inverse : !lane
          %upper_z = arith.subf %t, %ratio : !lane
          %lower_z = arith.subf %ratio, %t : !lane
          %is_upper = arith.cmpf ole, %shares_any, %other_shares : !lane
          %z = arith.select %is_upper, %upper_z, %lower_z : !lane_i1, !lane
          %variances = tile.splat %variance : f32 -> !lane
          %variance_logs = math.log2 %variances : !lane
          %sigma_logs = arith.mulf %variance_logs, %halves : !lane
          %sigmas = math.exp2 %sigma_logs : !lane
          %moved_z = arith.addf %z, %sigmas : !lane
          %z_cut = arith.select %is_for_p, %moved_z, %z : !lane_i1, !lane
          %z_k = tile.pick %z_cut[%c0] : !lane -> f32
          %z_p = tile.pick %z_cut[%c1] : !lane -> f32
          %z_lower = arith.minnumf %z_k, %z_p : f32
          %z_guess = arith.select %has_p, %z_lower, %z_k : f32
          %sigma = tile.pick %sigmas[%c0] : !lane -> f32
          // Twenty blocks: 20 / (n density(z)) sigmas, at most one.
          %z_guesses = tile.splat %z_guess : f32 -> !lane
          %z_squares = arith.mulf %z_guesses, %z_guesses : !lane
          %half_log2_es = tile.splat %half_log2_e : f32 -> !lane
          %density_logs = arith.mulf %z_squares, %half_log2_es : !lane
          %inverse_densities = math.exp2 %density_logs : !lane
          %inverse_density = tile.pick %inverse_densities[%c0] : !lane -> f32
          %blocks_apart = arith.mulf %guess_blocks, %inverse : f32
          %sigmas_wanted = arith.mulf %blocks_apart, %inverse_density : f32
          %sigmas_apart = arith.minnumf %sigmas_wanted, %f1 : f32
          %guess_apart = arith.mulf %sigmas_apart, %sigma : f32
          %from_mean = arith.mulf %z_guess, %sigma : f32
          %guess_2 = arith.addf %mean, %from_mean : f32
          %guess_1 = arith.subf %guess_2, %guess_apart : f32
          %guess_3 = arith.addf %guess_2, %guess_apart : f32
          %three_apart = arith.mulf %guess_apart, %three : f32
          %minus_three_apart = arith.negf %three_apart : f32

          // The interval. Floats in their order are integers: all bits but the
          // sign are flipped in negative ones.
          %max_bits = arith.bitcast %max : f32 to i32
          %max_sign = arith.shrsi %max_bits, %i31 : i32
          %max_flip = arith.andi %max_sign, %all_but_sign : i32
          %max_order = arith.xori %max_bits, %max_flip : i32
          %above_order = arith.addi %max_order, %i1 : i32
          %above_sign = arith.shrsi %above_order, %i31 : i32
          %above_flip = arith.andi %above_sign, %all_but_sign : i32
          %above_bits = arith.xori %above_order, %above_flip : i32
          %above_max = arith.bitcast %above_bits : i32 to f32
          %low, %high, %count_low, %count_high, %mass_high, %total, %end:3 = scf.while
              (%low_0 = %min, %high_0 = %above_max, %count_low_0 = %finite, %count_high_0 = %f0,
               %mass_high_0 = %f0, %total_0 = %f0, %pass_0 = %i0) : (f32, f32, f32, f32, f32, f32, i32)
              -> (f32, f32, f32, f32, f32, f32, i32, i32, i32) {
            %between = arith.subf %count_low_0, %count_high_0 : f32
            %many = arith.cmpf ogt, %between, %few : f32
            %low_bits = arith.bitcast %low_0 : f32 to i32
            %low_sign = arith.shrsi %low_bits, %i31 : i32
            %low_flip = arith.andi %low_sign, %all_but_sign : i32
            %low_order = arith.xori %low_bits, %low_flip : i32
            %high_bits = arith.bitcast %high_0 : f32 to i32
            %high_sign = arith.shrsi %high_bits, %i31 : i32
            %high_flip = arith.andi %high_sign, %all_but_sign : i32
            %high_order = arith.xori %high_bits, %high_flip : i32
            %after_low = arith.addi %low_order, %i1 : i32
            %divisible = arith.cmpi slt, %after_low, %high_order : i32
            %unfinished = arith.andi %many, %divisible : i1
            // The first pass sums all exponentials, and comes in any case.
            %none_yet = arith.cmpi eq, %pass_0, %i0 : i32
            %more = arith.ori %unfinished, %none_yet : i1
            scf.condition(%more) %low_0, %high_0, %count_low_0, %count_high_0, %mass_high_0, %total_0, %pass_0, %low_order, %high_order
                : f32, f32, f32, f32, f32, f32, i32, i32, i32
          } do {
          ^divide(%low_1: f32, %high_1: f32, %count_low_1: f32, %count_high_1: f32, %mass_high_1: f32, %total_1: f32,
                  %pass_1: i32, %low_order: i32, %high_order: i32):
            // Quarters of the values, or, where those are not inside the interval or
            // have not ended the search, halves of the order.
            %span = arith.subf %high_1, %low_1 : f32
            %part_1 = arith.mulf %span, %quarter : f32
            %quarter_1 = arith.addf %low_1, %part_1 : f32
            %part_2 = arith.mulf %span, %half : f32
            %quarter_2 = arith.addf %low_1, %part_2 : f32
            %part_3 = arith.mulf %span, %three_quarters : f32
            %quarter_3 = arith.addf %low_1, %part_3 : f32
            // What the first three have missed, they have hardly missed by far.
            %may_guess = arith.cmpi slt, %pass_1, %i2 : i32
            %lies_above = arith.cmpf oeq, %low_1, %guess_3 : f32
            %lies_below = arith.cmpf oeq, %high_1, %guess_1 : f32
            %up_or_not = arith.select %lies_above, %three_apart, %f0 : f32
            %beside = arith.select %lies_below, %minus_three_apart, %up_or_not : f32
            %middle_guess = arith.addf %guess_2, %beside : f32
            %low_guess = arith.subf %middle_guess, %guess_apart : f32
            %high_guess = arith.addf %middle_guess, %guess_apart : f32
            %guess_above_low = arith.cmpf olt, %low_1, %low_guess : f32
            %guess_below_high = arith.cmpf olt, %high_guess, %high_1 : f32
            %guess_inside = arith.andi %guess_above_low, %guess_below_high : i1
            %guesses = arith.andi %may_guess, %guess_inside : i1
            %by_value_1 = arith.select %guesses, %low_guess, %quarter_1 : f32
            %by_value_2 = arith.select %guesses, %middle_guess, %quarter_2 : f32
            %by_value_3 = arith.select %guesses, %high_guess, %quarter_3 : f32
            // The interval gets smaller whatever lies above each.
            %above_low = arith.cmpf olt, %low_1, %by_value_1 : f32
            %below_high = arith.cmpf olt, %by_value_3, %high_1 : f32
            %shrinks = arith.andi %above_low, %below_high : i1
            %early = arith.cmpi slt, %pass_1, %i16 : i32
            %by_value = arith.andi %shrinks, %early : i1
            %distance = arith.subi %high_order, %low_order : i32
            %half_distance = arith.shrui %distance, %i1 : i32
            %middle = arith.addi %low_order, %half_distance : i32
            %middle_sign = arith.shrsi %middle, %i31 : i32
            %middle_flip = arith.andi %middle_sign, %all_but_sign : i32
            %middle_bits = arith.xori %middle, %middle_flip : i32
            %by_order = arith.bitcast %middle_bits : i32 to f32
            %t1 = arith.select %by_value, %by_value_1, %by_order : f32
            %t2 = arith.select %by_value, %by_value_2, %by_order : f32
            %t3 = arith.select %by_value, %by_value_3, %by_order : f32
            %t1s = tile.splat %t1 : f32 -> !run
            %t2s = tile.splat %t2 : f32 -> !run
            %t3s = tile.splat %t3 : f32 -> !run
            // Count and weigh what lies above each.
            %n1, %n2, %n3, %w1, %w2, %w3, %parts = scf.for %column = %c0 to %visible step %row_tile
                iter_args(%old_n1 = %lane_zeros, %old_n2 = %lane_zeros, %old_n3 = %lane_zeros,
                          %old_w1 = %lane_zeros, %old_w2 = %lane_zeros, %old_w3 = %lane_zeros, %old_part = %lane_zeros)
                -> (!lane, !lane, !lane, !lane, !lane, !lane, !lane) {
              %s = tile.row_load %scores[%local, %column] : !scratch -> !run
              %exponents = math.fma %s, %log2_es, %offsets : !run
              %e = math.exp2 %exponents : !run
              %a1 = arith.cmpf oge, %s, %t1s : !run
              %a2 = arith.cmpf oge, %s, %t2s : !run
              %a3 = arith.cmpf oge, %s, %t3s : !run
              %one_1 = arith.select %a1, %one_run, %zero_run : !run_i1, !run
              %one_2 = arith.select %a2, %one_run, %zero_run : !run_i1, !run
              %one_3 = arith.select %a3, %one_run, %zero_run : !run_i1, !run
              %new_n1 = tile.add_products %one_1, %one_run to %old_n1 : !run, !run, !lane -> !lane
              %new_n2 = tile.add_products %one_2, %one_run to %old_n2 : !run, !run, !lane -> !lane
              %new_n3 = tile.add_products %one_3, %one_run to %old_n3 : !run, !run, !lane -> !lane
              %new_w1 = tile.add_products %one_1, %e to %old_w1 : !run, !run, !lane -> !lane
              %new_w2 = tile.add_products %one_2, %e to %old_w2 : !run, !run, !lane -> !lane
              %new_w3 = tile.add_products %one_3, %e to %old_w3 : !run, !run, !lane -> !lane
              %new_part = tile.add_products %e, %one_run to %old_part : !run, !run, !lane -> !lane
              scf.yield %new_n1, %new_n2, %new_n3, %new_w1, %new_w2, %new_w3, %new_part
                  : !lane, !lane, !lane, !lane, !lane, !lane, !lane
            }
            %c_1 = tile.total sum %n1 : !lane -> f32
            %c_2 = tile.total sum %n2 : !lane -> f32
            %c_3 = tile.total sum %n3 : !lane -> f32
            %m_1 = tile.total sum %w1 : !lane -> f32
            %m_2 = tile.total sum %w2 : !lane -> f32
            %m_3 = tile.total sum %w3 : !lane -> f32
            %total_now = tile.total sum %parts : !lane -> f32
            %total_f64 = arith.extf %total_now : f32 to f64
            %mass = arith.mulf %total_f64, %p_f64 : f64
            %m_1_f64 = arith.extf %m_1 : f32 to f64
            %m_2_f64 = arith.extf %m_2 : f32 to f64
            %m_3_f64 = arith.extf %m_3 : f32 to f64
            %count_1 = arith.cmpf oge, %c_1, %wanted : f32
            %count_2 = arith.cmpf oge, %c_2, %wanted : f32
            %count_3 = arith.cmpf oge, %c_3, %wanted : f32
            %mass_1 = arith.cmpf oge, %m_1_f64, %mass : f64
            %mass_2 = arith.cmpf oge, %m_2_f64, %mass : f64
            %mass_3 = arith.cmpf oge, %m_3_f64, %mass : f64
            %e1 = arith.andi %count_1, %mass_1 : i1
            %e2 = arith.andi %count_2, %mass_2 : i1
            %e3 = arith.andi %count_3, %mass_3 : i1
            // The highest threshold with enough is the new low end,
            %low_a = arith.select %e1, %t1, %low_1 : f32
            %low_b = arith.select %e2, %t2, %low_a : f32
            %low_c = arith.select %e3, %t3, %low_b : f32
            %count_low_a = arith.select %e1, %c_1, %count_low_1 : f32
            %count_low_b = arith.select %e2, %c_2, %count_low_a : f32
            %count_low_c = arith.select %e3, %c_3, %count_low_b : f32
            // the lowest without the new high end.
            %high_a = arith.select %e3, %high_1, %t3 : f32
            %high_b = arith.select %e2, %high_a, %t2 : f32
            %high_c = arith.select %e1, %high_b, %t1 : f32
            %count_high_a = arith.select %e3, %count_high_1, %c_3 : f32
            %count_high_b = arith.select %e2, %count_high_a, %c_2 : f32
            %count_high_c = arith.select %e1, %count_high_b, %c_1 : f32
            %mass_high_a = arith.select %e3, %mass_high_1, %m_3 : f32
            %mass_high_b = arith.select %e2, %mass_high_a, %m_2 : f32
            %mass_high_c = arith.select %e1, %mass_high_b, %m_1 : f32
            %pass_next = arith.addi %pass_1, %i1 : i32
            scf.yield %low_c, %high_c, %count_low_c, %count_high_c, %mass_high_c, %total_now, %pass_next
                : f32, f32, f32, f32, f32, f32, i32
          }

          %mass_high_f64 = arith.extf %mass_high : f32 to f64
          %total_f64 = arith.extf %total : f32 to f64
          %mass = arith.mulf %total_f64, %p_f64 : f64
          %between = arith.subf %count_low, %count_high : f32
          %are_few = arith.cmpf ole, %between, %few : f32
          %are_many = arith.cmpf ogt, %between, %few : f32
          %cut_1, %ties_1 = scf.if %are_few -> (f32, i32) {
            // 3. Flags, and those inside one a lane, in the order of their numbers.
            %lows = tile.splat %low : f32 -> !run
            %highs = tile.splat %high : f32 -> !run
            %all_true = tile.splat %true : i1 -> !run_i1
            scf.for %column = %c0 to %visible step %row_tile {
              %s = tile.row_load %scores[%local, %column] : !scratch -> !run
              %is_above = arith.cmpf oge, %s, %highs : !run
              %not_below = arith.cmpf oge, %s, %lows : !run
              %not_above = arith.xori %is_above, %all_true : !run_i1
              %is_inside = arith.andi %not_below, %not_above : !run_i1
              tile.row_store %is_above, %flags[%local, %column] : !run_i1, !flags
              tile.row_store %is_inside, %flags[%inside_row, %column] : !run_i1, !flags
            }
            %found = tile.row_list_true %flags[%inside_row] to %visible into %close[%warp] : !flags, !candidates
            %lane = tile.iota : !lane_i32
            %founds = tile.splat %found : i32 -> !lane_i32
            %is_one = arith.cmpi slt, %lane, %founds : !lane_i32
            %listed = tile.row_load %close[%warp, %c0] : !candidates -> !lane_i32
            %none_listed = tile.splat %i0 : i32 -> !lane_i32
            %candidates = arith.select %is_one, %listed, %none_listed : !lane_i1, !lane_i32
            %stored = tile.row_gather %scores[%local] at %candidates : !scratch, !lane_i32 -> !lane
            %lane_lowest = tile.splat %minus_inf : f32 -> !lane
            %candidate = arith.select %is_one, %stored, %lane_lowest : !lane_i1, !lane
            %lane_log2_e = tile.splat %log2_e : f32 -> !lane
            %lane_offset = tile.splat %offset : f32 -> !lane
            %exponent = math.fma %candidate, %lane_log2_e, %lane_offset : !lane
            %weight = math.exp2 %exponent : !lane
            %lane_zero = tile.splat %f0 : f32 -> !lane
            %lane_one = tile.splat %f1 : f32 -> !lane
            // What comes before one is not below it, or, behind it, not below the next
            // float, whose bits are one more or, for negative floats, less.
            %candidate_bits = arith.bitcast %candidate : !lane to !lane_i32
            %i31s = tile.splat %i31 : i32 -> !lane_i32
            %candidate_signs = arith.shrsi %candidate_bits, %i31s : !lane_i32
            %upward = arith.ori %candidate_signs, %lane_i1s : !lane_i32
            %next_bits = arith.addi %candidate_bits, %upward : !lane_i32
            %next_above = arith.bitcast %next_bits : !lane_i32 to !lane
            // Eight at a time; those beyond the last are above none.
            %found_index = arith.index_cast %found : i32 to index
            %better, %better_mass = scf.for %eight = %c0 to %found_index step %c8
                iter_args(%eight_count = %lane_zero, %eight_mass = %lane_zero) -> (!lane, !lane) {
              %better_8, %better_mass_8 = scf.for %in_eight = %c0 to %c8 step %c1
                  iter_args(%old_count = %eight_count, %old_mass = %eight_mass) -> (!lane, !lane) {
                %other = arith.addi %eight, %in_eight : index
                %s = tile.pick %candidate[%other] : !lane -> f32
                %w = tile.pick %weight[%other] : !lane -> f32
                %ss = tile.splat %s : f32 -> !lane
                %ws = tile.splat %w : f32 -> !lane
                %other_i32 = arith.index_cast %other : index to i32
                %others = tile.splat %other_i32 : i32 -> !lane_i32
                %is_earlier = arith.cmpi slt, %others, %lane : !lane_i32
                %least_better = arith.select %is_earlier, %candidate, %next_above : !lane_i1, !lane
                %is_better = arith.cmpf oge, %ss, %least_better : !lane
                %one = arith.select %is_better, %lane_one, %lane_zero : !lane_i1, !lane
                %new_count = arith.addf %old_count, %one : !lane
                %new_mass = math.fma %one, %ws, %old_mass : !lane
                scf.yield %new_count, %new_mass : !lane, !lane
              }
              scf.yield %better_8, %better_mass_8 : !lane, !lane
            }
            // Needed: what comes before is not enough.
            %count_highs = tile.splat %count_high : f32 -> !lane
            %count_before = arith.addf %better, %count_highs : !lane
            %wanteds = tile.splat %wanted : f32 -> !lane
            %few_before = arith.cmpf olt, %count_before, %wanteds : !lane
            %better_wide = arith.extf %better_mass : !lane to !lane_f64
            %mass_highs = tile.splat %mass_high_f64 : f64 -> !lane_f64
            %mass_before = arith.addf %better_wide, %mass_highs : !lane_f64
            %masses = tile.splat %mass : f64 -> !lane_f64
            %light_before = arith.cmpf olt, %mass_before, %masses : !lane_f64
            %too_little = arith.ori %few_before, %light_before : !lane_i1
            %needed = arith.andi %too_little, %is_one : !lane_i1
            tile.set_true %candidates where %needed into %flags[%local] : !lane_i32, !lane_i1, !flags
            scf.yield %low, %i0 : f32, i32
          } else {
            // More than 32 equal scores: the r-th is needed if r - 1 are too few.
            %exponent_scaled = arith.mulf %low, %log2_e : f32
            %exponent = arith.addf %exponent_scaled, %offset : f32
            %exponents = tile.splat %exponent : f32 -> !lane
            %weights = math.exp2 %exponents : !lane
            %weight = tile.pick %weights[%c0] : !lane -> f32
            %missing_count_f32 = arith.subf %wanted, %count_high : f32
            %missing_count = arith.fptosi %missing_count_f32 : f32 to i32
            %missing_mass = arith.subf %mass, %mass_high_f64 : f64
            %weight_f64 = arith.extf %weight : f32 to f64
            %share = arith.divf %missing_mass, %weight_f64 : f64
            %share_whole_i32 = arith.fptosi %share : f64 to i32
            %share_whole = arith.sitofp %share_whole_i32 : i32 to f64
            %has_part = arith.cmpf ogt, %share, %share_whole : f64
            %part = arith.extui %has_part : i1 to i32
            %by_mass = arith.addi %share_whole_i32, %part : i32
            %needs_mass = arith.cmpf ogt, %missing_mass, %d0 : f64
            %mass_ties = arith.select %needs_mass, %by_mass, %i0 : i32
            %ties_2 = arith.maxsi %missing_count, %mass_ties : i32
            scf.yield %low, %ties_2 : f32, i32
          }
          scf.yield %cut_1, %ties_1, %are_many : f32, i32, i1
        }
        scf.yield %cut_0, %ties_0, %unflagged_0 : f32, i32, i1
      }

      // What lies above the cut, and the first `ties` on it. What is -inf behind the
      // row's end comes after all of `ties`.
      scf.if %unflagged {
        %cuts = tile.splat %cut : f32 -> !run
        %ties_all = tile.splat %ties : i32 -> !run_i32
        %ties_seen = scf.for %column = %c0 to %visible step %row_tile iter_args(%old_ties = %i0) -> (i32) {
          %s = tile.row_load %scores[%local, %column] : !scratch -> !run
          %above = arith.cmpf ogt, %s, %cuts : !run
          %tied = arith.cmpf oeq, %s, %cuts : !run
          %in_run = tile.rank %tied : !run_i1 -> !run_i32
          %ones = arith.extui %tied : !run_i1 to !run_i32
          %here = tile.total sum %ones : !run_i32 -> i32
          %olds = tile.splat %old_ties : i32 -> !run_i32
          %ranks = arith.addi %in_run, %olds : !run_i32
          %is_early = arith.cmpi slt, %ranks, %ties_all : !run_i32
          %early_ties = arith.andi %tied, %is_early : !run_i1
          %is_selected = arith.ori %above, %early_ties : !run_i1
          tile.row_store %is_selected, %flags[%local, %column] : !run_i1, !flags
          %sum = arith.addi %old_ties, %here : i32
          scf.yield %sum : i32
        }
      }

      // What is forced: the first blocks, the diagonal, and with has_dense the call's
      // key blocks, or all in the call's rows.
      %has_first = arith.cmpi ne, %keep_first, %c0 : index
      scf.if %has_first {
        %first_visible = arith.minsi %keep_first, %visible : index
        tile.set_run_true %flags[%local, %c0 to %first_visible] : !flags
      }
      scf.if %keep_diagonal {
        %diagonal_end = arith.addi %diagonal, %c1 : index
        tile.set_run_true %flags[%local, %diagonal to %diagonal_end] : !flags
      }
      scf.if %has_dense {
        %from_dense_row = arith.cmpi sge, %row, %dense_row_first : index
        %to_dense_row = arith.cmpi slt, %row, %dense_row_end : index
        %is_dense_row = arith.andi %from_dense_row, %to_dense_row : i1
        %dense_from = arith.select %is_dense_row, %c0, %dense_first : index
        %dense_to_end = arith.select %is_dense_row, %kv_blocks, %dense_end : index
        %dense_to = arith.minsi %dense_to_end, %visible : index
        tile.set_run_true %flags[%local, %dense_from to %dense_to] : !flags
      }

      // 4. The list.
      %list = tile.slice %indices[%batch, %head, %row] : !tile.global<4 x i32> -> !tile.view<1 x i32>
      %length = tile.list_true %flags[%local] to %visible into %list : !flags, !tile.view<1 x i32>
      %length_index = arith.index_cast %length : i32 to index
      tile.fill_rest %minus_one into %list[%length_index] : i32, !tile.view<1 x i32>
      tile.store_scalar %length, %list_counts[%row] : i32, !tile.view<1 x i32>
      tile.signal %selected[%counted_head] by %c1 : !tile.global<1 x i32>
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// pool for Hopper: the means of the blocks of q and of k, over the tokens they
// really have; the same function as kernels/portable/pool.mlir.
//
// A stream: each warp takes a few neighbouring blocks, pool_loads 16-byte loads of a
// lane under way at a time. Fewer warps with more of them end a head earlier, since
// fewer heads are under way. Sums and result are float32 (SpargeAttention2, arXiv
// 2602.13515, pools q and k this way before scoring blocks).
//
// Memory does not serve all warps evenly, so that each asks for its next part where
// there are few for each (pool_draws), and they end together: by key_tickets, since
// attention, which draws its rows by tickets, may start beside the last heads.
//
// Heads of k, each with its heads of q, from the last to the first: what was written
// or read last before is likeliest still in the second-level cache, and what reads
// the first heads next finds them there. progress[batch · kv_heads + kv_head] counts
// the blocks done, for a launch that starts on a head before the others are pooled.
//
// split_means: the means as select_blocks multiplies them (tile.store_split), for
// which each head has room; else as float32.
//
// q_blocks_together, k_blocks_together: blocks of a warp at a time. pool_grid_rows:
// so few that CTAs fill the device however short q is.

!elem = !tile.element<"elem">
!mean = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @pool(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                  %pooled_q: !tile.global<4 x f32>, %pooled_k: !tile.global<4 x f32>,
                  %progress: !tile.global<1 x i32>, %key_tickets: !tile.global<1 x i32>)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, q_blocks_together, k_blocks_together,
                pool_grid_rows, pool_warps, pool_ctas, pool_loads, pool_draws, split_means]
    grid %q by pool_grid_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %q_together = tile.parameter "q_blocks_together" : index
  %k_together = tile.parameter "k_blocks_together" : index
  %pool_warps = tile.parameter "pool_warps" : index
  %is_split = tile.parameter "split_means" : i1
  %member, %warp = tile.team members 1 warps pool_warps ctas pool_ctas : index, index
  // Whatever follows reads what this launch writes, and waits for it; a signal says
  // that what came before has ended as well.
  tile.launch_next
  tile.launch_wait
  %cta, %programs, %ctas = tile.programs : index, index, index
  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  %q_blocks = tile.dim %pooled_q, 2 : !tile.global<4 x f32>
  %kv_blocks = tile.dim %pooled_k, 2 : !tile.global<4 x f32>
  %batches = tile.dim %q, 0 : !tile.global<4 x !elem>
  %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %k_parts = arith.ceildivui %kv_blocks, %k_together : index
  %q_parts = arith.ceildivui %q_blocks, %q_together : index
  %group_q_parts = arith.muli %q_parts, %heads_per_kv : index
  %group_parts = arith.addi %k_parts, %group_q_parts : index
  %groups = arith.muli %batches, %kv_heads : index
  %parts = arith.muli %groups, %group_parts : index
  %last_group = arith.subi %groups, %c1 : index
  %first_worker = arith.muli %cta, %pool_warps : index
  %worker = arith.addi %first_worker, %warp : index
  %workers = arith.muli %ctas, %pool_warps : index
  scf.while (%now = %worker) : (index) -> (index) {
    %is_part = arith.cmpi slt, %now, %parts : index
    scf.condition(%is_part) %now : index
  } do {
  ^part(%part: index):
    %from_end = arith.divui %part, %group_parts : index
    %group = arith.subi %last_group, %from_end : index
    %group_start = arith.muli %from_end, %group_parts : index
    %in_group = arith.subi %part, %group_start : index
    %batch = arith.divui %group, %kv_heads : index
    %batch_start = arith.muli %batch, %kv_heads : index
    %kv_head = arith.subi %group, %batch_start : index
    %is_k = arith.cmpi slt, %in_group, %k_parts : index
    %done = scf.if %is_k -> (index) {
      %k_rows = tile.slice %k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
      %k_means = tile.slice %pooled_k[%batch, %kv_head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
      %k_first = arith.muli %in_group, %k_together : index
      %k_whole = arith.addi %k_first, %k_together : index
      %k_end = arith.minsi %k_whole, %kv_blocks : index
      scf.for %block = %k_first to %k_end step %c1 {
        %first = arith.muli %block, %mask_block_kv : index
        %whole_end = arith.addi %first, %mask_block_kv : index
        %end = arith.minsi %whole_end, %kv_len : index
        %sum = tile.sum_rows %k_rows[%first to %end] loads pool_loads : !tile.view<2 x !elem> -> !mean
        %count = arith.subi %end, %first : index
        %count_i32 = arith.index_cast %count : index to i32
        %count_f32 = arith.sitofp %count_i32 : i32 to f32
        %divisor = tile.splat %count_f32 : f32 -> !mean
        %mean = arith.divf %sum, %divisor : !mean
        scf.if %is_split {
          tile.store_split %mean, %k_means[%block] : !mean, !tile.view<2 x f32>
        } else {
          tile.store %mean, %k_means[%block, %c0] : !mean, !tile.view<2 x f32>
        }
      }
      %k_done = arith.subi %k_end, %k_first : index
      scf.yield %k_done : index
    } else {
      %q_part = arith.subi %in_group, %k_parts : index
      %in_heads = arith.divui %q_part, %q_parts : index
      %head_start = arith.muli %in_heads, %q_parts : index
      %in_head = arith.subi %q_part, %head_start : index
      %first_head = arith.muli %kv_head, %heads_per_kv : index
      %q_head = arith.addi %first_head, %in_heads : index
      %q_rows = tile.slice %q[%batch, %q_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
      %q_means = tile.slice %pooled_q[%batch, %q_head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
      %q_first = arith.muli %in_head, %q_together : index
      %q_whole = arith.addi %q_first, %q_together : index
      %q_end = arith.minsi %q_whole, %q_blocks : index
      scf.for %block = %q_first to %q_end step %c1 {
        %first = arith.muli %block, %mask_block_q : index
        %whole_end = arith.addi %first, %mask_block_q : index
        %end = arith.minsi %whole_end, %q_len : index
        %sum = tile.sum_rows %q_rows[%first to %end] loads pool_loads : !tile.view<2 x !elem> -> !mean
        %count = arith.subi %end, %first : index
        %count_i32 = arith.index_cast %count : index to i32
        %count_f32 = arith.sitofp %count_i32 : i32 to f32
        %divisor = tile.splat %count_f32 : f32 -> !mean
        %mean = arith.divf %sum, %divisor : !mean
        scf.if %is_split {
          tile.store_split %mean, %q_means[%block] : !mean, !tile.view<2 x f32>
        } else {
          tile.store %mean, %q_means[%block, %c0] : !mean, !tile.view<2 x f32>
        }
      }
      %q_done = arith.subi %q_end, %q_first : index
      scf.yield %q_done : index
    }
    tile.signal %progress[%group] by %done : !tile.global<1 x i32>
    %next = tile.next_part %part of %parts step %workers counted by %key_tickets draws pool_draws
        : !tile.global<1 x i32> -> index
    scf.yield %next : index
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// pool: the means of the blocks of q and of k, over the tokens they really have.
//
//   pooled[b, h, i, :] = mean of x[b, h, t, :] over t in block i, t < length
//
// A program takes one block of q, and the blocks of k of its batch are shared out
// among the batch's programs. Sums and result are float32 (SpargeAttention2,
// arXiv 2602.13515, pools q and k this way before scoring blocks).

!elem = !tile.element<"elem">
!q_block = tensor<?x?xf32, #tile.sizes<head_dim, mask_block_q>>
!k_block = tensor<?x?xf32, #tile.sizes<head_dim, mask_block_kv>>
!mean = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @pool(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                  %pooled_q: !tile.global<4 x f32>, %pooled_k: !tile.global<4 x f32>)
    parameters [elem, head_dim, mask_block_q, mask_block_kv]
    grid %q by mask_block_q {
  %c0 = arith.constant 0 : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %batch, %head, %i = tile.program_id : index, index, index
  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
  %q_blocks = tile.dim %pooled_q, 2 : !tile.global<4 x f32>
  %kv_blocks = tile.dim %pooled_k, 2 : !tile.global<4 x f32>

  // Tokens beyond the end load as zeros and do not count.
  %q_rows = tile.slice %q[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %q_means = tile.slice %pooled_q[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %q_first = arith.muli %i, %mask_block_q : index
  %q_tokens = tile.load %q_rows[%q_first, %c0] transposed : !tile.view<2 x !elem> -> !q_block
  %q_rest = arith.subi %q_len, %q_first : index
  %q_count = arith.minsi %q_rest, %mask_block_q : index
  %q_count_i32 = arith.index_cast %q_count : index to i32
  %q_count_f32 = arith.sitofp %q_count_i32 : i32 to f32
  %q_sum = tile.reduce sum %q_tokens : !q_block -> !mean
  %q_divisor = tile.splat %q_count_f32 : f32 -> !mean
  %q_mean = arith.divf %q_sum, %q_divisor : !mean
  tile.store %q_mean, %q_means[%i, %c0] : !mean, !tile.view<2 x f32>

  // Every so many-th block of k, over all of the batch's heads.
  %before = arith.muli %head, %q_blocks : index
  %program = arith.addi %before, %i : index
  %programs = arith.muli %q_heads, %q_blocks : index
  %all_kv_blocks = arith.muli %kv_heads, %kv_blocks : index
  scf.for %block = %program to %all_kv_blocks step %programs {
    %kv_head = arith.divui %block, %kv_blocks : index
    %head_start = arith.muli %kv_head, %kv_blocks : index
    %j = arith.subi %block, %head_start : index
    %k_rows = tile.slice %k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %k_means = tile.slice %pooled_k[%batch, %kv_head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
    %k_first = arith.muli %j, %mask_block_kv : index
    %k_tokens = tile.load %k_rows[%k_first, %c0] transposed : !tile.view<2 x !elem> -> !k_block
    %k_rest = arith.subi %kv_len, %k_first : index
    %k_count = arith.minsi %k_rest, %mask_block_kv : index
    %k_count_i32 = arith.index_cast %k_count : index to i32
    %k_count_f32 = arith.sitofp %k_count_i32 : i32 to f32
    %k_sum = tile.reduce sum %k_tokens : !k_block -> !mean
    %k_divisor = tile.splat %k_count_f32 : f32 -> !mean
    %k_mean = arith.divf %k_sum, %k_divisor : !mean
    tile.store %k_mean, %k_means[%j, %c0] : !mean, !tile.view<2 x f32>
  }
}

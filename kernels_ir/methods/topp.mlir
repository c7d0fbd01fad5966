// SPDX-License-Identifier: Apache-2.0
//
// Top-p block attention: each block of query rows attends to the fewest key
// blocks whose weights sum to top_p. One of the two rules that
// SpargeAttention2 (arXiv 2602.13515) joins.
//
//   w    = softmax(softmaxScale · pool(q) pool(k)ᵀ),  pool = mean of a block's rows
//   list = the shortest prefix of the blocks by falling w whose sum is >= top_p
//
// A row whose weight is concentrated keeps few blocks, at times one that is an
// attention sink and says little.
//
// Parameters: top_p in [0, 1]; 0.4 gave 94 % sparsity there (Wan2.1-1.3B, 480p).
sparge.method @topp(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                    %v: !sparge.tensor<value>) {
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k
    : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_p(%top_p)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

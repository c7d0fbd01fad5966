// SPDX-License-Identifier: Apache-2.0
//
// Top-k block attention: each block of query rows attends to the share top_k
// of key blocks that score best. One of the two rules that SpargeAttention2
// (arXiv 2602.13515) joins.
//
//   scores = softmaxScale · pool(q) pool(k)ᵀ,  pool = mean of a block's rows
//   list   = the k best blocks,  k = clamp(trunc(top_k · kvBlocks), 1, kvBlocks)
//
// Every row keeps equally many blocks. A row whose weight is spread evenly
// loses what lies outside them.
//
// Parameters: top_k in [0, 1]; 0.05 is 95 % sparsity.
sparge.method @topk(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                    %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k
    : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

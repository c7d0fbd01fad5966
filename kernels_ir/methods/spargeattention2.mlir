// SPDX-License-Identifier: Apache-2.0
//
// SpargeAttention2 (arXiv 2602.13515): a block is attended to when Top-k or
// Top-p selects it.
//
//   w    = softmax(softmaxScale · pool(q) pool(k)ᵀ),  pool = mean of a block's rows
//   list = TopK(w, top_k) ∪ TopP(w, top_p)
//        = the max(k, n_p) best blocks, since both sets are prefixes of one ranking
//   k    = clamp(trunc(top_k · kvBlocks), 1, kvBlocks)
//   n_p  = fewest blocks by falling w whose sum is >= top_p
//
// Top-p serves rows whose weight is spread evenly, Top-k those where few blocks
// hold it.
//
// Parameters: top_k and top_p in [0, 1]. The paper's, for 95 % sparsity with
// mask blocks of 128 × 64: 0.03 and 0.20 (Wan2.1-1.3B, 480p), 0.03 and 0.16
// (Wan2.1-14B, 720p).
sparge.method @spargeattention2(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                                %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k
    : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k) top_p(%top_p)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

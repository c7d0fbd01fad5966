// SPDX-License-Identifier: Apache-2.0
//
// A method of one's own, for tests: Top-k (kernels_ir/methods/topk.mlir) with
// the diagonal block always kept.
//
//   list = TopK(scores, top_k) ∪ {the block that holds the last key which the
//          block's last row sees}
//
// Parameters: top_k in [0, 1].
sparge.method @topk_diagonal(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                             %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k
    : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k) {keep_diagonal}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

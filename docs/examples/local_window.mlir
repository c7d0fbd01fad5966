// SPDX-License-Identifier: Apache-2.0
//
// Top-k of block scores with a prior for near keys: an example of a score in
// CUDA C++ (docs/your_own_selection_rule.md).
//
//   s    = softmaxScale · pool(q) pool(k)ᵀ - max(0, gap - 512) / 1024
//   list = TopK(s, top_k), with the diagonal block
//
// where gap is the number of tokens between the two blocks.
sparge.method @local_window(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                            %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<[
    "float score(const spargejit::BlockPair &pair) {",
    "  int before = pair.keyOf(pair.firstRow()) - pair.endKey();",
    "  int after = pair.firstKey() - pair.keyOf(pair.endRow());",
    "  int gap = max(0, max(before, after));",
    "  return pair.score - max(0, gap - 512) / 1024.0f;",
    "}"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k) {keep_diagonal}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

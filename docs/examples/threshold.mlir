// SPDX-License-Identifier: Apache-2.0
//
// Every block that weighs at least top_p times as much as the best one of its
// row: an example of a rule in CUDA C++ (docs/your_own_selection_rule.md).
//
//   s    = softmaxScale · pool(q) pool(k)ᵀ
//   list = { j : exp(s[j] - max s) >= top_p }
sparge.method @threshold(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                         %v: !sparge.tensor<value>) {
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k
    : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.custom_select %scores code<[
    "bool keep(const spargejit::ScoredPair &pair) {",
    "  return expf(pair.score - pair.rowMax) >= pair.topP;",
    "}"]> top_p(%top_p)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

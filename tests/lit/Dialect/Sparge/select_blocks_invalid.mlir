// SPDX-License-Identifier: Apache-2.0
//
// What sparge.select_blocks refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @select_blocks_c1_no_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  // expected-error @below {{expects top_k, top_p, keep_diagonal or keep_first, got no selection rule}}
  %lists = sparge.select_blocks %scores
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @select_blocks_c2_negative_keep_first(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  // expected-error @below {{expects keep_first >= 0, got -1}}
  %lists = sparge.select_blocks %scores top_k(%top_k) {keep_first = -1}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// expected-note @below {{prior use here}}
sparge.method @ratio_is_float64(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  // expected-error @below {{expects different type than prior uses}}
  %lists = sparge.select_blocks %scores top_k(%q)
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

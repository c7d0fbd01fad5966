// SPDX-License-Identifier: Apache-2.0
//
// What sparge.block_scores refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @block_scores_c1_pooled_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_q of type '!sparge.pooled<query>', got '!sparge.pooled<key>'}}
  %scores = sparge.block_scores %pooled_k, %pooled_k : !sparge.pooled<key>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @block_scores_c2_pooled_query(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_k of type '!sparge.pooled<key>', got '!sparge.pooled<query>'}}
  %scores = sparge.block_scores %pooled_q, %pooled_q : !sparge.pooled<query>, !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge.custom_select refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @custom_select_c1_negative_keep_first(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  // expected-error @below {{expects keep_first >= 0, got -1}}
  %lists = sparge.custom_select %scores code<config> {keep_first = -1}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

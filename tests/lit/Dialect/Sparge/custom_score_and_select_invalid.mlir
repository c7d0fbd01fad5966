// SPDX-License-Identifier: Apache-2.0
//
// What sparge.custom_score_and_select refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @custom_score_and_select_c1_pooled_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_q of type '!sparge.pooled<query>', got '!sparge.pooled<key>'}}
  %lists = sparge.custom_score_and_select %pooled_k, %pooled_k keep code<config> : !sparge.pooled<key>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @custom_score_and_select_c2_pooled_query(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_k of type '!sparge.pooled<key>', got '!sparge.pooled<query>'}}
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_q keep code<config> : !sparge.pooled<query>, !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @custom_score_and_select_c3_negative_keep_first(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects keep_first >= 0, got -2}}
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_k keep code<config> {keep_first = -2} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @custom_score_and_select_c4_no_code(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects score code or keep code, got neither}}
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_k {keep_diagonal} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @custom_score_and_select_c5_no_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects top_k, top_p, keep_diagonal or keep_first, got no selection rule}}
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_k score code<config> : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

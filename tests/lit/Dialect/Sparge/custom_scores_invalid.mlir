// SPDX-License-Identifier: Apache-2.0
//
// What sparge.custom_scores and codes refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @custom_scores_c1_pooled_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_q of type '!sparge.pooled<query>', got '!sparge.pooled<key>'}}
  %scores = sparge.custom_scores %pooled_k, %pooled_k code<config> : !sparge.pooled<key>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @custom_scores_c2_pooled_query(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects pooled_k of type '!sparge.pooled<key>', got '!sparge.pooled<query>'}}
  %scores = sparge.custom_scores %pooled_q, %pooled_q code<config> : !sparge.pooled<query>, !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @code_c1_no_line(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects at least one line of code, got none}}
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<[]> : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @code_of_another_word(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expected '['}}
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<file> : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @code_without_strings(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expected string}}
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<[1]> : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

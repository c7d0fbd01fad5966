// SPDX-License-Identifier: Apache-2.0
//
// What sparge.attention refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @attention_c1_q_is_a_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects q of type '!sparge.tensor<query>', got '!sparge.tensor<key>'}}
  %o, %lse = sparge.attention %k, %k, %v : !sparge.tensor<key>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @attention_c2_k_is_a_value(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects k of type '!sparge.tensor<key>', got '!sparge.tensor<value>'}}
  %o, %lse = sparge.attention %q, %v, %v : !sparge.tensor<query>, !sparge.tensor<value>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @attention_c3_v_is_a_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects v of type '!sparge.tensor<value>', got '!sparge.tensor<key>'}}
  %o, %lse = sparge.attention %q, %k, %k : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<key>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @attention_c4_result_is_a_query(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type(s)}}
  %o, %lse = "sparge.attention"(%q, %k, %v) : (!sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>) -> (!sparge.tensor<query>, !sparge.lse)
  sparge.return %o : !sparge.tensor<query>
}

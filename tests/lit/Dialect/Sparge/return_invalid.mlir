// SPDX-License-Identifier: Apache-2.0
//
// What sparge.return refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @return_c1_nothing(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects '!sparge.tensor<output>' as its first value, got no value}}
  sparge.return
}

// -----

sparge.method @return_c1_other_tensor(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects '!sparge.tensor<output>' as its first value, got '!sparge.tensor<query>'}}
  sparge.return %q : !sparge.tensor<query>
}

// -----

sparge.method @return_c2_lists_before_lse(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  // expected-error @below {{expects at most one lse and then at most one lists after the output, got '!sparge.lists', '!sparge.lse'}}
  sparge.return %o, %lists, %lse : !sparge.tensor<output>, !sparge.lists, !sparge.lse
}

// -----

sparge.method @return_c2_scores(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  // expected-error @below {{expects at most one lse and then at most one lists after the output, got '!sparge.scores'}}
  sparge.return %o, %scores : !sparge.tensor<output>, !sparge.scores
}

// -----

func.func @only_in_a_method() {
  // expected-error @below {{expects parent op 'sparge.method'}}
  sparge.return
}

// -----

sparge.method @return_c3_an_output_of_a_backward_pass(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects the gradients '!sparge.tensor<d_query>', '!sparge.tensor<d_key>', '!sparge.tensor<d_value>' of a backward pass, got '!sparge.tensor<output>'}}
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @return_c3_gradients_in_another_order(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  // expected-error @below {{of a backward pass, got '!sparge.tensor<d_key>', '!sparge.tensor<d_query>', '!sparge.tensor<d_value>'}}
  sparge.return %d_k, %d_q, %d_v : !sparge.tensor<d_key>, !sparge.tensor<d_query>, !sparge.tensor<d_value>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge.attention_backward refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @attention_backward_c1_q_is_a_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects q of type '!sparge.tensor<query>', got '!sparge.tensor<key>'}}
  %d_q, %d_k, %d_v = sparge.attention_backward %k, %k, %v, %o, %lse, %d_o : !sparge.tensor<key>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c2_k_is_a_value(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects k of type '!sparge.tensor<key>', got '!sparge.tensor<value>'}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %v, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<value>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c3_v_is_a_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects v of type '!sparge.tensor<value>', got '!sparge.tensor<key>'}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %k, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<key>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c4_o_is_a_d_output(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects o of type '!sparge.tensor<output>', got '!sparge.tensor<d_output>'}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %d_o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<d_output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c5_d_o_is_a_output(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects d_o of type '!sparge.tensor<d_output>', got '!sparge.tensor<output>'}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c6_lists_alone(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  // expected-error @below {{expects lists and key_lists together, got lists alone}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c6_key_lists_alone(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  // expected-error @below {{expects lists and key_lists together, got key_lists alone}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o key_lists(%key_lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c7_result_is_a_query(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type(s)}}
  %0:3 = "sparge.attention_backward"(%q, %k, %v, %o, %lse, %d_o) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>} : (!sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.lse, !sparge.tensor<d_output>) -> (!sparge.tensor<query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>)
  sparge.return %0#0, %0#1, %0#2 : !sparge.tensor<query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @attention_backward_c8_keeps_without_lists(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{expects key_lists of a sparge.invert_blocks for what it keeps, got others or none}}
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o keeps : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge-plan-launches refuses.
// RUN: sparge-opt %s --sparge-plan-launches -verify-diagnostics -split-input-file

sparge.method @scores_in_memory(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{no kernel implements 'sparge.block_scores' alone; run sparge-fuse-selection before}}
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @planned_before(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects a method without sparge.launch, got one that is planned already}}
  %pooled_q = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// Also where nothing uses the result.
sparge.method @arithmetic_on_a_parameter(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  // expected-error @below {{no kernel implements 'arith.mulf'}}
  %square = arith.mulf %top_k, %top_k : f64
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @top_k_above_1(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = arith.constant 1.5 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects top_k in [0, 1], got 1.500000e+00}}
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @top_p_below_0(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_p = arith.constant -0.1 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects top_p in [0, 1], got -1.000000e-01}}
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @top_p_is_nan(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_p = arith.constant 0x7FF8000000000000 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects top_p in [0, 1], got 0x7FF8000000000000}}
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @lse_of_another_attention(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  %other:2 = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  // expected-error @below {{expects the lse of the attention that makes the output, got that of another}}
  sparge.return %o, %other#1 : !sparge.tensor<output>, !sparge.lse
}

// -----

sparge.method @lists_that_the_attention_does_not_use(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  // expected-error @below {{expects the lists that the attention uses, got others}}
  sparge.return %o, %lists : !sparge.tensor<output>, !sparge.lists
}

// -----

sparge.method @users_scores_in_memory(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{no kernel implements 'sparge.custom_scores' alone; run sparge-fuse-selection before}}
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<config> : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.custom_select %scores code<config>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @top_k_of_the_users_rule_above_1(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = arith.constant 1.5 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects top_k in [0, 1], got 1.500000e+00}}
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_k keep code<config> top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @attention_in_a_backward_pass(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  // expected-error @below {{no launch computes attention in a backward pass; take its results as arguments}}
  %again, %lse_again = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %again, %lse_again, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

sparge.method @gradients_of_two_backward_passes(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %d_q, %unused:2 = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  %unused_too, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  // expected-error @below {{expects the gradients that one sparge.attention_backward makes, got those of several}}
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

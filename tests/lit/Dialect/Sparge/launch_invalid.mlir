// SPDX-License-Identifier: Apache-2.0
//
// What sparge.launch refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @launch_c1_no_name_for_an_operand(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects one argument name for each of 1 operands, got 0}}
  %0 = "sparge.launch"(%q) <{kernel = "pool", argument_names = [], result_names = ["pooled"], parameters = {}}> : (!sparge.tensor<query>) -> !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c2_name_without_a_result(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects one result name for each of 1 results, got 2}}
  %0 = "sparge.launch"(%q) <{kernel = "pool", argument_names = ["x"], result_names = ["pooled", "more"], parameters = {}}> : (!sparge.tensor<query>) -> !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c3_name_twice(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects each name once, got "x" again}}
  %0 = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (x : !sparge.pooled<query>) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c4_lists_under_another_name(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects the name "lists" for values of type '!sparge.lists' and no others, got "indices" of type '!sparge.lists'}}
  %0 = sparge.launch "made_up" () -> (indices : !sparge.lists) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c4_other_value_called_lists(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{got "lists" of type '!sparge.tensor<query>'}}
  %0 = sparge.launch "made_up" (lists = %q : !sparge.tensor<query>) -> (o : !sparge.tensor<output>) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c5_parameter_is_a_string(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects parameter "causal" to be a 64-bit integer, got "yes"}}
  %0 = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {causal = "yes"}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c5_parameter_is_a_32_bit_integer(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects parameter "causal" to be a 64-bit integer, got 1 : i32}}
  %0 = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {causal = 1 : i32}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c6_source_is_a_string(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects source "score" to be a code, got "text"}}
  %lists = sparge.launch "custom_select" (pooled_q = %pooled_q : !sparge.pooled<query>) -> (lists : !sparge.lists) parameters {} sources {score = "text"}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c4_key_lists_under_another_name(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects the name "key_lists" for values of type '!sparge.key_lists' and no others, got "lists_by_key" of type '!sparge.key_lists'}}
  %0 = sparge.launch "made_up" () -> (lists_by_key : !sparge.key_lists) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @launch_c4_places_under_another_name(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects the name "places" for values of type '!sparge.places' and no others, got "spots" of type '!sparge.places'}}
  %0 = sparge.launch "made_up" () -> (spots : !sparge.places) parameters {}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

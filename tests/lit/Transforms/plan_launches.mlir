// SPDX-License-Identifier: Apache-2.0
//
// sparge-plan-launches: the kernel of each op, its names and parameters; what
// is dropped.
// RUN: sparge-opt %s --sparge-plan-launches -split-input-file | FileCheck %s

// CHECK-LABEL: sparge.method @every_launch(
// CHECK-NEXT: %top_k = sparge.parameter "top_k"
// CHECK-NEXT: %top_p = sparge.parameter "top_p"
// CHECK-NEXT: %pooled_q, %pooled_k = sparge.launch "pool" (q = %q : !sparge.tensor<query>, k = %k : !sparge.tensor<key>) -> (pooled_q : !sparge.pooled<query>, pooled_k : !sparge.pooled<key>) parameters {}
// CHECK-NEXT: %lists = sparge.launch "select_blocks" (pooled_q = %pooled_q : !sparge.pooled<query>, pooled_k = %pooled_k : !sparge.pooled<key>, k = %top_k : f64, p = %top_p : f64)
// CHECK-SAME: -> (lists : !sparge.lists) parameters {keep_diagonal = 0 : i64, keep_first = 0 : i64}
// CHECK-NEXT: %o, %lse = sparge.launch "attention_fwd" (q = %q : !sparge.tensor<query>, k = %k : !sparge.tensor<key>, v = %v : !sparge.tensor<value>, lists = %lists : !sparge.lists)
// CHECK-SAME: -> (o : !sparge.tensor<output>, lse : !sparge.lse) parameters {has_lists = 1 : i64}
// CHECK-NEXT: sparge.return %o, %lse, %lists
sparge.method @every_launch(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

// -----

// CHECK-LABEL: sparge.method @forced_blocks_are_parameters(
// CHECK: "select_blocks"
// CHECK-SAME: (pooled_q = %pooled_q : !sparge.pooled<query>, pooled_k = %pooled_k : !sparge.pooled<key>) ->
// CHECK-SAME: parameters {keep_diagonal = 1 : i64, keep_first = 3 : i64}
sparge.method @forced_blocks_are_parameters(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.score_and_select %pooled_q, %pooled_k {keep_diagonal, keep_first = 3} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @a_constant_ratio(
// CHECK: %[[P:.*]] = arith.constant 9.000000e-01 : f64
// CHECK: "select_blocks"
// CHECK-SAME: p = %[[P]] : f64
sparge.method @a_constant_ratio(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_p = arith.constant 0.9 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @no_lists_and_no_lse(
// CHECK-NEXT: %o = sparge.launch "attention_fwd"
// CHECK-NOT: lists =
// CHECK-SAME: -> (o : !sparge.tensor<output>) parameters {has_lists = 0 : i64}
sparge.method @no_lists_and_no_lse(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @lists_of_the_call(
// CHECK-NEXT: %lists = sparge.caller_lists
// CHECK-NEXT: sparge.launch "attention_fwd"
// CHECK-SAME: lists = %lists
sparge.method @lists_of_the_call(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// A selection that only an unreturned value needs, and what only it needs.
// CHECK-LABEL: sparge.method @drops_what_nothing_needs(
// CHECK-NEXT: %o = sparge.launch "attention_fwd"
// CHECK-NEXT: sparge.return
sparge.method @drops_what_nothing_needs(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %unused:2 = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @stages_of_the_user(
// CHECK: %lists = sparge.launch "custom_select" (pooled_q = %pooled_q : !sparge.pooled<query>, pooled_k = %pooled_k : !sparge.pooled<key>, k = %top_k : f64)
// CHECK-SAME: -> (lists : !sparge.lists) parameters {keep_diagonal = 1 : i64, keep_first = 0 : i64} sources {keep = #sparge.code<config>, score = #sparge.code<["a", "b"]>}
sparge.method @stages_of_the_user(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.custom_score_and_select %pooled_q, %pooled_k score code<["a", "b"]> keep code<config> top_k(%top_k) {keep_diagonal} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @a_backward_pass(
// CHECK-NEXT: %lists = sparge.caller_lists
// CHECK-NEXT: %key_lists = sparge.launch "invert_blocks" (lists = %lists : !sparge.lists) -> (key_lists : !sparge.key_lists) parameters {}
// CHECK-NEXT: %d_q, %delta = sparge.launch "attention_bwd_q" (q = %q : !sparge.tensor<query>, k = %k : !sparge.tensor<key>, v = %v : !sparge.tensor<value>, d_o = %d_o : !sparge.tensor<d_output>, lse = %lse : !sparge.lse, o = %o : !sparge.tensor<output>, d_lse = %d_lse : !sparge.d_lse, lists = %lists : !sparge.lists)
// CHECK-SAME: -> (d_q : !sparge.tensor<d_query>, delta : !sparge.delta) parameters {forms_delta = 1 : i64, has_lists = 1 : i64}
// CHECK-NEXT: %d_k, %d_v = sparge.launch "attention_bwd_kv" (q = %q : !sparge.tensor<query>, k = %k : !sparge.tensor<key>, v = %v : !sparge.tensor<value>, d_o = %d_o : !sparge.tensor<d_output>, lse = %lse : !sparge.lse, delta = %delta : !sparge.delta, key_lists = %key_lists : !sparge.key_lists)
// CHECK-SAME: -> (d_k : !sparge.tensor<d_key>, d_v : !sparge.tensor<d_value>) parameters {has_lists = 1 : i64}
// CHECK-NEXT: sparge.return %d_q, %d_k, %d_v
sparge.method @a_backward_pass(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse) lists(%lists) key_lists(%key_lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

// CHECK-LABEL: sparge.method @a_backward_pass_over_all_keys(
// CHECK-NEXT: sparge.launch "attention_bwd_q"
// CHECK-NOT: lists =
// CHECK-SAME: o = %o : !sparge.tensor<output>) ->
// CHECK-SAME: parameters {forms_delta = 1 : i64, has_lists = 0 : i64}
// CHECK-NEXT: sparge.launch "attention_bwd_kv"
// CHECK-NOT: key_lists =
// CHECK-SAME: parameters {has_lists = 0 : i64}
sparge.method @a_backward_pass_over_all_keys(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// -----

// One launch pools q and k, in whatever order the method asks.
// CHECK-LABEL: sparge.method @pools_once(
// CHECK: %[[QUERIES:.*]], %[[KEYS:.*]] = sparge.launch "pool" (q = %q
// CHECK-NOT: "pool"
// CHECK: "select_blocks" (pooled_q = %[[QUERIES]] : !sparge.pooled<query>, pooled_k = %[[KEYS]] :
sparge.method @pools_once(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %unused = sparge.pool %k : !sparge.tensor<key>
  %keys = sparge.pool %k : !sparge.tensor<key>
  %queries = sparge.pool %q : !sparge.tensor<query>
  %lists = sparge.score_and_select %queries, %keys top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

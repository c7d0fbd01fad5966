// SPDX-License-Identifier: Apache-2.0
//
// sparge-plan-launches: the kernel of each op, its names and parameters; what
// is dropped.
// RUN: sparge-opt %s --sparge-plan-launches -split-input-file | FileCheck %s

// CHECK-LABEL: sparge.method @every_launch(
// CHECK-NEXT: %top_k = sparge.parameter "top_k"
// CHECK-NEXT: %top_p = sparge.parameter "top_p"
// CHECK-NEXT: %pooled_q = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {}
// CHECK-NEXT: %pooled_k = sparge.launch "pool" (x = %k : !sparge.tensor<key>) -> (pooled : !sparge.pooled<key>) parameters {}
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

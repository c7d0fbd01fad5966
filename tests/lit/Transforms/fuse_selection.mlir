// SPDX-License-Identifier: Apache-2.0
//
// sparge-fuse-selection: what becomes one op, and what is refused.
// RUN: sparge-opt %s --sparge-fuse-selection -verify-diagnostics -split-input-file | FileCheck %s

// CHECK-LABEL: sparge.method @keeps_every_rule(
// CHECK-NOT: sparge.block_scores
// CHECK-NOT: sparge.select_blocks
// CHECK: %[[LISTS:.*]] = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) top_p(%top_p) {keep_diagonal, keep_first = 2 : i64}
// CHECK-NEXT: sparge.attention %q, %k, %v lists(%[[LISTS]])
sparge.method @keeps_every_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k) top_p(%top_p) {keep_diagonal, keep_first = 2}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// Only what the selection has is on the fused op.
// CHECK-LABEL: sparge.method @adds_no_rule(
// CHECK: %[[LISTS:.*]] = sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
sparge.method @adds_no_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_p(%top_p)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// The ratio is computed between the two ops, so the place is the selection's.
// CHECK-LABEL: sparge.method @stands_where_the_selection_stood(
// CHECK: %top_k = sparge.parameter "top_k"
// CHECK-NEXT: sparge.score_and_select
sparge.method @stands_where_the_selection_stood(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %top_k = sparge.parameter "top_k"
  %lists = sparge.select_blocks %scores top_k(%top_k)
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @fuses_each_pair(
// CHECK: sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) :
// CHECK: sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) {keep_diagonal}
// CHECK-NOT: sparge.select_blocks
sparge.method @fuses_each_pair(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %unused = sparge.select_blocks %scores top_k(%top_k)
  %more = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %more top_k(%top_k) {keep_diagonal}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @removes_unused_scores(
// CHECK-NOT: sparge.block_scores
// CHECK: sparge.attention
sparge.method @removes_unused_scores(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @leaves_other_ops(
// CHECK-NEXT: %lists = sparge.caller_lists
// CHECK-NEXT: %key_lists = sparge.invert_blocks %lists
// CHECK-NEXT: %o, %lse = sparge.attention %q, %k, %v lists(%lists)
sparge.method @leaves_other_ops(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @two_selections_of_one_scores(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects one sparge.select_blocks as the user of scores, got 2: no kernel writes scores to memory}}
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %unused = sparge.select_blocks %scores top_k(%top_k)
  %lists = sparge.select_blocks %scores top_k(%top_k) {keep_diagonal}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @scores_with_another_user(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  // expected-error @below {{expects sparge.select_blocks as the only user of scores, got 'sparge.launch': no kernel writes scores to memory}}
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k)
  // expected-note @below {{used here}}
  %combined = sparge.launch "combine" (scores = %scores : !sparge.scores) -> (o : !sparge.tensor<output>) parameters {}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// The user's scores with our selection, our scores with the user's, and both.
// CHECK-LABEL: sparge.method @users_scores(
// CHECK-NOT: sparge.custom_scores
// CHECK: sparge.custom_score_and_select %pooled_q, %pooled_k score code<["a", "b"]> top_k(%top_k) top_p(%top_k) {keep_diagonal, keep_first = 1 : i64}
sparge.method @users_scores(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<["a", "b"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %scores top_k(%top_k) top_p(%top_k) {keep_diagonal, keep_first = 1}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @users_rule(
// CHECK-NOT: sparge.block_scores
// CHECK: sparge.custom_score_and_select %pooled_q, %pooled_k keep code<config> top_p(%top_p) {keep_first = 2 : i64}
sparge.method @users_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.custom_select %scores code<config> top_p(%top_p) {keep_first = 2}
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// CHECK-LABEL: sparge.method @users_scores_and_rule(
// CHECK: sparge.custom_score_and_select %pooled_q, %pooled_k score code<["a"]> keep code<["b"]> : !sparge.pooled<query>, !sparge.pooled<key>
sparge.method @users_scores_and_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.custom_scores %pooled_q, %pooled_k code<["a"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.custom_select %scores code<["b"]>
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

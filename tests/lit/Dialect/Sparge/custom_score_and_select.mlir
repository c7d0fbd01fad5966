// SPDX-License-Identifier: Apache-2.0
//
// sparge.custom_score_and_select: the user's score, the user's rule, both.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @every_pair(
// CHECK: %lists = sparge.custom_score_and_select %pooled_q, %pooled_k score code<config> top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.custom_score_and_select %pooled_q, %pooled_k keep code<["a"]> : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.custom_score_and_select %pooled_q, %pooled_k score code<["a", "b"]> keep code<config> top_p(%top_k) {keep_diagonal, keep_first = 1 : i64} : !sparge.pooled<query>, !sparge.pooled<key>
sparge.method @every_pair(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %top_k = sparge.parameter "top_k"
  %0 = sparge.custom_score_and_select %pooled_q, %pooled_k score code<config> top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %1 = sparge.custom_score_and_select %pooled_q, %pooled_k keep code<["a"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %2 = sparge.custom_score_and_select %pooled_q, %pooled_k score code<["a", "b"]> keep code<config> top_p(%top_k) {keep_diagonal, keep_first = 1} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

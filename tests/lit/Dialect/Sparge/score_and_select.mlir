// SPDX-License-Identifier: Apache-2.0
//
// sparge.score_and_select: every rule alone and all together.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

sparge.method @every_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %top_p = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
// CHECK-LABEL: sparge.method @every_rule(
// CHECK: %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.score_and_select %pooled_q, %pooled_k {keep_diagonal} : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.score_and_select %pooled_q, %pooled_k {keep_first = 3 : i64} : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) top_p(%top_p) {keep_diagonal, keep_first = 1 : i64}
  %0 = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) : !sparge.pooled<query>, !sparge.pooled<key>
  %1 = sparge.score_and_select %pooled_q, %pooled_k top_p(%top_p) : !sparge.pooled<query>, !sparge.pooled<key>
  %2 = sparge.score_and_select %pooled_q, %pooled_k {keep_diagonal} : !sparge.pooled<query>, !sparge.pooled<key>
  %3 = sparge.score_and_select %pooled_q, %pooled_k {keep_first = 3} : !sparge.pooled<query>, !sparge.pooled<key>
  %4 = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) top_p(%top_p) {keep_first = 1, keep_diagonal} : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

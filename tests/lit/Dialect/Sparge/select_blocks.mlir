// SPDX-License-Identifier: Apache-2.0
//
// sparge.select_blocks: every rule alone and all together.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

sparge.method @every_rule(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %top_p = arith.constant 0.9 : f64
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-LABEL: sparge.method @every_rule(
// CHECK: %[[P:.*]] = arith.constant 9.000000e-01 : f64
// CHECK: %scores = sparge.block_scores
// CHECK-NEXT: %lists = sparge.select_blocks %scores top_k(%top_k)
// CHECK-NEXT: %lists_{{.*}} = sparge.select_blocks %scores top_p(%[[P]])
// CHECK-NEXT: sparge.select_blocks %scores {keep_diagonal}
// CHECK-NEXT: sparge.select_blocks %scores {keep_first = 2 : i64}
// CHECK-NEXT: sparge.select_blocks %scores top_k(%top_k) top_p(%[[P]]) {keep_diagonal, keep_first = 1 : i64}
  %0 = sparge.select_blocks %scores top_k(%top_k)
  %1 = sparge.select_blocks %scores top_p(%top_p)
  %2 = sparge.select_blocks %scores {keep_diagonal}
  %3 = sparge.select_blocks %scores {keep_first = 2}
  %4 = sparge.select_blocks %scores top_k(%top_k) top_p(%top_p) {keep_first = 1, keep_diagonal}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

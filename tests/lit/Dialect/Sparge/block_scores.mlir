// SPDX-License-Identifier: Apache-2.0
//
// sparge.block_scores, and the type !sparge.scores.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @scores(
// CHECK: %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK: sparge.select_blocks %scores
sparge.method @scores(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %top_k = sparge.parameter "top_k"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %0 = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %lists = sparge.select_blocks %0 top_k(%top_k)
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

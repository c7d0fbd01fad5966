// SPDX-License-Identifier: Apache-2.0
//
// sparge.parameter: both names, and the SSA names they give.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @both_parameters(
// CHECK-NEXT: %top_k = sparge.parameter "top_k"
// CHECK-NEXT: %top_p = sparge.parameter "top_p"
// CHECK: sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) top_p(%top_p)
sparge.method @both_parameters(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %0 = sparge.parameter "top_k"
  %1 = sparge.parameter "top_p"
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%0) top_p(%1) : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

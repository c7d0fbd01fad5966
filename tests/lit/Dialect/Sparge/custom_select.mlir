// SPDX-License-Identifier: Apache-2.0
//
// sparge.custom_select: alone and with everything that it takes.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @every_form(
// CHECK: %lists = sparge.custom_select %scores code<config>{{$}}
// CHECK-NEXT: sparge.custom_select %scores code<["bool keep(const spargejit::ScoredPair &) { return true; }"]> top_k(%top_k) top_p(%top_p) {keep_diagonal, keep_first = 2 : i64}
sparge.method @every_form(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %top_k = sparge.parameter "top_k"
  %top_p = sparge.parameter "top_p"
  %scores = sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
  %0 = sparge.custom_select %scores code<config>
  %1 = sparge.custom_select %scores code<["bool keep(const spargejit::ScoredPair &) { return true; }"]> top_k(%top_k) top_p(%top_p) {keep_diagonal, keep_first = 2}
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// sparge.pool, and the type !sparge.pooled.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @query_and_key(
// CHECK-NEXT: %pooled_q = sparge.pool %q : !sparge.tensor<query>
// CHECK-NEXT: %pooled_k = sparge.pool %k : !sparge.tensor<key>
// CHECK-NEXT: sparge.block_scores %pooled_q, %pooled_k : !sparge.pooled<query>, !sparge.pooled<key>
sparge.method @query_and_key(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %0 = sparge.pool %q : !sparge.tensor<query>
  %1 = sparge.pool %k : !sparge.tensor<key>
  %2 = sparge.block_scores %0, %1 : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

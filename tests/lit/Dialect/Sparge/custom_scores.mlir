// SPDX-License-Identifier: Apache-2.0
//
// sparge.custom_scores: a text of one line and of several, with quotes and
// backslashes, and the call's.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @every_code(
// CHECK: %scores = sparge.custom_scores %pooled_q, %pooled_k code<["float score(const spargejit::BlockPair &pair) { return pair.score; }"]> : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.custom_scores %pooled_q, %pooled_k code<["// \22quoted\22 \\", "float score(const spargejit::BlockPair &pair) {", "  return 0;", "}"]> : !sparge.pooled<query>, !sparge.pooled<key>
// CHECK-NEXT: sparge.custom_scores %pooled_q, %pooled_k code<config> : !sparge.pooled<query>, !sparge.pooled<key>
sparge.method @every_code(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  %pooled_k = sparge.pool %k : !sparge.tensor<key>
  %0 = sparge.custom_scores %pooled_q, %pooled_k code<["float score(const spargejit::BlockPair &pair) { return pair.score; }"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %1 = sparge.custom_scores %pooled_q, %pooled_k code<[
    "// \"quoted\" \\",
    "float score(const spargejit::BlockPair &pair) {",
    "  return 0;",
    "}"]> : !sparge.pooled<query>, !sparge.pooled<key>
  %2 = sparge.custom_scores %pooled_q, %pooled_k code<config> : !sparge.pooled<query>, !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// sparge.invert_blocks, and the type !sparge.key_lists.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @inverted(
// CHECK-NEXT: %lists = sparge.caller_lists
// CHECK-NEXT: %key_lists = sparge.invert_blocks %lists
sparge.method @inverted(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %0 = sparge.invert_blocks %lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

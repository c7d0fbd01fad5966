// SPDX-License-Identifier: Apache-2.0
//
// sparge.caller_lists.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @lists_of_the_call(
// CHECK-NEXT: %lists = sparge.caller_lists
// CHECK-NEXT: sparge.attention %q, %k, %v lists(%lists)
sparge.method @lists_of_the_call(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %0 = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%0) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

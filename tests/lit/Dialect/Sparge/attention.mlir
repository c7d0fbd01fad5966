// SPDX-License-Identifier: Apache-2.0
//
// sparge.attention, with and without lists.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @all_keys(
// CHECK-NEXT: %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
sparge.method @all_keys(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// CHECK-LABEL: sparge.method @listed_blocks(
// CHECK: %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
sparge.method @listed_blocks(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

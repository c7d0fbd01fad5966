// SPDX-License-Identifier: Apache-2.0
//
// sparge.return: the output, and what may follow it.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @output_alone(
// CHECK: sparge.return %o : !sparge.tensor<output>
sparge.method @output_alone(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// CHECK-LABEL: sparge.method @with_lse(
// CHECK: sparge.return %o, %lse : !sparge.tensor<output>, !sparge.lse
sparge.method @with_lse(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse : !sparge.tensor<output>, !sparge.lse
}

// CHECK-LABEL: sparge.method @with_lists(
// CHECK: sparge.return %o, %lists : !sparge.tensor<output>, !sparge.lists
sparge.method @with_lists(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lists : !sparge.tensor<output>, !sparge.lists
}

// CHECK-LABEL: sparge.method @with_lse_and_lists(
// CHECK: sparge.return %o, %lse, %lists : !sparge.tensor<output>, !sparge.lse, !sparge.lists
sparge.method @with_lse_and_lists(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

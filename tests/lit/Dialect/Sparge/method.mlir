// SPDX-License-Identifier: Apache-2.0
//
// sparge.method: syntax, names of arguments, further attributes.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @names_of_arguments(
// CHECK-SAME: %q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
// CHECK-SAME: %v: !sparge.tensor<value>) {
// CHECK-NEXT: %o, %lse = sparge.attention %q, %k, %v
// CHECK-NEXT: sparge.return %o
sparge.method @names_of_arguments(%a: !sparge.tensor<query>, %b: !sparge.tensor<key>, %c: !sparge.tensor<value>) {
  %0:2 = sparge.attention %a, %b, %c : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %0#0 : !sparge.tensor<output>
}

// CHECK-LABEL: sparge.method @further_attributes(
// CHECK-SAME: attributes {source = "here"} {
sparge.method @further_attributes(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) attributes {source = "here"} {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge.method refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{expects 3 arguments, or 7 of a backward pass, got 2}}
sparge.method @method_c1_two_arguments(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>) {
  "llvm.unreachable"() : () -> ()
}

// -----

// expected-error @below {{expects argument 1 of type '!sparge.tensor<key>', got '!sparge.tensor<value>'}}
sparge.method @method_c2_key_and_value_exchanged(%q: !sparge.tensor<query>, %v: !sparge.tensor<value>, %k: !sparge.tensor<key>) {
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

// expected-error @below {{expects argument 0 of type '!sparge.tensor<query>', got 'tensor<4xf32>'}}
sparge.method @method_c2_builtin_tensor(%q: tensor<4xf32>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  "llvm.unreachable"() : () -> ()
}

// -----

// expected-error @below {{expects sparge.return as its last op, got llvm.unreachable}}
sparge.method @method_c3_other_terminator(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  "llvm.unreachable"() : () -> ()
}

// -----

// expected-error @below {{expects argument 5 of type '!sparge.tensor<d_output>', got '!sparge.tensor<d_query>'}}
sparge.method @method_c2_another_gradient(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_q: !sparge.tensor<d_query>, %d_lse: !sparge.d_lse) {
  "llvm.unreachable"() : () -> ()
}

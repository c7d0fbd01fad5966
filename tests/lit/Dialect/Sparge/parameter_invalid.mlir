// SPDX-License-Identifier: Apache-2.0
//
// What sparge.parameter refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @parameter_c1_unknown_name(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects the name top_k or top_p, got "top_q"}}
  %0 = sparge.parameter "top_q"
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @result_is_float64(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{result #0 must be float64 ratio, but got 'f32'}}
  %0 = "sparge.parameter"() <{name = "top_k"}> : () -> f32
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge.caller_lists refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @result_is_lists(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{result #0 must be}}
  %0 = "sparge.caller_lists"() : () -> !sparge.key_lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// SPDX-License-Identifier: Apache-2.0
//
// What sparge.invert_blocks refuses.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @inverts_lists_only(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  // expected-error @below {{result #0 must be}}
  %0 = "sparge.invert_blocks"(%lists) : (!sparge.lists) -> !sparge.lists
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

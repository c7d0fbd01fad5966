// SPDX-License-Identifier: Apache-2.0
//
// What sparge.pool and the type !sparge.pooled refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

sparge.method @pool_c1_value(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects x to be the query or the key of the call, got '!sparge.tensor<value>'}}
  %0 = sparge.pool %v : !sparge.tensor<value>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @pool_c1_pooled(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %pooled_q = sparge.pool %q : !sparge.tensor<query>
  // expected-error @below {{expects x to be the query or the key of the call, got '!sparge.pooled<query>'}}
  %0 = sparge.pool %pooled_q : !sparge.pooled<query>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @pool_c2_other_role(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) '!sparge.pooled<query>' are incompatible with return type(s) of operation '!sparge.pooled<key>'}}
  %0 = "sparge.pool"(%q) : (!sparge.tensor<query>) -> !sparge.pooled<key>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

// -----

sparge.method @pooled_c1_value(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  // expected-error @below {{expects role query or key, got value}}
  %0 = "sparge.pool"(%v) : (!sparge.tensor<value>) -> !sparge.pooled<value>
  %o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o : !sparge.tensor<output>
}

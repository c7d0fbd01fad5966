// SPDX-License-Identifier: Apache-2.0
//
// sparge.launch: names, a name that is no identifier, no arguments at all.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @launches(
// CHECK-NEXT: %pooled_q = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {}
// CHECK-NEXT: %lists = sparge.launch "made_up" () -> (lists : !sparge.lists) parameters {seed = -1 : i64}
// CHECK-NEXT: %o, %lse = sparge.launch "attention_fwd" (q = %q : !sparge.tensor<query>, "odd name" = %pooled_q : !sparge.pooled<query>, lists = %lists : !sparge.lists)
// CHECK-SAME: -> (o : !sparge.tensor<output>, lse : !sparge.lse) parameters {has_lists = 1 : i64} {note = "kept"}
sparge.method @launches(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %0 = sparge.launch "pool" (x = %q : !sparge.tensor<query>) -> (pooled : !sparge.pooled<query>) parameters {}
  %1 = sparge.launch "made_up" () -> (lists : !sparge.lists) parameters {seed = -1}
  %o, %lse = sparge.launch "attention_fwd" (q = %q : !sparge.tensor<query>, "odd name" = %0 : !sparge.pooled<query>, lists = %1 : !sparge.lists)
    -> (o : !sparge.tensor<output>, lse : !sparge.lse) parameters {has_lists = 1} {note = "kept"}
  sparge.return %o : !sparge.tensor<output>
}

// What only launches make.
// CHECK-LABEL: sparge.method @kept_gradients(
// CHECK-NEXT: %places, %unkept, %kept = sparge.launch "keeps" (q = %q : !sparge.tensor<query>) -> (places : !sparge.places, unkept : !sparge.unkept, kept : !sparge.kept) parameters {}
// CHECK-NEXT: %o = sparge.launch "reads" (places = %places : !sparge.places, some = %unkept : !sparge.unkept, kept = %kept : !sparge.kept)
sparge.method @kept_gradients(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {
  %places, %unkept, %kept = sparge.launch "keeps" (q = %q : !sparge.tensor<query>)
    -> (places : !sparge.places, unkept : !sparge.unkept, kept : !sparge.kept) parameters {}
  %o = sparge.launch "reads" (places = %places : !sparge.places, some = %unkept : !sparge.unkept, kept = %kept : !sparge.kept)
    -> (o : !sparge.tensor<output>) parameters {}
  sparge.return %o : !sparge.tensor<output>
}

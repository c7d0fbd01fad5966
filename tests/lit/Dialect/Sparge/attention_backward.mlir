// SPDX-License-Identifier: Apache-2.0
//
// sparge.attention_backward, with and without lists and a gradient of lse; the
// types of gradients.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

// CHECK-LABEL: sparge.method @all_keys(
// CHECK-SAME: %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse
// CHECK-NEXT: %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
// CHECK-NEXT: sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
sparge.method @all_keys(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %0:3 = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %0#0, %0#1, %0#2 : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// CHECK-LABEL: sparge.method @listed_blocks(
// CHECK: %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse) lists(%lists) key_lists(%key_lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
sparge.method @listed_blocks(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse) lists(%lists) key_lists(%key_lists) : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// CHECK-LABEL: sparge.method @kept_gradients(
// CHECK: %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o lists(%lists) key_lists(%key_lists) keeps : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
sparge.method @kept_gradients(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, %v: !sparge.tensor<value>, %o: !sparge.tensor<output>, %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>, %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o lists(%lists) key_lists(%key_lists) keeps : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>, !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

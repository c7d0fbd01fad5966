// SPDX-License-Identifier: Apache-2.0
//
// Dense attention: every query row attends to every key (with causality, to
// every key that it may see). The yardstick of all other methods.
//
//   o = softmax(softmaxScale · q kᵀ) v
//
// Parameters: none.
sparge.method @dense(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                     %v: !sparge.tensor<value>) {
  %o, %lse = sparge.attention %q, %k, %v
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse : !sparge.tensor<output>, !sparge.lse
}

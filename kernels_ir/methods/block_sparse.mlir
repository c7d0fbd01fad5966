// SPDX-License-Identifier: Apache-2.0
//
// Attention over a block mask that the caller brings, as a bool map or as
// lists of key blocks; for masks made elsewhere or handed back by an earlier
// call.
//
//   o[t] = softmax(softmaxScale · q[t] k[u]ᵀ over keys u in listed blocks) v
//
// Parameters: none; the call gives blockMask or lists.
sparge.method @block_sparse(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                            %v: !sparge.tensor<value>) {
  %lists = sparge.caller_lists
  %o, %lse = sparge.attention %q, %k, %v lists(%lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>
  sparge.return %o, %lse, %lists
    : !sparge.tensor<output>, !sparge.lse, !sparge.lists
}

// SPDX-License-Identifier: Apache-2.0
//
// block_sparse.mlir with memory between its kernels: the one for the gradients of k
// and v keeps d_s, 2 bytes a visited pair, as far as there is room, and the gradient
// of q is then one product more instead of three and the softmax again.
sparge.method @block_sparse_backward_kept(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                                          %v: !sparge.tensor<value>, %o: !sparge.tensor<output>,
                                          %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>,
                                          %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse)
      lists(%lists) key_lists(%key_lists) keeps
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>,
      !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v
    : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of every method whose attention reads listed blocks: that
// of dense attention with p = 0 outside them. The lists of the forward pass
// count as constants: selection has no gradient (SpargeAttention2,
// arXiv 2602.13515).
//
// The gradient of q goes over the lists, those of k and v over the same pairs
// by key block.
sparge.method @block_sparse_backward(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                                     %v: !sparge.tensor<value>, %o: !sparge.tensor<output>,
                                     %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>,
                                     %d_lse: !sparge.d_lse) {
  %lists = sparge.caller_lists
  %key_lists = sparge.invert_blocks %lists
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse)
      lists(%lists) key_lists(%key_lists)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>,
      !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v
    : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

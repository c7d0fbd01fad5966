// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of dense attention: of every method whose attention reads
// all keys.
//
//   d_s = p ∘ (d_o vᵀ - delta),  p = exp(softmaxScale · q kᵀ - lse)
//   d_q = softmaxScale · d_s k,  d_k = softmaxScale · d_sᵀ q,  d_v = pᵀ d_o
//
// with delta[t] = d_o[t] · o[t] - d_lse[t] (FlashAttention-2, arXiv 2307.08691).
sparge.method @dense_backward(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,
                              %v: !sparge.tensor<value>, %o: !sparge.tensor<output>,
                              %lse: !sparge.lse, %d_o: !sparge.tensor<d_output>,
                              %d_lse: !sparge.d_lse) {
  %d_q, %d_k, %d_v = sparge.attention_backward %q, %k, %v, %o, %lse, %d_o d_lse(%d_lse)
    : !sparge.tensor<query>, !sparge.tensor<key>, !sparge.tensor<value>,
      !sparge.tensor<output>, !sparge.tensor<d_output>
  sparge.return %d_q, %d_k, %d_v
    : !sparge.tensor<d_query>, !sparge.tensor<d_key>, !sparge.tensor<d_value>
}

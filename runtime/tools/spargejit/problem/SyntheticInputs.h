// SPDX-License-Identifier: Apache-2.0
//
// Synthetic q, k and v whose attention is local and clustered, as that of
// video transformers is; the same numbers for the same seed, always.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <cstdint>

namespace spargejit::problem {

struct SyntheticShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 1;
  std::int64_t headDim = 1;
};

struct SyntheticTensors {
  Tensor q; ///< each [batch, heads, length, headDim]
  Tensor k;
  Tensor v;
};

/// Per batch and head, for token t and channel d, with D = headDim:
///
///   w_d ~ N(0, 1), a_d ~ U(0, 2π)          drift, shared by q and k
///   g(t, d) = √2 cos(w_d t / 192 + a_d)    smooth over some 200 tokens
///   c(t)                                   cluster of t, one of 12: constant
///                                          over stretches of 64 to 448 tokens
///   m(c, d) ~ N(0, 1)                      centre of a cluster, shared
///   e_q, e_k, e_v ~ N(0, 1)                noise, drawn for each element
///
///   q(t, d) = (128/D)^¼ (0.8 g(t, d) + 0.75 m(c(t), d) + 0.6 e_q(t, d))
///   k(t, d) = (128/D)^¼ (0.8 g(t, d) + 0.75 m(c(t), d) + 0.6 e_k(t, d))
///   v(t, d) = 0.7 √2 cos(w'_d t / 192 + a'_d) + 0.5 m'(c(t), d) + 0.5 e_v(t,
///   d)
///
/// The mean scaled score of two tokens is then, at every D, about 11.3·0.64 for
/// neighbours, plus 11.3·0.56 for tokens of one cluster, and 0 for strangers:
/// neighbourhoods and a few far stretches hold most of the softmax mass, so
/// selecting blocks makes sense. Our own construction. Normal numbers are sums
/// of four uniform ones (Irwin-Hall, at most 3.5 in size) drawn from a counter
/// hash, so the result does not depend on the number of threads.
///
/// OutOfResources when the memory cannot be had.
Result<SyntheticTensors> makeSyntheticInputs(const SyntheticShape &shape,
                                             DataType dtype, std::uint64_t seed,
                                             int threads);

} // namespace spargejit::problem

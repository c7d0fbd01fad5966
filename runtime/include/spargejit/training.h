// SPDX-License-Identifier: Apache-2.0
//
// Attention with gradients: a forward pass that keeps what the backward pass
// needs, and the backward pass.
// attentionForward() in the place of attention(), a loss of its output in any
// framework, and attentionBackward() with saved() of what it returned and the
// loss's gradient.
#pragma once

#include "spargejit/attention.h"

#include <cstdint>

namespace spargejit {

/// What the backward pass reads of the forward pass.
struct AttentionSaved {
  /// The forward pass's output: q's shape and dtype, last stride 1.
  TensorView o;
  /// Its log-sum-exp, float32 [batch, qHeads, qLen], strides as
  /// AttentionOutputs has it; -inf says that a row attends to no key.
  TensorView lse;
  /// The lists it used, of config's mask blocks; null for a method that reads
  /// every key. Not owned.
  const BlockLists *lists = nullptr;
};

/// What attentionForward() returns, with its memory.
struct AttentionForward {
  /// [batch, qHeads, qLen, headDim], dense, of q's dtype.
  Tensor o;
  /// float32 [batch, qHeads, qLen], dense.
  Tensor lse;
  /// The lists used; left as made by BlockLists() for a method that reads every
  /// key ("dense").
  BlockLists lists;

  /// Views of it; this object must outlive their use.
  AttentionSaved saved() const {
    return {o.view(), lse.view(), lists.maskBlockQ > 0 ? &lists : nullptr};
  }
};

/// Gradients of a loss with respect to q, k and v, each of that tensor's shape
/// and dtype.
struct AttentionGradients {
  Tensor dq;
  Tensor dk;
  Tensor dv;
};

/// Memory for gradients: shapes and dtype of q, k and v, any strides whose last
/// is 1, a place of its own for every element; on a GPU addresses and strides
/// that are multiples of 16 bytes, and no stride below 0.
struct AttentionGradientViews {
  TensorView dq;
  TensorView dk;
  TensorView dv;
};

/// attention() that keeps lse and the block lists.
///
/// The method must compute lse (all that are built in do). Errors and cost are
/// those of attention(); prepare() with an `outputs.lse` prepares it.
SPARGEJIT_API Result<AttentionForward>
attentionForward(const TensorView &q, const TensorView &k, const TensorView &v,
                 const AttentionConfig &config);

/// The same into the memory of `into`, which an earlier attentionForward() with
/// tensors of these shapes and such a config returned; what it held is lost.
/// Allocates nothing after prepare(), so that a CUDA graph can capture it, and
/// attentionBackwardInto() of into.saved() behind it. Where config has lists of
/// its own, those of `into` are not written.
SPARGEJIT_API Status attentionForwardInto(const AttentionForward &into,
                                          const TensorView &q,
                                          const TensorView &k,
                                          const TensorView &v,
                                          const AttentionConfig &config);

/// Gradients of a loss L through attention, for lists held fixed (selection has
/// no gradient): with p[t, u] = exp(softmaxScale · q[t]·k[u] - lse[t]) for the
/// keys u that row t attends to, else 0,
///
///   delta[t]  = dO[t]·o[t] - dLse[t]
///   dS[t, u]  = p[t, u] · (dO[t]·v[u] - delta[t])
///   dq[t]     = softmaxScale · sum over u of dS[t, u] k[u]
///   dk[u]     = softmaxScale · sum over t of dS[t, u] q[t]
///   dv[u]     = sum over t of p[t, u] dO[t]
///
/// dk and dv summed over the query heads that share a key head
/// (FlashAttention-2, arXiv 2307.08691, section 3.2). Sums are float32. A row
/// that attends to no key gives dq = 0; a key that no row attends to gives
/// dk = dv = 0. NaN reaches the gradients that the formula makes of it, and,
/// with causality, others of the same tile.
///
/// q, k, v, config: as in the forward pass; of config the method (whether it
/// reads lists), mask blocks, causal, softmaxScale, validateLists, keptBytes,
/// threads and stream count. saved: what the forward pass left. dO = dL/do: q's
/// shape and dtype, any strides, also 0 (on a GPU the last must be 1). dLse =
/// dL/dlse: float32 [batch, qHeads, qLen], strides as lse's; null means zeros.
///
/// The order of every sum is fixed: the same bits in every run. Thread-safe.
/// The first call with a new combination of head dimension, dtype and mask
/// block compiles. Errors: those of attention(), and Unsupported naming the
/// kernel on a GPU without these kernels.
SPARGEJIT_API Result<AttentionGradients>
attentionBackward(const TensorView &q, const TensorView &k, const TensorView &v,
                  const AttentionSaved &saved, const TensorView &dO,
                  const AttentionConfig &config,
                  const TensorView *dLse = nullptr);

/// The same into the caller's memory, which overlaps neither itself nor an
/// input. Every element is written.
SPARGEJIT_API Status attentionBackwardInto(
    const AttentionGradientViews &gradients, const TensorView &q,
    const TensorView &k, const TensorView &v, const AttentionSaved &saved,
    const TensorView &dO, const AttentionConfig &config,
    const TensorView *dLse = nullptr);

/// Compiles, loads and reserves what a backward call with such q, k, v and
/// config would need, and runs nothing; after it, such a call does none of it
/// and can be captured in a CUDA graph. The tensors' memory is not looked at
/// and may be null.
SPARGEJIT_API Status prepareBackward(const TensorView &q, const TensorView &k,
                                     const TensorView &v,
                                     const AttentionConfig &config);

/// Bytes of memory on the device that a call of attention() with such arguments
/// keeps beside them and its results: pooled q and k, and block lists where
/// they are not handed out. Compiles no kernel.
SPARGEJIT_API Result<std::int64_t>
workspaceBytes(const TensorView &q, const TensorView &k, const TensorView &v,
               const AttentionConfig &config);

/// The same of attentionBackward(): 4·batch·qHeads·qLen bytes, and with lists
/// another 4·batch·qHeads·kvBlocks·(qBlocks + 1), each rounded up to 64. On a
/// GPU, with lists, it keeps score gradients between its kernels, in what fits
/// config.keptBytes, and says where: 4·batch·qHeads·(qBlocks·(kvBlocks + 1) +
/// 1).
SPARGEJIT_API Result<std::int64_t>
backwardWorkspaceBytes(const TensorView &q, const TensorView &k,
                       const TensorView &v, const AttentionConfig &config);

} // namespace spargejit

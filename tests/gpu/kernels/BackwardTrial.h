// SPDX-License-Identifier: Apache-2.0
//
// One problem of the backward kernels on the host, and float64 references of
// single rows of each gradient. No code shared with the product.
//
// lse and o are inputs of these kernels and are drawn at random around what a
// forward would give, so that the formulas are checked as they stand and no
// forward need run on the host.
#pragma once

#include "tests/gpu/kernels/Trial.h"

namespace spargejit::gpu_trial {

struct BackwardTrial {
  /// q, k, v, lists; o is random as well.
  Trial forward;
  HostTensor dO, dQ, dK, dV;
  /// [batch, qHeads, qLen]; lse is -inf for rows without keys, and delta
  /// follows from o, d_o and (but for dlse=0) dLse.
  std::vector<float> lse, delta, dLse;
  /// [batch, qHeads, kvBlocks, keyCapacity]: query blocks that list the key
  /// block, ascending; and [batch, qHeads, kvBlocks].
  std::int64_t keyCapacity = 0;
  std::vector<std::int32_t> keyIndices, keyCounts;
  /// Where ds is kept (attention_bwd_q_kept.mlir), in keptBlocks blocks a head:
  /// beside keyIndices, [batch, qHeads, qBlocks] and [batch, qHeads].
  std::int64_t keptBlocks = 0;
  std::vector<std::int32_t> places, rowPlaces, unkept;

  std::size_t statistic(std::int64_t batch, std::int64_t head,
                        std::int64_t row) const {
    return static_cast<std::size_t>(
        (batch * forward.q.heads + head) * forward.q.length + row);
  }
};

/// Settings as of makeTrial, and kept=SHARE of the blocks that the head with
/// the longest lists names (1); `parameters`: those of the kernel variant.
BackwardTrial makeBackwardTrial(const Settings &settings,
                                const Settings &parameters, std::uint64_t seed);

std::vector<double> referenceDq(const BackwardTrial &trial, std::int64_t batch,
                                std::int64_t head, std::int64_t row);

/// dk and dv of one key of a kv head, summed over the heads of its group.
struct ReferenceKey {
  std::vector<double> dk, dv;
};
ReferenceKey referenceKey(const BackwardTrial &trial, std::int64_t batch,
                          std::int64_t kvHead, std::int64_t key);

/// sum_d o do - dlse, and the sum of the terms' magnitudes.
std::pair<double, double> referenceDelta(const BackwardTrial &trial,
                                         std::int64_t batch, std::int64_t head,
                                         std::int64_t row);

} // namespace spargejit::gpu_trial

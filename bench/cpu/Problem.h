// SPDX-License-Identifier: Apache-2.0
//
// Inputs that are measured, and the library's calls on them.
#pragma once

#include "spargejit/spargejit.h"

#include <cstdint>
#include <string>

namespace spargejit::bench {

/// q, k, v, o of one shape, and what every call of a measurement shares. All
/// functions throw spargejit::Error.
///
/// Tokens lie in stretches of 96; those of a stretch share a random centre,
/// and every element has noise of its own:
///   q, k = 0.7 centre + 0.7 noise, v = noise, all of variance near 1.
/// So a block of rows scores high on some blocks of keys and low on most, as
/// selection needs; the time of attention does not depend on the numbers.
class Problem {
public:
  /// [1, heads, length, headDim]. `threads` as in AttentionConfig.
  Problem(DataType dtype, std::int64_t heads, std::int64_t length,
          std::int64_t headDim, int threads, std::uint64_t seed);

  /// A configuration with this problem's threads.
  AttentionConfig config(const std::string &method) const;
  /// attentionInto, the output into this problem's o.
  void attend(const AttentionConfig &config,
              const AttentionOutputs &outputs = {}) const;
  /// selectBlocks.
  BlockLists select(const AttentionConfig &config) const;
  /// attentionForward.
  AttentionForward forward(const AttentionConfig &config) const;
  /// attentionBackwardInto with v in the place of dO, the gradients into this
  /// problem's, which take memory at the first call.
  void backward(const AttentionConfig &config, const AttentionForward &forward);
  /// prepare.
  void prepare(const AttentionConfig &config) const;

  std::int64_t heads() const { return heads_; }
  /// Multiply-adds of dense attention times two: 4·heads·length²·headDim.
  double denseFlops() const;

private:
  std::int64_t heads_;
  std::int64_t length_;
  std::int64_t headDim_;
  int threads_;
  Tensor q_, k_, v_, o_;
  AttentionGradients gradients_;
};

/// Attention over lists that were selected before.
AttentionConfig withLists(AttentionConfig config, const BlockLists &lists);

/// topK for which exactly round(density · blocks) blocks, at least one, of the
/// `length` keys are kept.
double topKForDensity(double density, std::int64_t length,
                      std::int64_t maskBlockKv);

/// Visited pairs of blocks: the sum of all counts.
double visitedPairs(const BlockLists &lists);

/// CPUs that this process may run on.
int coreCount();

/// "float32", "bfloat16", "float16"; throws std::invalid_argument.
DataType dataTypeFromName(const std::string &name);

} // namespace spargejit::bench

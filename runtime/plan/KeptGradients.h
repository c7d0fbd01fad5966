// SPDX-License-Identifier: Apache-2.0
//
// How much of a backward pass's score gradients is kept between its kernels
// (kernels/sm90/attention_bwd_q_kept.mlir).
#pragma once

#include "runtime/plan/AttentionProblem.h"

namespace spargejit::plan {

/// The share of all pairs of blocks that a head has room for at least, while
/// its turn lasts. Published methods keep 3 to 5 % of the pairs
/// (SpargeAttention2, arXiv 2602.13515); rows of blocks that find no room are
/// computed again.
constexpr double kKeptShare = 0.06;

/// Sets keptHeads and keptRoom to what `bytes` hold: as many heads of k at a
/// time as have room for kKeptShare of their pairs of blocks, the same number
/// each time, and all the room there is for them; 0 and 0 where one head has
/// not.
void keepGradients(AttentionProblem &problem, std::int64_t bytes);

/// Heads of q in all batches that are kept at a time.
inline std::int64_t keptHeadsOfQ(const AttentionProblem &problem) {
  return problem.keptHeads == 0 ? 0
                                : problem.batch * problem.keptHeads *
                                      (problem.qHeads / problem.kvHeads);
}

} // namespace spargejit::plan

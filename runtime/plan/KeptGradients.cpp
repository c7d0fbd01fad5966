// SPDX-License-Identifier: Apache-2.0
//
// Shares of a budget of bytes among heads.
#include "runtime/plan/KeptGradients.h"

#include <algorithm>
#include <cmath>

namespace spargejit::plan {

void keepGradients(AttentionProblem &problem, std::int64_t bytes) {
  problem.keptHeads = problem.keptRoom = 0;
  // Kernels count pieces of 2 KiB in 32 bits.
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 41;
  const std::int64_t all = problem.qBlocks() * problem.kvBlocks();
  const std::int64_t block =
      problem.kind.maskBlockQ * problem.kind.maskBlockKv *
      static_cast<std::int64_t>(dataTypeSize(problem.kind.dtype));
  if (all == 0 || problem.batch == 0 || problem.kvHeads == 0 || bytes <= 0)
    return;
  const std::int64_t blocks = std::min(bytes, kMostBytes) / block;
  const std::int64_t wanted = std::max<std::int64_t>(
      1, std::llround(std::ceil(kKeptShare * static_cast<double>(all))));
  // Of one head of k, in all batches.
  const std::int64_t qHeads =
      problem.batch * (problem.qHeads / problem.kvHeads);
  const std::int64_t most =
      std::min(problem.kvHeads, blocks / (qHeads * wanted));
  if (most == 0)
    return;
  const std::int64_t rounds = blockCount(problem.kvHeads, most);
  problem.keptHeads = blockCount(problem.kvHeads, rounds);
  problem.keptRoom = std::min(all, blocks / (qHeads * problem.keptHeads));
}

} // namespace spargejit::plan

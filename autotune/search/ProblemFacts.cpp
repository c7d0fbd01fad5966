// SPDX-License-Identifier: Apache-2.0
//
// Facts of problems.
#include "autotune/search/ProblemFacts.h"

#include <algorithm>

namespace spargejit::autotune {

Values factsOf(const ProblemShape &problem) {
  const std::int64_t visited = problem.density < 1
                                   ? listedBlocks(problem) * problem.maskBlockKv
                                   : problem.kvLen;
  return {
      {"head_dim", problem.headDim},
      {"mask_block_q", problem.maskBlockQ},
      {"mask_block_kv", problem.maskBlockKv},
      {"has_lists", problem.density < 1 ? 1 : 0},
      {"causal", problem.causal ? 1 : 0},
      {"elem_bytes", static_cast<std::int64_t>(dataTypeSize(problem.dtype))},
      {"heads", problem.batch * problem.qHeads},
      {"q_len", problem.qLen},
      {"kv_len", problem.kvLen},
      {"visited_keys", std::max<std::int64_t>(1, visited)}};
}

} // namespace spargejit::autotune

// SPDX-License-Identifier: Apache-2.0
//
// Facts of problems.
#include "runtime/tools/spargejit/TuningFacts.h"

#include "runtime/tools/spargejit/options/KernelOptions.h"

#include <algorithm>
#include <cmath>

namespace spargejit::tool {

autotune::Values factsOf(const autotune::ProblemShape &problem) {
  const double visited = problem.density * static_cast<double>(problem.kvLen);
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
      {"visited_keys", std::max<std::int64_t>(1, std::llround(visited))}};
}

plan::ProblemClass classOf(const autotune::ProblemShape &problem) {
  plan::ProblemClass kind;
  kind.dtype = problem.dtype;
  kind.headDim = problem.headDim;
  kind.maskBlockQ = problem.maskBlockQ;
  kind.maskBlockKv = problem.maskBlockKv;
  kind.causal = problem.causal;
  return kind;
}

std::string kernelPath(const std::string &kernel, const std::string &target,
                       const std::string &ending) {
  const bool isGpu =
      target.starts_with("sm_") && target.find_first_of("0123456789") == 3;
  const bool isKnown = target == "host" || isGpu;
  return (isKnown ? kernelFolder(target) : target + "/") + kernel + ending;
}

} // namespace spargejit::tool

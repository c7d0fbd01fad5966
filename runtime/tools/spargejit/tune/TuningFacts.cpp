// SPDX-License-Identifier: Apache-2.0
//
// Classes of problems, and texts beside a kernel.
#include "runtime/tools/spargejit/tune/TuningFacts.h"

#include "runtime/tools/spargejit/options/KernelOptions.h"

namespace spargejit::tool {

plan::ProblemClass classOf(const autotune::ProblemShape &problem) {
  plan::ProblemClass kind;
  kind.dtype = problem.dtype;
  kind.headDim = problem.headDim;
  kind.maskBlockQ = problem.maskBlockQ;
  kind.maskBlockKv = problem.maskBlockKv;
  kind.causal = problem.causal;
  kind.longRows = plan::isLongRow(
      plan::blockCount(problem.kvLen, problem.maskBlockKv), problem.headDim);
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

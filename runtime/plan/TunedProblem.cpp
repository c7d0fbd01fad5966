// SPDX-License-Identifier: Apache-2.0
//
// Densities that are known beforehand.
#include "runtime/plan/TunedProblem.h"

#include "runtime/plan/Planner.h"

#include <algorithm>

namespace spargejit::plan {

namespace {

/// Still of the class of sparse problems.
constexpr double kAlmostDense = 0.99;

/// The share of blocks that the method keeps by rank, or 0 where it ranks none.
double rankedShare(const MethodPlan &plan, const AttentionProblem &problem) {
  for (const PlanLaunch &launch : plan.launches)
    for (const PlanArgument &argument : launch.arguments) {
      const PlanValue &value =
          plan.values[static_cast<std::size_t>(argument.value)];
      if (argument.name != "k")
        continue;
      if (value.kind == PlanValue::Kind::Scalar && value.name == "top_k")
        return problem.topK;
      if (value.kind == PlanValue::Kind::Constant)
        return value.constant;
    }
  return 0;
}

} // namespace

double expectedDensity(const MethodPlan &plan, const AttentionProblem &problem,
                       const AttentionConfig &config) {
  const int lists = attendedLists(plan);
  if (lists < 0)
    return 1;
  const auto blocks =
      static_cast<double>(std::max<std::int64_t>(1, problem.kvBlocks()));
  double share = 0;
  if (plan.values[static_cast<std::size_t>(lists)].kind ==
      PlanValue::Kind::Lists)
    share = rankedShare(plan, problem);
  else if (config.lists)
    share = static_cast<double>(config.lists->indices.view().sizes[3]) / blocks;
  if (share <= 0 || (config.lists && share >= 1))
    share = kUnknownDensity;
  return std::min(std::max(share, 1 / blocks), kAlmostDense);
}

ProblemClass classOf(const autotune::ProblemShape &problem) {
  ProblemClass kind;
  kind.dtype = problem.dtype;
  kind.headDim = problem.headDim;
  kind.maskBlockQ = problem.maskBlockQ;
  kind.maskBlockKv = problem.maskBlockKv;
  kind.causal = problem.causal;
  const std::int64_t qBlocks = blockCount(problem.qLen, problem.maskBlockQ);
  kind.rows = selectionRows(problem.batch * problem.qHeads * qBlocks, qBlocks,
                            blockCount(problem.kvLen, problem.maskBlockKv),
                            problem.headDim);
  return kind;
}

autotune::ProblemShape tunedProblem(const MethodPlan &plan,
                                    const AttentionProblem &problem,
                                    const AttentionConfig &config) {
  autotune::ProblemShape shape;
  shape.dtype = problem.kind.dtype;
  shape.batch = problem.batch;
  shape.qHeads = problem.qHeads;
  shape.kvHeads = problem.kvHeads;
  shape.qLen = problem.qLen;
  shape.kvLen = problem.kvLen;
  shape.headDim = problem.kind.headDim;
  shape.maskBlockQ = problem.kind.maskBlockQ;
  shape.maskBlockKv = problem.kind.maskBlockKv;
  shape.causal = problem.kind.causal;
  shape.density = expectedDensity(plan, problem, config);
  return shape;
}

} // namespace spargejit::plan

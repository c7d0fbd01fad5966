// SPDX-License-Identifier: Apache-2.0
//
// Checks of the caller's mask or block lists against the method and the
// problem.
#include "runtime/api/Validate.h"
#include "runtime/api/ViewChecks.h"
#include "runtime/plan/Planner.h"

#include <algorithm>
#include <array>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

void checkMask(Checks &checks, const AttentionProblem &problem,
               const TensorView &mask, MemoryUse use) {
  checkView(checks, "config.blockMask", mask, 4,
            "[batch, qHeads, qBlocks, kvBlocks]", use);
  if (!checks.ok())
    return;
  checkDevice(checks, "config.blockMask", mask, problem.device);
  checks.that(mask.dtype == DataType::Bool,
              "config.blockMask.dtype: expected bool, got {}", mask.dtype);
  const std::array expected{problem.batch, problem.qHeads, problem.qBlocks(),
                            problem.kvBlocks()};
  checks.that(mask.sizes == expected,
              "config.blockMask.sizes: expected [{}] (batch, qHeads, "
              "ceil({}/{}) query blocks, ceil({}/{}) key blocks), got [{}]",
              fmt::join(expected, ", "), problem.qLen, problem.kind.maskBlockQ,
              problem.kvLen, problem.kind.maskBlockKv,
              fmt::join(mask.sizes, ", "));
}

std::string describeLists(std::int64_t qLen, std::int64_t kvLen,
                          std::int64_t blockQ, std::int64_t blockKv) {
  return fmt::format("qLen {} and kvLen {} in mask blocks of {}x{} ({}x{} "
                     "blocks)",
                     qLen, kvLen, blockQ, blockKv,
                     blockQ > 0 ? plan::blockCount(qLen, blockQ) : 0,
                     blockKv > 0 ? plan::blockCount(kvLen, blockKv) : 0);
}

} // namespace

Status validateListShapes(const ListNames &names,
                          const AttentionProblem &problem,
                          const BlockLists &lists, MemoryUse use) {
  Checks checks;
  // The descriptions are made on failure only: this runs on every call.
  if (lists.qLen != problem.qLen || lists.kvLen != problem.kvLen ||
      lists.maskBlockQ != problem.kind.maskBlockQ ||
      lists.maskBlockKv != problem.kind.maskBlockKv)
    checks.that(
        false, "{}: expected lists for {}, got lists for {}", names.lists,
        describeLists(problem.qLen, problem.kvLen, problem.kind.maskBlockQ,
                      problem.kind.maskBlockKv),
        describeLists(lists.qLen, lists.kvLen, lists.maskBlockQ,
                      lists.maskBlockKv));
  const TensorView &indices = lists.indices.view();
  const TensorView &counts = lists.counts.view();
  checkView(checks, names.indices, indices, 4,
            "[batch, qHeads, qBlocks, capacity]", use);
  checkView(checks, names.counts, counts, 3, "[batch, qHeads, qBlocks]", use);
  if (!checks.ok())
    return std::move(checks).status();
  checkDevice(checks, names.indices, indices, problem.device);
  checkDevice(checks, names.counts, counts, problem.device);
  checks.that(indices.dtype == DataType::Int32,
              "{}.dtype: expected int32, got {}", names.indices, indices.dtype);
  checks.that(counts.dtype == DataType::Int32,
              "{}.dtype: expected int32, got {}", names.counts, counts.dtype);
  const std::array expected{problem.batch, problem.qHeads, problem.qBlocks()};
  for (const auto &[name, view] :
       {std::pair(names.indices, &indices), std::pair(names.counts, &counts)})
    checks.that(
        std::equal(expected.begin(), expected.end(), view->sizes.begin()),
        "{}.sizes: expected {} in front (batch, qHeads, "
        "qBlocks), got {}",
        name, fmt::join(expected, ", "), fmt::join(sizesOf(*view), ", "));
  return std::move(checks).status();
}

Status validateCallerLists(const MethodPlan &plan,
                           const AttentionProblem &problem,
                           const AttentionConfig &config, MemoryUse use) {
  Checks checks;
  const bool takes = plan::takesCallerLists(plan);
  checks.that(!takes || config.blockMask || config.lists,
              "config.blockMask: expected a mask here or lists in config.lists "
              "for method \"{}\", got neither",
              config.method);
  checks.that(!config.blockMask || !config.lists,
              "config.blockMask: expected either a mask or config.lists, got "
              "both");
  checks.that(takes || !config.blockMask,
              "config.blockMask: expected none, since method \"{}\" takes no "
              "mask, got one",
              config.method);
  checks.that(takes || !config.lists,
              "config.lists: expected none, since method \"{}\" takes no "
              "lists, got some",
              config.method);
  if (checks.ok() && config.blockMask)
    checkMask(checks, problem, *config.blockMask, use);
  if (checks.ok() && config.lists)
    checks.also(validateListShapes(
        {"config.lists", "config.lists.indices", "config.lists.counts"},
        problem, *config.lists, use));
  return std::move(checks).status();
}

} // namespace spargejit::api

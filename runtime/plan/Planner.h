// SPDX-License-Identifier: Apache-2.0
//
// Step 3 of 9 in the life of a call (runtime/README.md): which kernels does a
// method need for a class of problems, and where does each kernel argument come
// from?
#pragma once

#include "compiler/Driver/CompileKernel.h"
#include "runtime/base/KernelSpec.h"
#include "runtime/base/MethodPlan.h"
#include "runtime/plan/AttentionProblem.h"

#include <map>
#include <string>
#include <vector>

namespace spargejit::plan {

/// What a class of problems says about the parameters of kernels, the default
/// tuning with it, for a launch that visits listed key blocks (`hasLists`) or
/// keeps score gradients (`hasPlaces`).
std::map<std::string, ParameterValue> classParameters(const ProblemClass &kind,
                                                      const Target &target,
                                                      bool hasLists,
                                                      bool hasPlaces = false);

/// The spec of one launch: a value for each parameter that the kernel text
/// declares, taken from the problem (elem, head_dim, mask_block_q,
/// mask_block_kv, causal), the launch (has_lists, what the method sets) and the
/// default tuning.
/// CompileFailed names a parameter that the kernel declares and nobody gives,
/// or that the method sets and the kernel does not declare.
Result<KernelSpec>
specialiseLaunch(const MethodPlan &plan, const PlanLaunch &launch,
                 const ProblemClass &kind, const Target &target,
                 const std::vector<compiler::KernelParameter> &parameters);

/// Where the slots of one kernel argument come from.
struct ArgumentSource {
  enum class Kind : std::uint8_t {
    Absent,       ///< a tensor that the method does not give: pointer 0
    Tensor,       ///< `value`, part `part`; of a scalar its values by head
    QLen,         ///< the problem's qLen
    KvLen,        ///< the problem's kvLen
    KeptRoom,     ///< the problem's keptRoom
    SoftmaxScale, ///< the problem's softmaxScale
    KeptBlocks,   ///< keptBlocks() of the number `value`
    Number,       ///< the number `value` as float32
    Dense,        ///< number `part` of the problem's `dense`
    Zero,         ///< 0: "k" or "p" of a method that does not use it
    Tickets,      ///< the device's counter "tickets" (`part` 0) or
                  ///< "key_tickets" (1), or absent without one
    Progress,     ///< the device's counters "progress" (`part` 0) or "selected"
                  ///< (1), or absent without them or with fewer than the call
                  ///< has heads of k (of q)
  };
  Kind kind = Kind::Absent;
  /// Index into MethodPlan::values.
  int value = 0;
  /// Of block lists: 0 is the indices, 1 the counts.
  int part = 0;
};

/// One source for each argument of the kernel behind `launch`.
/// CompileFailed names an argument that nobody gives, one given that the kernel
/// does not have, and a mismatch of kind or rank.
Result<std::vector<ArgumentSource>> bindArguments(const MethodPlan &plan,
                                                  const PlanLaunch &launch,
                                                  const LaunchInfo &info);

/// True for a launch that takes part in making block lists: it touches neither
/// v nor the results of attention, and rounds nothing to eight bits.
bool isSelection(const MethodPlan &plan, const PlanLaunch &launch);

/// True for a launch that knows where score gradients are kept.
bool hasPlaces(const MethodPlan &plan, const PlanLaunch &launch);

/// True for a launch that writes or reads score gradients that are kept: it is
/// done for some heads at a time (AttentionProblem::keptHeads).
bool keepsGradients(const MethodPlan &plan, const PlanLaunch &launch);

/// The value of kind Lists or CallerLists that the attention itself (or its
/// backward pass) reads, or -1 when it reads none.
int attendedLists(const MethodPlan &plan);

/// True when some launch reads the setting of this name ("top_k", "top_p") of
/// the call.
bool readsSetting(const MethodPlan &plan, const std::string &name);

/// True when the method wants a mask or lists from the caller.
bool takesCallerLists(const MethodPlan &plan);

} // namespace spargejit::plan

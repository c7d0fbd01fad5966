// SPDX-License-Identifier: Apache-2.0
//
// Runs a prepared plan on one call's tensors.
#pragma once

#include "runtime/api/PreparedPlans.h"
#include "runtime/api/Validate.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

namespace spargejit::api {

/// Runs the launches in order. The lists that attention reads are left in
/// `lists` where it is not null (memory of allocateLists) and the caller gave
/// none of its own. Workspace and slots are kept, so that the next call with
/// such a shape allocates nothing. Errors are those of the device's workspace
/// and kernels.
Status execute(CallDevice &device, const PreparedPlan &prepared,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config,
               const BlockLists *lists);

/// Takes the workspace that execute() would take, and runs nothing.
Status reserve(CallDevice &device, const MethodPlan &plan,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config);

/// The bytes of that workspace.
Result<std::int64_t> workspaceBytes(const MethodPlan &plan,
                                    const plan::AttentionProblem &problem,
                                    const CallTensors &tensors,
                                    const AttentionConfig &config);

} // namespace spargejit::api

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
/// none of its own. Workspace and slots are kept by the calling thread, so that
/// the next call with such a shape allocates nothing. OutOfResources when
/// workspace or scratch cannot be had.
Status execute(const PreparedPlan &prepared,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config,
               const BlockLists *lists);

/// The result where no row attends to any key: o = 0, lse = -inf.
void writeEmptyRows(const CallTensors &tensors);

} // namespace spargejit::api

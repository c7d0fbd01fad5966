// SPDX-License-Identifier: Apache-2.0
//
// Hand-made method plans and launch descriptions, as the compiler would give
// them, for tests without it.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "runtime/base/MethodPlan.h"

namespace spargejit::unit {

/// q, k, v -> o, lse over all keys.
MethodPlan densePlan();
/// The caller's mask or lists.
MethodPlan blockSparsePlan();
/// Pool both, select by rank and mass, attend. Values, in order: 0 q, 1 k, 2 v,
/// 3 pooled q, 4 pooled k, 5 top_k, 6 top_p, 7 lists, 8 o, 9 lse.
MethodPlan selectingPlan();
/// The same with a score that the call brings in CUDA C++.
MethodPlan customPlan();
/// The backward pass over the caller's lists. Values, in order: 0 q, 1 k, 2 v,
/// 3 o, 4 lse, 5 d_o, 6 d_lse, 7 lists, 8 key lists, 9 delta, 10 d_q, 11 d_k,
/// 12 d_v.
MethodPlan backwardPlan();
/// The same, keeping score gradients.
MethodPlan keepingPlan();

/// Arguments of the kernels of these plans, in their order.
LaunchInfo poolInfo(std::int64_t tile);
LaunchInfo selectBlocksInfo(std::int64_t tile);
LaunchInfo attentionInfo(std::int64_t tile);
LaunchInfo listBlocksInfo(std::int64_t tile);

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// A call as tuning records know problems: with what can be said of its density
// without a look at its data.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "runtime/base/MethodPlan.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

namespace spargejit::plan {

/// Of a call whose density shows only in data on the device (top-p alone, a
/// mask, lists with room for all blocks): the middle, on a logarithmic scale,
/// of what the records are made for (0.02 to 0.1) would be 0.045; rather too
/// dense, since a row of more tiles gains more.
inline constexpr double kUnknownDensity = 0.1;

/// The share of key blocks that the call's attention visits, as far as it is
/// known: 1 without lists; topK where the method ranks; the room in the
/// caller's lists where they have not room for all blocks; else
/// kUnknownDensity. With lists, at least one block and less than 1.
double expectedDensity(const MethodPlan &plan, const AttentionProblem &problem,
                       const AttentionConfig &config);

/// The class of a problem that records know.
ProblemClass classOf(const autotune::ProblemShape &problem);

/// The problem without a name, at its expected density.
autotune::ProblemShape tunedProblem(const MethodPlan &plan,
                                    const AttentionProblem &problem,
                                    const AttentionConfig &config);

} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// Whether a configuration of the attention kernel is right, before it may be
// fast.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "runtime/api/Engine.h"

#include <cstdint>

namespace spargejit::tool {

/// Runs small shapes of the problem's class with every edge (one row, whole
/// blocks, ragged ends, grouped heads) through `engine` and compares o and lse,
/// poisoned before and with poison around them, with the float64 reference: the
/// largest difference of o, or what is wrong.
Result<double> checkCandidate(api::Engine &engine,
                              const autotune::ProblemShape &problem,
                              Device device, std::uint64_t seed);

} // namespace spargejit::tool

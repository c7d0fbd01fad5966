// SPDX-License-Identifier: Apache-2.0
//
// Whether a configuration of a kernel of the backward pass is right, before it
// may be fast.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "runtime/api/Engine.h"

#include <cstdint>

namespace spargejit::tool {

/// Runs small shapes of the problem's class with every edge (few rows, whole
/// blocks, ragged ends, grouped heads) through `engine`, forward and backward,
/// and compares dq, dk and dv, poisoned before and with poison around them,
/// with those of the CPU's kernels in float32 (1e-6 from float64,
/// tests/numerics) of the same inputs: the largest difference, or what is
/// wrong.
Result<double> checkGradients(api::Engine &engine,
                              const autotune::ProblemShape &problem,
                              Device device, std::uint64_t seed);

} // namespace spargejit::tool

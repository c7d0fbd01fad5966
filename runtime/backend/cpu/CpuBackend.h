// SPDX-License-Identifier: Apache-2.0
//
// Step 8 of 9 in the life of a call (runtime/README.md): runs the programs of
// host kernels.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include <cstdint>

namespace spargejit::cpu {

/// Number of programs of a launch: sizes[0]·sizes[1]·ceil(sizes[2]/gridTile) of
/// the tensor that spans its grid.
std::int64_t programCount(const LaunchInfo &info, const std::int64_t *slots);

/// Bytes of scratch that one worker of the launch needs.
std::int64_t scratchBytes(const LaunchInfo &info, const std::int64_t *slots);

/// Runs every program of `function` once, on at most `threads` threads (0: all
/// that the process may run on), and returns when all are done. `slots` holds
/// info.slotCount() argument slots. OutOfResources when there is no memory for
/// the scratch; some programs have not run then.
Status runLaunch(const LaunchInfo &info, HostKernelFunction function,
                 const std::int64_t *slots, int threads);

} // namespace spargejit::cpu

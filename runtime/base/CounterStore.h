// SPDX-License-Identifier: Apache-2.0
//
// Where the library counts what counters() (spargejit/library.h) reports. All
// functions are thread-safe.
#pragma once

#include <cstdint>

namespace spargejit {

/// A compilation ran to its end, successful or not, in `milliseconds`.
void countCompilation(double milliseconds);
/// So many kernels were wanted and found in memory.
void countKernelCacheHits(std::int64_t kernels);
/// A kernel was taken from the disk cache or a pack.
void countKernelFromDisk();
/// A method file was turned into a plan.
void countPlan();
/// Workspace or scratch of `bytes` was taken.
void countAllocation(std::int64_t bytes);

} // namespace spargejit

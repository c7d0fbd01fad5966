// SPDX-License-Identifier: Apache-2.0
//
// The process's counters.
#include "runtime/base/CounterStore.h"

#include "spargejit/library.h"

#include <atomic>

namespace spargejit {

namespace {

// Relaxed everywhere: each counter stands alone, none guards other memory.
constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic<std::int64_t> kernelsCompiled{0};
std::atomic<std::int64_t> kernelCacheHits{0};
std::atomic<std::int64_t> kernelsFromDisk{0};
std::atomic<std::int64_t> plansMade{0};
std::atomic<std::int64_t> bytesAllocated{0};
std::atomic<double> compileMilliseconds{0};

} // namespace

void countCompilation(double milliseconds) {
  kernelsCompiled.fetch_add(1, kRelaxed);
  compileMilliseconds.fetch_add(milliseconds, kRelaxed);
}

void countKernelCacheHits(std::int64_t kernels) {
  kernelCacheHits.fetch_add(kernels, kRelaxed);
}

void countKernelFromDisk() { kernelsFromDisk.fetch_add(1, kRelaxed); }

void countPlan() { plansMade.fetch_add(1, kRelaxed); }

void countAllocation(std::int64_t bytes) {
  bytesAllocated.fetch_add(bytes, kRelaxed);
}

Counters counters() {
  Counters now;
  now.kernelsCompiled = kernelsCompiled.load(kRelaxed);
  now.kernelCacheHits = kernelCacheHits.load(kRelaxed);
  now.kernelsFromDisk = kernelsFromDisk.load(kRelaxed);
  now.plansMade = plansMade.load(kRelaxed);
  now.bytesAllocated = bytesAllocated.load(kRelaxed);
  now.compileMilliseconds = compileMilliseconds.load(kRelaxed);
  return now;
}

} // namespace spargejit

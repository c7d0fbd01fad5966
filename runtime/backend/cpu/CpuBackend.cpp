// SPDX-License-Identifier: Apache-2.0
//
// Step 8 of 9 in the life of a call (runtime/README.md): launches on the CPU.
#include "runtime/backend/cpu/CpuBackend.h"

#include "runtime/backend/cpu/WorkerPool.h"
#include "runtime/base/AlignedMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace spargejit::cpu {

namespace {

/// A launch on less memory than this is done before a helper is awake (some
/// 10 µs, at 10 GB/s and more).
constexpr std::int64_t kInlineBytes = 64 << 10;

/// Bytes of all tensors, each counted as dense and as 2 bytes an element:
/// enough to tell small from large.
std::int64_t roughBytes(const LaunchInfo &info, const std::int64_t *slots) {
  std::int64_t bytes = 0;
  for (const KernelArgument &argument : info.arguments) {
    if (argument.kind != KernelArgument::Kind::Tensor ||
        slots[argument.firstSlot] == 0)
      continue;
    std::int64_t elements = 1;
    for (int i = 0; i < argument.rank; ++i)
      if (__builtin_mul_overflow(elements, slots[argument.firstSlot + 1 + i],
                                 &elements))
        return kInlineBytes;
    bytes += std::min(elements, kInlineBytes) * 2;
  }
  return bytes;
}

/// This thread's scratch, kept between calls.
void *workerScratch(std::int64_t bytes) {
  static thread_local GrowingMemory memory;
  return memory.require(bytes);
}

} // namespace

std::int64_t programCount(const LaunchInfo &info, const std::int64_t *slots) {
  const auto &grid =
      info.arguments[static_cast<std::size_t>(info.gridArgument)];
  const std::int64_t *sizes = slots + grid.firstSlot + 1;
  return sizes[0] * sizes[1] * ((sizes[2] + info.gridTile - 1) / info.gridTile);
}

std::int64_t scratchBytes(const LaunchInfo &info, const std::int64_t *slots) {
  std::int64_t bytes = alignUp(info.staticScratchBytes);
  for (const DynamicScratch &part : info.dynamicScratch)
    bytes += alignUp(part.bytesPerColumn *
                     alignUp(slots[part.columnsSlot], part.columnsMultiple));
  return bytes;
}

Status runLaunch(const LaunchInfo &info, HostKernelFunction function,
                 const std::int64_t *slots, int threads) {
  const std::int64_t programs = programCount(info, slots);
  const std::int64_t bytes = scratchBytes(info, slots);
  std::atomic<bool> outOfMemory{false};
  auto body = [&](std::int64_t begin, std::int64_t end) {
    void *scratch = workerScratch(bytes);
    if (!scratch) {
      outOfMemory.store(true, std::memory_order_relaxed);
      return;
    }
    for (std::int64_t program = begin; program < end; ++program)
      function(slots, program, scratch);
  };
  if (programs <= 1 || threads == 1 || roughBytes(info, slots) < kInlineBytes) {
    if (programs > 0)
      body(0, programs);
  } else {
    WorkerPool::process().parallelFor(programs, threads, body);
  }
  if (outOfMemory.load(std::memory_order_relaxed))
    return Status(ErrorCode::OutOfResources,
                  fmt::format("{} bytes of scratch for a worker of {} cannot "
                              "be had",
                              bytes, info.entryName));
  return Status();
}

} // namespace spargejit::cpu

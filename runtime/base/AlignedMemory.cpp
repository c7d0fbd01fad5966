// SPDX-License-Identifier: Apache-2.0
//
// Aligned blocks from the C library; those that grow are counted.
#include "runtime/base/AlignedMemory.h"

#include "runtime/base/CounterStore.h"

#include <cstdlib>

namespace spargejit {

void freeAligned(void *data) { std::free(data); }

AlignedMemory AlignedMemory::allocate(std::int64_t bytes) {
  AlignedMemory memory;
  if (bytes > INT64_MAX - kMemoryAlignment)
    return memory;
  std::int64_t whole = alignUp(bytes > 0 ? bytes : 1);
  memory.data_ =
      std::aligned_alloc(kMemoryAlignment, static_cast<std::size_t>(whole));
  memory.bytes_ = memory.data_ ? whole : 0;
  return memory;
}

void *GrowingMemory::require(std::int64_t bytes) {
  if (memory_.data() && memory_.bytes() >= bytes)
    return memory_.data();
  // The old block goes first, so that both never exist at once.
  memory_ = AlignedMemory();
  memory_ = AlignedMemory::allocate(bytes);
  if (memory_.data())
    countAllocation(memory_.bytes());
  return memory_.data();
}

} // namespace spargejit

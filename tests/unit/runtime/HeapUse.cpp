// SPDX-License-Identifier: Apache-2.0
//
// This program's operator new; arrays and the one that does not throw come to
// it as well.
#include "tests/unit/runtime/HeapUse.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t allocations = 0;

} // namespace

std::int64_t spargejit::unit::heapAllocations() { return allocations; }

void *operator new(std::size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

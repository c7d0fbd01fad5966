// SPDX-License-Identifier: Apache-2.0
//
// This program's operator new and delete. Arrays come to them as well; under
// the address sanitizer, whose own functions arrays and what does not throw
// would have, only what is here does, so that each new and its delete are of
// one kind.
#include "tests/unit/runtime/HeapUse.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t allocations = 0;

} // namespace

std::int64_t spargejit::unit::heapAllocations() { return allocations; }

void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
void *operator new(std::size_t bytes) {
  if (void *memory = operator new(bytes, std::nothrow))
    return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept {
  std::free(memory);
}

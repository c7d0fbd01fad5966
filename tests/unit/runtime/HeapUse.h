// SPDX-License-Identifier: Apache-2.0
//
// Counts what a test's own thread takes from the heap, in programs that
// HeapUse.cpp is linked into.
#pragma once

#include <cstdint>

namespace spargejit::unit {

/// How often this thread has called operator new.
std::int64_t heapAllocations();

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// Lists of key blocks drawn at random, for `spargejit tune`.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "spargejit/attention.h"

#include <cstdint>

namespace spargejit::tool {

/// Lists of `shape.density` of all key blocks, drawn at random, ascending; the
/// same number in every row, at least one. On the CPU. OutOfResources.
Result<BlockLists> randomLists(const autotune::ProblemShape &shape,
                               std::uint64_t seed);

/// The same lists in the memory of `device`.
Result<BlockLists> listsOn(const BlockLists &lists, Device device);

} // namespace spargejit::tool

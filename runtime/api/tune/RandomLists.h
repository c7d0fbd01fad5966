// SPDX-License-Identifier: Apache-2.0
//
// Lists of key blocks drawn at random, for calls that are measured.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "runtime/api/Engine.h"
#include "spargejit/attention.h"

#include <cstdint>

namespace spargejit::api {

/// Lists of `shape.density` of all key blocks, drawn at random, ascending; the
/// same number in every row, at least one. On the CPU. OutOfResources.
Result<BlockLists> randomLists(const autotune::ProblemShape &shape,
                               std::uint64_t seed);

/// The same lists in the memory of `device`, which `engine` copies to.
Result<BlockLists> listsOn(Engine &engine, const BlockLists &lists,
                           Device device);

} // namespace spargejit::api

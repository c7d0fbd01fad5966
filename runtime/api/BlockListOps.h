// SPDX-License-Identifier: Apache-2.0
//
// Block lists, and their making on the host: from a mask, of all blocks,
// checked entry by entry.
#pragma once

#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

#include <functional>
#include <vector>

namespace spargejit::api {

/// Makes an uninitialised tensor of a type and sizes.
using Allocate =
    std::function<Result<Tensor>(DataType, const std::vector<std::int64_t> &)>;

/// New lists of the problem's shape with capacity kvBlocks, uninitialised.
Result<BlockLists> allocateLists(const plan::AttentionProblem &problem,
                                 const Allocate &allocate);

/// Writes the lists of a bool mask [batch, qHeads, qBlocks, kvBlocks] (any
/// strides, nonzero = attend): ascending, -1 in unused slots. `indices` has the
/// mask's sizes, `counts` those without the last; both dense.
void listsFromMask(const TensorView &mask, const TensorView &indices,
                   const TensorView &counts, int threads);

/// Writes the lists that select every block.
void listAllBlocks(const TensorView &indices, const TensorView &counts,
                   int threads);

/// Checks that each count is within the capacity, and each listed entry a key
/// block of the problem, listed once. InvalidArgument names batch, head, row
/// and slot of the first that is not. The lists' shapes must fit the problem.
Status validateEntries(const BlockLists &lists,
                       const plan::AttentionProblem &problem, int threads);

} // namespace spargejit::api

// SPDX-License-Identifier: Apache-2.0
//
// The small problems that candidates must be right on, and memory around their
// outputs that shows what should not have been written.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "spargejit/tensor.h"

#include <initializer_list>
#include <vector>

namespace spargejit::tool {

/// Of the problem's class, with every edge: few rows, a whole number of blocks,
/// ragged ends on both sides, grouped heads.
std::vector<autotune::ProblemShape>
smallShapes(const autotune::ProblemShape &problem, std::int64_t fewRows);

/// A poisoned tensor on the CPU with spare rows before and after each head's:
/// of [1, heads, length, headDim], or [1, heads, length] where headDim is 0.
Result<Tensor> guardedTensor(DataType dtype, std::int64_t heads,
                             std::int64_t length, std::int64_t headDim);

/// The rows between the spare ones.
TensorView insideOf(const Tensor &guarded);

/// True when all of the spare rows are as they were poisoned.
bool guardsAreIntact(const Tensor &guarded);

/// Puts copies in the memory of `device` in the place of tensors elsewhere.
/// OutOfResources, DriverError.
Status moveTo(Device device, std::initializer_list<Tensor *> tensors);

} // namespace spargejit::tool

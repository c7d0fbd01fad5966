// SPDX-License-Identifier: Apache-2.0
//
// The launch that turns a caller's bool mask into block lists on a GPU: kernel
// list_blocks, which is part of no method.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/tensor.h"

#include <array>
#include <cstdint>

namespace spargejit::plan {

/// Its spec; the same for all problems.
KernelSpec maskListsSpec(const Target &target);

/// Its argument slots: the mask [batch, qHeads, qBlocks, kvBlocks], whose last
/// stride is 1, indices of these sizes, and counts without the last of them.
std::array<std::int64_t, 25> packMaskLists(const TensorView &mask,
                                           const TensorView &indices,
                                           const TensorView &counts);

} // namespace spargejit::plan

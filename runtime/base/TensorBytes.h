// SPDX-License-Identifier: Apache-2.0
//
// How much memory a dense tensor takes, checked: for those that allocate one.
#pragma once

#include "spargejit/tensor.h"

#include <cstdint>
#include <vector>

namespace spargejit {

/// Bytes of a dense tensor. InvalidArgument for more than TensorView::kMaxRank
/// sizes and for a negative one, OutOfResources from 2^63 bytes on.
Result<std::int64_t> tensorBytes(DataType dtype,
                                 const std::vector<std::int64_t> &sizes);

} // namespace spargejit

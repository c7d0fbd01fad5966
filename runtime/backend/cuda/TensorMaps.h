// SPDX-License-Identifier: Apache-2.0
//
// TMA descriptors of tensor arguments. Made on the host when a launch has
// other tensors than this thread's last one (nothing is allocated) and passed
// as kernel parameters.
#pragma once

#include "runtime/backend/cuda/Driver.h"
#include "runtime/base/KernelSpec.h"

namespace spargejit::cuda {

/// Most tensor maps that a kernel can have.
inline constexpr std::size_t kMaxTensorMaps = 8;

/// Writes the descriptor of `map` for the tensor at slots[0 …] (address, sizes,
/// strides) of the argument `argument`.
/// Errors: Unsupported, naming the argument and the dimension, for what the
/// copy engine cannot address: an address or a stride that is no multiple of 16
/// bytes, a stride below 0 or of 2^40 bytes and more, a size above 2^32;
/// Internal when the driver refuses what this has let pass.
Status encodeTensorMap(const Driver &driver, const TensorMap &map,
                       const KernelArgument &argument,
                       const std::int64_t *slots, TensorMapBits &bits);

/// Success where the copy engine can write the tensor called `name`.
/// Errors: Unsupported, as of encodeTensorMap().
Status checkCopied(const std::string &name, const TensorView &view);

} // namespace spargejit::cuda

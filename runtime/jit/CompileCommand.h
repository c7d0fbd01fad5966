// SPDX-License-Identifier: Apache-2.0
//
// The command that makes a missing artifact, for messages.
#pragma once

#include "runtime/base/KernelSpec.h"

#include <string>

namespace spargejit::jit {

/// "spargejit compile pool --arch host --dtype bfloat16 --head-dim 128 --set
/// mask_block_q=64 -o DIR": every parameter of the spec as an option.
std::string compileCommand(const KernelSpec &spec);

} // namespace spargejit::jit

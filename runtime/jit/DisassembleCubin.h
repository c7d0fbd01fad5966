// SPDX-License-Identifier: Apache-2.0
//
// Machine code as text, by a program of the CUDA toolkit: needs no GPU.
#pragma once

#include "spargejit/status.h"

#include <string>

namespace spargejit::jit {

/// The SASS of `cubin` as `program` (nvdisasm or cuobjdump) prints it.
/// IoError when the program cannot be started or a file cannot be written;
/// CompileFailed, with what it printed, when it refuses the cubin.
Result<std::string> disassembleCubin(const std::string &program,
                                     const std::string &cubin);

} // namespace spargejit::jit

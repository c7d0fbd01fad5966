// SPDX-License-Identifier: Apache-2.0
//
// Where the programs of a CUDA toolkit are, on a machine that has them.
#pragma once

#include "runtime/base/Environment.h"
#include "spargejit/status.h"

#include <string>

namespace spargejit::jit {

/// The assembler to use: the one that SPARGEJIT_PTXAS names, or the first ptxas
/// in PATH, or the toolkit's usual place.
/// IoError for a SPARGEJIT_PTXAS that is no program; Unsupported, with the
/// places looked at, when there is none.
Result<std::string> findPtxas(const Environment &settings);

/// The disassembler to use: nvdisasm, or else cuobjdump, beside `ptxas`, in
/// PATH or in the toolkit's usual place. Unsupported, with the places looked
/// at, when there is none.
Result<std::string> findDisassembler(const Environment &settings,
                                     const std::string &ptxas);

} // namespace spargejit::jit

// SPDX-License-Identifier: Apache-2.0
//
// LLVM IR to PTX text.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include "llvm/IR/Module.h"

#include <string>

namespace spargejit::compiler {

/// Whether this compiler has a back end for the GPU architecture ("sm_90a").
bool isPtxTarget(const Target &target);

/// Gives `module` the target's data layout, and optimises it.
Status optimiseForPtx(llvm::Module &module, const Target &target);

/// PTX of an optimised module. Errors that LLVM reports come back through the
/// module's context (LlvmSetup.h).
Result<std::string> emitPtx(llvm::Module &module, const Target &target);

} // namespace spargejit::compiler

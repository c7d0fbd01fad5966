// SPDX-License-Identifier: Apache-2.0
//
// LLVM IR to object code or assembly for the host.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include "llvm/IR/Module.h"

#include <string>

namespace spargejit::compiler {

/// Gives every function of `module` the CPU and features of `target`, and
/// optimises it.
Status optimiseForHost(llvm::Module &module, const Target &target);

/// An ELF object (`assembly` false) or assembly text of an optimised module.
Result<std::string> emitHostCode(llvm::Module &module, const Target &target,
                                 bool assembly);

} // namespace spargejit::compiler

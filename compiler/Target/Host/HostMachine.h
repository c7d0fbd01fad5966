// SPDX-License-Identifier: Apache-2.0
//
// LLVM's description of a host Target.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace spargejit::compiler {

/// A TargetMachine for `target` (a host target; empty fields mean this CPU).
Result<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(const Target &target);

/// Columns of a dot kept in registers: as many 16-lane accumulators as hide the
/// latency of an FMA and still leave registers for operands.
std::int64_t hostDotColumns(const Target &target);

} // namespace spargejit::compiler

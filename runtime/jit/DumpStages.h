// SPDX-License-Identifier: Apache-2.0
//
// Writes what each stage of a compilation gives (SPARGEJIT_DUMP).
#pragma once

#include "runtime/cache/KernelKey.h"
#include "runtime/jit/HostJit.h"

#include <string>

namespace spargejit::jit {

/// Writes folder/<kernel>-<key>/{00-input.mlir, 10-specialise.mlir,
/// 20-tile.mlir, 30-lower.mlir, 40-emit.ll, 50-asm.s} up to the first stage
/// that fails. A file that cannot be written is logged and changes nothing
/// else. Compiles anew for each stage.
void dumpStages(CodeGenerator &generator, const std::string &folder,
                const cache::KernelKey &key, const KernelSpec &spec,
                const KernelText &text);

} // namespace spargejit::jit

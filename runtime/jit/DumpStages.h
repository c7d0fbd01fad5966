// SPDX-License-Identifier: Apache-2.0
//
// Writes what each stage of a compilation gives (SPARGEJIT_DUMP).
#pragma once

#include "runtime/cache/KernelKey.h"
#include "runtime/jit/KernelCompiler.h"

#include <string>
#include <string_view>

namespace spargejit::jit {

/// Where the dumps of one kernel lie: folder/<kernel>-<key>.
std::string dumpPlace(const std::string &folder, const cache::KernelKey &key,
                      const KernelSpec &spec);

/// Name of the dump of PTX text.
inline constexpr const char *kPtxDump = "50-asm.ptx";

/// Writes {00-input.mlir, 10-specialise.mlir, 20-tile.mlir, 30-lower.mlir,
/// 40-emit.ll, 50-asm.s or 50-asm.ptx} to dumpPlace(), up to the first stage
/// that fails. A file that cannot be written is logged and changes nothing
/// else. Compiles anew for each stage.
void dumpStages(CodeGenerator &generator, const std::string &folder,
                const cache::KernelKey &key, const KernelSpec &spec,
                const KernelText &text);

/// Writes one more file to a place; false, with a line in the log, when it
/// cannot be written.
bool writeDump(const std::string &place, const char *name,
               std::string_view content);

} // namespace spargejit::jit

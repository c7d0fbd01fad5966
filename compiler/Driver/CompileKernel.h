// SPDX-License-Identifier: Apache-2.0
//
// Step 5 of 9 in the life of a call (runtime/README.md).
// The compiler's entry: kernel text and a KernelSpec in, a KernelArtifact out.
// Pure: touches no GPU, no file and no environment variable. No MLIR type
// shows here.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include <string>
#include <vector>

namespace spargejit::compiler {

/// The stages of a compilation, in order; their names are those of
/// `spargejit dump --stage`.
enum class Stage { Input, Specialise, Tile, Lower, Emit, Assembly };

/// "input", "specialise", "tile", "lower", "emit", "asm".
const char *stageName(Stage stage);
/// The reverse; InvalidArgument lists the names.
Result<Stage> stageFromName(const std::string &name);

/// Compiles the tile.kernel named `spec.kernel` of `text` (MLIR; `textName` is
/// the file name used in diagnostics) for `spec.target`.
/// Errors: CompileFailed with every diagnostic as "file:line:column: text",
/// Unsupported for a target without a back end. Thread-safe. Typically 0.1 s.
Result<KernelArtifact> compileKernel(const std::string &text,
                                     const std::string &textName,
                                     const KernelSpec &spec);

/// The text of one stage of the same compilation: MLIR up to Lower, LLVM IR at
/// Emit, assembly (or PTX) at Assembly.
Result<std::string> dumpKernel(const std::string &text,
                               const std::string &textName,
                               const KernelSpec &spec, Stage stage);

/// A parameter that a kernel text declares.
struct KernelParameter {
  std::string name;
  bool isDataType = false;
};
/// The parameters of kernel `kernel` in `text`, in order of declaration.
Result<std::vector<KernelParameter>>
listKernelParameters(const std::string &text, const std::string &textName,
                     const std::string &kernel);

/// Identifies this code generator: LLVM's version and the build of compiler/.
/// Part of every KernelKey.
const std::string &codeGeneratorIdentity();

/// The CPU that compiles, as a fully spelt-out host Target.
Target hostTarget();

} // namespace spargejit::compiler

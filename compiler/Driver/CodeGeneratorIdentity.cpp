// SPDX-License-Identifier: Apache-2.0
//
// Who generated a kernel: LLVM's version and a digest of our own sources.
#include "compiler/Driver/CompileKernel.h"
#include "compiler/Driver/CompilerSourceHash.inc"

#include "llvm/Config/llvm-config.h"

namespace spargejit::compiler {

const std::string &codeGeneratorIdentity() {
  static const std::string kIdentity =
      std::string("LLVM ") + LLVM_VERSION_STRING + " spargejit-compiler " +
      kCompilerSourceHash;
  return kIdentity;
}

} // namespace spargejit::compiler

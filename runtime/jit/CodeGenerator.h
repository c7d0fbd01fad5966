// SPDX-License-Identifier: Apache-2.0
//
// What the runtime wants from a compiler, so that it builds without one and is
// tested with another.
#pragma once

#include "compiler/Driver/CompileKernel.h"
#include "compiler/Driver/LoadHostKernel.h"
#include "runtime/base/KernelSpec.h"
#include "runtime/base/MethodPlan.h"
#include "spargejit/status.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

/// All functions are thread-safe; they mean what the functions of the same
/// name in compiler/Driver mean.
class CodeGenerator {
public:
  virtual ~CodeGenerator() = default;

  virtual Target hostTarget() const = 0;
  virtual std::string identity() const = 0;
  virtual Result<MethodPlan> planMethod(const std::string &text,
                                        const std::string &textName) = 0;
  virtual Result<std::vector<compiler::KernelParameter>>
  listKernelParameters(const std::string &text, const std::string &textName,
                       const std::string &kernel) = 0;
  virtual Result<KernelArtifact> compileKernel(const std::string &text,
                                               const std::string &textName,
                                               const KernelSpec &spec) = 0;
  virtual Result<std::string> dumpKernel(const std::string &text,
                                         const std::string &textName,
                                         const KernelSpec &spec,
                                         compiler::Stage stage) = 0;
  virtual Result<std::shared_ptr<compiler::HostKernel>>
  loadHostKernel(const KernelArtifact &artifact) = 0;
};

/// The compiler of this build; in a build without one, every function that
/// would compile or parse fails with ArtifactMissing.
CodeGenerator &builtInCodeGenerator();
/// True when this build has the compiler in it.
bool hasBuiltInCompiler();

} // namespace spargejit::jit

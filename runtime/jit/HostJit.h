// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): from a KernelSpec to a
// function of this process. Artifacts come from the kernel cache or the code
// generator; loaded kernels are kept.
#pragma once

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Environment.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/jit/CodeGenerator.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

/// A kernel text and the parameters that it declares.
struct KernelText {
  std::string fileName;
  std::string text;
  std::vector<compiler::KernelParameter> parameters;
};

/// A kernel that can be called; `function` is valid while `code` lives.
struct LoadedKernel {
  LaunchInfo launch;
  HostKernelFunction function = nullptr;
  std::shared_ptr<compiler::HostKernel> code;
};

/// Thread-safe.
class HostJit {
public:
  /// `generator` and `texts` must outlive this object.
  HostJit(CodeGenerator &generator,
          const std::vector<kernels_ir::EmbeddedText> &texts,
          const Environment &settings);

  const Target &target() const { return target_; }

  /// The text "kernels/portable/<kernel>.mlir" and its parameters. Unsupported
  /// when there is none of that name (lists those that exist).
  Result<std::shared_ptr<const KernelText>> text(const std::string &kernel);

  /// The loaded kernel of `spec`, compiled from `text` where this process has
  /// not done so. ArtifactMissing, with the command that makes the artifact,
  /// when compiling is forbidden or there is no compiler.
  Result<std::shared_ptr<const LoadedKernel>> load(const KernelSpec &spec,
                                                   const KernelText &text);

private:
  Result<KernelArtifact> compile(const cache::KernelKey &key,
                                 const KernelSpec &spec,
                                 const KernelText &text);

  CodeGenerator &generator_;
  const std::vector<kernels_ir::EmbeddedText> &texts_;
  const Environment settings_;
  const Target target_;
  const std::string identity_;
  cache::KernelCache artifacts_;
  SingleFlight<std::string, KernelText> kernelTexts_;
  SingleFlight<cache::KernelKey, LoadedKernel, cache::KernelKeyHash> loaded_;
};

} // namespace spargejit::jit

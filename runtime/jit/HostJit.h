// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): from a KernelSpec to a
// function of this process. Loaded kernels are kept.
#pragma once

#include "runtime/jit/KernelCompiler.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

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
          const Environment &settings)
      : generator_(generator),
        compiler_(generator, texts, settings, generator.hostTarget()) {}

  const Target &target() const { return compiler_.target(); }

  /// As KernelCompiler::text.
  Result<std::shared_ptr<const KernelText>> text(const std::string &kernel) {
    return compiler_.text(kernel);
  }

  /// The loaded kernel of `spec`, compiled from `text` where this process has
  /// not done so; errors are those of KernelCompiler::artifact and of loading.
  Result<std::shared_ptr<const LoadedKernel>> load(const KernelSpec &spec,
                                                   const KernelText &text);

private:
  CodeGenerator &generator_;
  KernelCompiler compiler_;
  SingleFlight<cache::KernelKey, LoadedKernel, cache::KernelKeyHash> loaded_;
};

} // namespace spargejit::jit

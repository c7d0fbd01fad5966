// SPDX-License-Identifier: Apache-2.0
//
// From a user's stage in CUDA C++ to code that a GPU of one architecture can
// load: what DeviceJit is for kernels in MLIR.
#pragma once

#include "runtime/cache/KernelCache.h"
#include "runtime/jit/DeviceCode.h"
#include "runtime/jit/KernelCompiler.h"
#include "runtime/jit/Nvrtc.h"

#include <memory>
#include <string>

namespace spargejit::jit {

/// Thread-safe.
class CustomJit {
public:
  /// `target` is a GPU. What is compiled is kept in the disk cache of the
  /// settings; with dumps, everything is compiled anew.
  CustomJit(const Environment &settings, const Target &target);

  /// The code of `spec` with a text of customText(), compiled where neither
  /// this process nor the disk cache has it.
  /// Errors: CompileFailed with NVRTC's text, which names the user's lines;
  /// ArtifactMissing where compiling is forbidden; those of Nvrtc.
  Result<std::shared_ptr<const DeviceCode>> code(const KernelSpec &spec,
                                                 const KernelText &text);

  /// The key of the same: text, parameters, architecture, NVRTC's version, its
  /// options and the texts around the user's. Fails where there is no NVRTC.
  Result<cache::KernelKey> keyOf(const KernelSpec &spec,
                                 const KernelText &text);

private:
  Result<std::shared_ptr<const Nvrtc>> nvrtc();
  std::vector<std::string> options() const;
  Result<KernelArtifact> compile(const Nvrtc &nvrtc,
                                 const cache::KernelKey &key,
                                 const KernelSpec &spec,
                                 const KernelText &text) const;

  const Environment settings_;
  const Target target_;
  SingleFlight<int, Nvrtc> nvrtc_;
  cache::KernelCache artifacts_;
};

} // namespace spargejit::jit

// SPDX-License-Identifier: Apache-2.0
//
// Step 5 of 9 in the life of a call (runtime/README.md): kernel texts and their
// artifacts for one target, from the kernel cache or the code generator.
#pragma once

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Environment.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/jit/CodeGenerator.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

/// A kernel text and the parameters that it declares.
struct KernelText {
  std::string fileName;
  std::string text;
  std::vector<compiler::KernelParameter> parameters;
  /// Values of tuning parameters in place of the defaults.
  std::map<std::string, std::int64_t> tuning = {};
};

/// Digest of each kernel's text for a target, by the kernel's name.
std::map<std::string, std::string>
kernelTextDigests(const std::vector<kernels_ir::EmbeddedText> &texts,
                  const Target &target);

/// A text of the target's folder of kernels, or null.
const kernels_ir::EmbeddedText *
findKernelFile(const std::vector<kernels_ir::EmbeddedText> &texts,
               const Target &target, const std::string &fileName);

/// Thread-safe.
class KernelCompiler {
public:
  /// `generator` and `texts` must outlive this object.
  KernelCompiler(CodeGenerator &generator,
                 const std::vector<kernels_ir::EmbeddedText> &texts,
                 const Environment &settings, const Target &target);

  const Target &target() const { return target_; }

  /// The target's text of a kernel, "kernels/portable/<kernel>.mlir" for the
  /// host and "kernels/sm90/<kernel>.mlir" for sm_90a, and its parameters.
  /// Unsupported when there is none of that name (lists those that exist).
  Result<std::shared_ptr<const KernelText>> text(const std::string &kernel);

  cache::KernelKey keyOf(const KernelSpec &spec, const KernelText &text) const;

  /// The artifact of `spec`, whose key is `key`, compiled from `text` where
  /// this process has not done so. ArtifactMissing, with the command that makes
  /// it, when compiling is forbidden or there is no compiler.
  Result<std::shared_ptr<const KernelArtifact>>
  artifact(const cache::KernelKey &key, const KernelSpec &spec,
           const KernelText &text);

  /// Packs and disk cache.
  const cache::ArtifactStore &store() const { return artifacts_.store(); }
  /// The code generator's.
  const std::string &identity() const { return identity_; }

private:
  Result<KernelArtifact> compile(const cache::KernelKey &key,
                                 const KernelSpec &spec,
                                 const KernelText &text);

  CodeGenerator &generator_;
  const std::vector<kernels_ir::EmbeddedText> &texts_;
  const Environment settings_;
  const Target target_;
  const std::string folder_;
  const std::string identity_;
  cache::KernelCache artifacts_;
  SingleFlight<std::string, KernelText> kernelTexts_;
};

} // namespace spargejit::jit

// SPDX-License-Identifier: Apache-2.0
//
// Step 5 of 9 in the life of a call (runtime/README.md): compile or find.
#include "runtime/jit/KernelCompiler.h"

#include "runtime/base/Hash.h"
#include "runtime/jit/CompileCommand.h"
#include "runtime/jit/DumpStages.h"
#include "runtime/jit/StoredParameters.h"

#include <fmt/format.h>

#include <string_view>

namespace spargejit::jit {

namespace {

constexpr std::string_view kSuffix = ".mlir";

/// "kernels/sm90/" for "sm_90a": kernels are written for a family of
/// architectures.
std::string folderOf(const Target &target) {
  if (target.isHost())
    return "kernels/portable/";
  std::string family;
  for (char letter : target.architecture)
    if (letter != '_')
      family += letter;
  family.erase(family.find_last_of("0123456789") + 1);
  return "kernels/" + family + "/";
}

/// The name of a kernel's text of `folder`; empty for another text.
std::string_view kernelNameOf(const kernels_ir::EmbeddedText &text,
                              const std::string &folder) {
  if (!text.path.starts_with(folder) || !text.path.ends_with(kSuffix))
    return "";
  return text.path.substr(folder.size(),
                          text.path.size() - folder.size() - kSuffix.size());
}

Status noSuchKernel(const std::vector<kernels_ir::EmbeddedText> &texts,
                    const std::string &folder, const Target &target,
                    const std::string &kernel) {
  std::vector<std::string_view> names;
  for (const kernels_ir::EmbeddedText &text : texts)
    if (std::string_view name = kernelNameOf(text, folder); !name.empty())
      names.push_back(name);
  return Status(ErrorCode::Unsupported,
                fmt::format("kernel {}: expected one that is built in for {} "
                            "({})",
                            kernel, target.architecture,
                            fmt::join(names, ", ")));
}

/// With dumps wanted, everything is compiled anew.
cache::ArtifactStore storeOf(const Environment &settings) {
  return settings.dumpFolder.empty() ? cache::ArtifactStore(settings)
                                     : cache::ArtifactStore();
}

} // namespace

std::map<std::string, std::string>
kernelTextDigests(const std::vector<kernels_ir::EmbeddedText> &texts,
                  const Target &target) {
  const std::string folder = folderOf(target);
  std::map<std::string, std::string> digests;
  for (const kernels_ir::EmbeddedText &text : texts)
    if (std::string_view name = kernelNameOf(text, folder); !name.empty())
      digests.emplace(name, hashText(std::string(text.text)).hex());
  return digests;
}

const kernels_ir::EmbeddedText *
findKernelFile(const std::vector<kernels_ir::EmbeddedText> &texts,
               const Target &target, const std::string &fileName) {
  const std::string path = folderOf(target) + fileName;
  for (const kernels_ir::EmbeddedText &text : texts)
    if (text.path == path)
      return &text;
  return nullptr;
}

KernelCompiler::KernelCompiler(
    CodeGenerator &generator,
    const std::vector<kernels_ir::EmbeddedText> &texts,
    const Environment &settings, const Target &target)
    : generator_(generator), texts_(texts), settings_(settings),
      target_(target), folder_(folderOf(target)),
      identity_(generator.identity()),
      artifacts_(storeOf(settings), identity_) {}

Result<std::shared_ptr<const KernelText>>
KernelCompiler::text(const std::string &kernel) {
  using Outcome = Result<std::shared_ptr<const KernelText>>;
  return kernelTexts_.get(kernel, [&]() -> Outcome {
    std::string path = std::string(folder_).append(kernel).append(kSuffix);
    for (const kernels_ir::EmbeddedText &embedded : texts_) {
      if (embedded.path != path)
        continue;
      KernelText text{path, std::string(embedded.text), {}};
      auto parameters = findOrListParameters(artifacts_.store(), generator_,
                                             text.text, text.fileName, kernel);
      if (!parameters.ok())
        return parameters.status();
      text.parameters = *std::move(parameters);
      if (auto tuned = settings_.tuning.find(kernel);
          tuned != settings_.tuning.end())
        text.tuning = tuned->second;
      return std::make_shared<const KernelText>(std::move(text));
    }
    return noSuchKernel(texts_, folder_, target_, kernel);
  });
}

cache::KernelKey KernelCompiler::keyOf(const KernelSpec &spec,
                                       const KernelText &text) const {
  return cache::KernelKey::of(spec, text.text, identity_);
}

Result<std::shared_ptr<const KernelArtifact>>
KernelCompiler::artifact(const cache::KernelKey &key, const KernelSpec &spec,
                         const KernelText &text) {
  const std::string what = cache::describeSpec(spec);
  auto artifact =
      artifacts_.get(key, spec, [&] { return compile(key, spec, text); });
  if (!artifact.ok())
    return Status(artifact.status()).withContext("while compiling " + what);
  return artifact;
}

Result<KernelArtifact> KernelCompiler::compile(const cache::KernelKey &key,
                                               const KernelSpec &spec,
                                               const KernelText &text) {
  if (!settings_.jit)
    return Status(
        ErrorCode::ArtifactMissing,
        fmt::format("compiling is switched off (SPARGEJIT_JIT=off) and there "
                    "is no artifact of key {}{}; `{}` makes it",
                    key.hex(), store().places(), compileCommand(spec)));
  if (!settings_.dumpFolder.empty())
    dumpStages(generator_, settings_.dumpFolder, key, spec, text);
  return generator_.compileKernel(text.text, text.fileName, spec);
}

} // namespace spargejit::jit

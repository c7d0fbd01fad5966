// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): compile or find, then
// load.
#include "runtime/jit/HostJit.h"

#include "runtime/jit/CompileCommand.h"
#include "runtime/jit/DumpStages.h"

#include <fmt/format.h>

#include <string_view>

namespace spargejit::jit {

namespace {

constexpr std::string_view kFolder = "kernels/portable/";
constexpr std::string_view kSuffix = ".mlir";

Status noSuchKernel(const std::vector<kernels_ir::EmbeddedText> &texts,
                    const std::string &kernel) {
  std::vector<std::string_view> names;
  for (const kernels_ir::EmbeddedText &text : texts)
    if (text.path.starts_with(kFolder) && text.path.ends_with(kSuffix))
      names.push_back(text.path.substr(
          kFolder.size(), text.path.size() - kFolder.size() - kSuffix.size()));
  return Status(ErrorCode::Unsupported,
                fmt::format("kernel {}: expected one that is built in ({})",
                            kernel, fmt::join(names, ", ")));
}

} // namespace

HostJit::HostJit(CodeGenerator &generator,
                 const std::vector<kernels_ir::EmbeddedText> &texts,
                 const Environment &settings)
    : generator_(generator), texts_(texts), settings_(settings),
      target_(generator.hostTarget()), identity_(generator.identity()) {}

Result<std::shared_ptr<const KernelText>>
HostJit::text(const std::string &kernel) {
  using Outcome = Result<std::shared_ptr<const KernelText>>;
  return kernelTexts_.get(kernel, [&]() -> Outcome {
    std::string path = std::string(kFolder).append(kernel).append(kSuffix);
    for (const kernels_ir::EmbeddedText &embedded : texts_) {
      if (embedded.path != path)
        continue;
      KernelText text{path, std::string(embedded.text), {}};
      auto parameters =
          generator_.listKernelParameters(text.text, text.fileName, kernel);
      if (!parameters.ok())
        return parameters.status();
      text.parameters = *std::move(parameters);
      return std::make_shared<const KernelText>(std::move(text));
    }
    return noSuchKernel(texts_, kernel);
  });
}

Result<std::shared_ptr<const LoadedKernel>>
HostJit::load(const KernelSpec &spec, const KernelText &text) {
  using Outcome = Result<std::shared_ptr<const LoadedKernel>>;
  auto key = cache::KernelKey::of(spec, text.text, identity_);
  return loaded_.get(key, [&]() -> Outcome {
    const std::string what = cache::describeSpec(spec);
    auto artifact =
        artifacts_.get(key, what, [&] { return compile(key, spec, text); });
    if (!artifact.ok())
      return Status(artifact.status()).withContext("while compiling " + what);
    auto code = generator_.loadHostKernel(**artifact);
    if (!code.ok())
      return Status(code.status()).withContext("while loading " + what);
    LoadedKernel kernel{(*artifact)->launch, (*code)->function(), *code};
    return std::make_shared<const LoadedKernel>(std::move(kernel));
  });
}

Result<KernelArtifact> HostJit::compile(const cache::KernelKey &key,
                                        const KernelSpec &spec,
                                        const KernelText &text) {
  if (!settings_.jit)
    return Status(
        ErrorCode::ArtifactMissing,
        fmt::format("compiling is switched off (SPARGEJIT_JIT=off) and there "
                    "is no artifact of key {}; `{}` makes it",
                    key.hex(), compileCommand(spec)));
  if (!settings_.dumpFolder.empty())
    dumpStages(generator_, settings_.dumpFolder, key, spec, text);
  return generator_.compileKernel(text.text, text.fileName, spec);
}

} // namespace spargejit::jit

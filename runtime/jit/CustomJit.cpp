// SPDX-License-Identifier: Apache-2.0
//
// Users' stages through NVRTC, the kernel cache and the dumps.
#include "runtime/jit/CustomJit.h"

#include "runtime/base/Log.h"
#include "runtime/jit/AssemblyReport.h"
#include "runtime/jit/CustomStage.h"
#include "runtime/jit/DumpStages.h"

#include <fmt/format.h>

namespace spargejit::jit {

namespace {

void logOutcome(const std::string &what, const std::string &log) {
  AssemblyReport report = parseAssemblerLog(log);
  for (const std::string &warning : report.warnings)
    logFormatted(LogLevel::Warning, "{}: {}", what, warning);
  if (report.complete)
    logFormatted(LogLevel::Info, "assembled {}: {}", what,
                 describeReport(report));
}

cache::ArtifactStore storeOf(const Environment &settings) {
  return settings.dumpFolder.empty() ? cache::ArtifactStore(settings)
                                     : cache::ArtifactStore();
}

} // namespace

CustomJit::CustomJit(const Environment &settings, const Target &target)
    : settings_(settings), target_(target),
      artifacts_(storeOf(settings), "nvrtc") {}

Result<std::shared_ptr<const Nvrtc>> CustomJit::nvrtc() {
  return nvrtc_.get(0, [&]() -> Result<std::shared_ptr<const Nvrtc>> {
    auto opened = Nvrtc::open(settings_);
    if (!opened.ok())
      return opened.status();
    logFormatted(LogLevel::Info, "NVRTC {} ({})", (*opened)->version(),
                 (*opened)->path());
    return std::shared_ptr<const Nvrtc>(*std::move(opened));
  });
}

std::vector<std::string> CustomJit::options() const {
  // Functions without a mark are the device's; profilers show the user's lines.
  return {"--gpu-architecture=" + target_.architecture, "--std=c++20",
          "--device-as-default-execution-space", "--generate-line-info",
          "--ptxas-options=--verbose"};
}

Result<cache::KernelKey> CustomJit::keyOf(const KernelSpec &spec,
                                          const KernelText &text) {
  auto compiler = nvrtc();
  if (!compiler.ok())
    return Status(compiler.status())
        .withContext("while compiling " + cache::describeSpec(spec));
  std::string identity =
      fmt::format("nvrtc {}, {}, texts {}", (*compiler)->version(),
                  fmt::join(options(), " "), customTextsDigest());
  return cache::KernelKey::of(spec, text.text, identity);
}

Result<std::shared_ptr<const DeviceCode>>
CustomJit::code(const KernelSpec &spec, const KernelText &text) {
  const std::string what = cache::describeSpec(spec);
  auto key = keyOf(spec, text);
  if (!key.ok())
    return key.status();
  auto artifact = artifacts_.get(
      *key, spec, [&] { return compile(**nvrtc(), *key, spec, text); });
  if (!artifact.ok())
    return Status(artifact.status()).withContext("while compiling " + what);
  DeviceCode code;
  code.what = what;
  code.launch = (*artifact)->launch;
  code.image = (*artifact)->code;
  code.isAssembled = true;
  if (!settings_.dumpFolder.empty())
    code.dumpPlace = dumpPlace(settings_.dumpFolder, *key, spec);
  return std::make_shared<const DeviceCode>(std::move(code));
}

Result<KernelArtifact> CustomJit::compile(const Nvrtc &nvrtc,
                                          const cache::KernelKey &key,
                                          const KernelSpec &spec,
                                          const KernelText &text) const {
  if (!settings_.jit)
    return Status(ErrorCode::ArtifactMissing,
                  fmt::format("compiling is switched off (SPARGEJIT_JIT=off) "
                              "and there is no artifact of key {}{}: a "
                              "stage in CUDA C++ is compiled, and kept, when "
                              "it is first used with SPARGEJIT_JIT=on",
                              key.hex(), artifacts_.store().places()));
  const CustomUnit unit = customUnit(spec, text);
  std::vector<std::string> options = this->options();
  options.insert(options.end(), unit.definitions.begin(),
                 unit.definitions.end());
  auto outcome = nvrtc.compile(unit.unit, unit.headers, options);
  if (!settings_.dumpFolder.empty()) {
    const std::string place = dumpPlace(settings_.dumpFolder, key, spec);
    writeDump(place, "00-input.cu", unit.unit.text);
    for (const NvrtcText &header : unit.headers)
      writeDump(place, header.name.c_str(), header.text);
    if (outcome.ok()) {
      writeDump(
          place, "60-assemble.txt",
          fmt::format("nvrtc {}\n{}", fmt::join(options, " "), outcome->log));
      if (outcome->compiled) {
        writeDump(place, kPtxDump, outcome->ptx);
        writeDump(place, "60-assemble.cubin", outcome->cubin);
      }
    }
  }
  if (!outcome.ok())
    return outcome.status();
  if (!outcome->compiled)
    return Status(ErrorCode::CompileFailed,
                  fmt::format("NVRTC {} finds mistakes in the stage:\n{}",
                              nvrtc.version(), outcome->log));
  logOutcome(cache::describeSpec(spec), outcome->log);
  KernelArtifact artifact;
  artifact.target = spec.target;
  artifact.launch = customSelectInfo();
  artifact.code = std::move(outcome->cubin);
  return artifact;
}

} // namespace spargejit::jit

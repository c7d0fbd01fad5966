// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): how does PTX become a
// binary, and what if it fails?
#include "runtime/jit/DeviceJit.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"
#include "runtime/cache/ArtifactText.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/jit/DumpStages.h"

#include <fmt/format.h>

#include <algorithm>

namespace spargejit::jit {

namespace {

DeviceCode codeOf(const KernelSpec &spec, const KernelArtifact &artifact) {
  DeviceCode code;
  code.what = cache::describeSpec(spec);
  code.launch = artifact.launch;
  code.image = artifact.code;
  code.isAssembled = cache::isCubin(artifact);
  return code;
}

} // namespace

Result<std::shared_ptr<const DeviceCode>>
DeviceJit::code(const KernelSpec &spec, const KernelText &text) {
  auto key = compiler_.keyOf(spec, text);
  return codes_.get(key, [&] { return make(key, spec, text); });
}

Result<std::shared_ptr<const DeviceCode>>
DeviceJit::make(const cache::KernelKey &key, const KernelSpec &spec,
                const KernelText &text) {
  const bool assembles = !settings_.ptxas.empty();
  if (!assembles)
    return compile(key, spec, text);
  auto program = findPtxas(settings_);
  if (!program.ok())
    return program.status();
  auto identity = assemblerIdentity(*program);
  if (!identity.ok())
    return identity.status();
  const cache::KernelKey assembledKey = key.with("assembler", *identity);
  if (auto kept = findAssembled(assembledKey, spec))
    return kept;
  auto compiled = compile(key, spec, text);
  // A pack may have it assembled.
  if (!compiled.ok() || (*compiled)->isAssembled)
    return compiled;
  DeviceCode code = **compiled;
  if (Status status = assemble(code, *program); !status)
    return status;
  compiler_.store().keep(assembledKey,
                         cache::entryOf(spec, compiler_.identity(),
                                        {target(), code.launch, code.image}));
  return std::make_shared<const DeviceCode>(std::move(code));
}

Result<std::shared_ptr<const DeviceCode>>
DeviceJit::compile(const cache::KernelKey &key, const KernelSpec &spec,
                   const KernelText &text) {
  auto artifact = compiler_.artifact(key, spec, text);
  if (!artifact.ok())
    return artifact.status();
  DeviceCode code = codeOf(spec, **artifact);
  if (!settings_.dumpFolder.empty())
    code.dumpPlace = dumpPlace(settings_.dumpFolder, key, spec);
  return std::make_shared<const DeviceCode>(std::move(code));
}

std::shared_ptr<const DeviceCode>
DeviceJit::findAssembled(const cache::KernelKey &key,
                         const KernelSpec &spec) const {
  auto entry = compiler_.store().find(key);
  if (!entry)
    return nullptr;
  auto artifact = cache::artifactOf(*entry);
  if (!artifact.ok() || !cache::isCubin(*artifact))
    return nullptr;
  countKernelFromDisk();
  logFormatted(LogLevel::Debug, "found {} on disk, assembled",
               cache::describeSpec(spec));
  return std::make_shared<const DeviceCode>(codeOf(spec, *artifact));
}

Status DeviceJit::assemble(DeviceCode &code, const std::string &program) const {
  auto assembled = assembleWithPtxas(program, code.image, target().architecture,
                                     code.launch.assemblerLevel);
  if (!assembled.ok())
    return Status(assembled.status())
        .withContext("while assembling " + code.what);
  if (!assembled->failure.empty())
    return assemblyFailure(code, assembled->failure, assembled->command,
                           assembled->log);
  if (!code.dumpPlace.empty()) {
    writeDump(code.dumpPlace, "60-assemble.cubin", assembled->cubin);
    writeDump(code.dumpPlace, "60-assemble.txt", assembled->log);
  }
  if (Status status = judge(code, assembled->command, assembled->log, 0);
      !status)
    return status;
  code.image = std::move(assembled->cubin);
  code.isAssembled = true;
  return Status();
}

Status DeviceJit::judge(const DeviceCode &code, const std::string &assembler,
                        const std::string &log, std::int64_t localBytes) const {
  AssemblyReport report = parseAssemblerLog(log);
  // The driver has nothing to say of code that it has kept from an earlier
  // process; spills are a stack then.
  if (!report.complete)
    report.stackBytes = std::max(report.stackBytes, localBytes);
  std::vector<std::string> faults = faultsOf(report);
  if (!faults.empty())
    return assemblyFailure(code, fmt::format("{}", fmt::join(faults, "; ")),
                           assembler, log);
  for (const std::string &warning : report.warnings)
    logFormatted(LogLevel::Warning, "{}: {}", code.what, warning);
  if (report.complete)
    logFormatted(LogLevel::Info, "assembled {}: {}", code.what,
                 describeReport(report));
  return Status();
}

Status assemblyFailure(const DeviceCode &code, const std::string &reason,
                       const std::string &assembler, const std::string &log) {
  std::string ptx = code.dumpPlace.empty()
                        ? "kept where SPARGEJIT_DUMP names a folder"
                        : code.dumpPlace + "/" + kPtxDump;
  return Status(ErrorCode::CompileFailed,
                fmt::format("while assembling {}: {}; PTX: {}; assembler: {}{}",
                            code.what, reason, ptx, assembler,
                            log.empty() ? "" : "\n" + log));
}

} // namespace spargejit::jit

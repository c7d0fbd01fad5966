// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): how does PTX become a
// binary, and what if it fails?
#include "runtime/jit/DeviceJit.h"

#include "runtime/base/Log.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/jit/DumpStages.h"

#include <fmt/format.h>

#include <algorithm>

namespace spargejit::jit {

Result<std::shared_ptr<const DeviceCode>>
DeviceJit::code(const KernelSpec &spec, const KernelText &text) {
  auto key = compiler_.keyOf(spec, text);
  return codes_.get(key, [&] { return make(key, spec, text); });
}

Result<std::shared_ptr<const DeviceCode>>
DeviceJit::make(const cache::KernelKey &key, const KernelSpec &spec,
                const KernelText &text) {
  auto artifact = compiler_.artifact(key, spec, text);
  if (!artifact.ok())
    return artifact.status();
  DeviceCode code;
  code.what = cache::describeSpec(spec);
  code.launch = (*artifact)->launch;
  code.image = (*artifact)->code;
  if (!settings_.dumpFolder.empty())
    code.dumpPlace = dumpPlace(settings_.dumpFolder, key, spec);
  if (!settings_.ptxas.empty())
    if (Status status = assemble(code); !status)
      return status;
  return std::make_shared<const DeviceCode>(std::move(code));
}

Status DeviceJit::assemble(DeviceCode &code) const {
  auto program = findPtxas(settings_);
  if (!program.ok())
    return program.status();
  auto assembled =
      assembleWithPtxas(*program, code.image, target().architecture);
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

// SPDX-License-Identifier: Apache-2.0
//
// DisassembleCubin.h.
#include "runtime/jit/DisassembleCubin.h"

#include "runtime/jit/ChildProcess.h"
#include "runtime/jit/TemporaryFolder.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <vector>

namespace spargejit::jit {

Result<std::string> disassembleCubin(const std::string &program,
                                     const std::string &cubin) {
  auto folder = TemporaryFolder::make();
  if (!folder.ok())
    return folder.status();
  if (Status status = folder->write("kernel.cubin", cubin); !status)
    return status;
  std::vector<std::string> arguments{program};
  if (std::filesystem::path(program).filename() == "cuobjdump")
    arguments.emplace_back("-sass");
  arguments.push_back(folder->file("kernel.cubin"));
  auto outcome = runProgram(arguments, std::chrono::minutes(2));
  if (!outcome.ok())
    return outcome.status();
  if (outcome->timedOut || outcome->exitCode != 0)
    return Status(
        ErrorCode::CompileFailed,
        fmt::format("{} {}: {}", program,
                    outcome->timedOut
                        ? "did not end"
                        : fmt::format("ended with {}", outcome->exitCode),
                    outcome->output));
  return std::move(outcome->output);
}

} // namespace spargejit::jit

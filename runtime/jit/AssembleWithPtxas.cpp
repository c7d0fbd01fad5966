// SPDX-License-Identifier: Apache-2.0
//
// The ptxas program.
#include "runtime/jit/AssembleWithPtxas.h"

#include "runtime/jit/ChildProcess.h"
#include "runtime/jit/TemporaryFolder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace spargejit::jit {

Result<std::string> assemblerIdentity(const std::string &program) {
  struct stat state{};
  if (::stat(program.c_str(), &state) != 0)
    return Status(ErrorCode::IoError,
                  fmt::format("{}: {}", program, std::strerror(errno)));
  return fmt::format("ptxas of {} bytes, {}.{:09}", state.st_size,
                     state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
}

Result<AssembledCode> assembleWithPtxas(const std::string &program,
                                        const std::string &ptx,
                                        const std::string &architecture,
                                        int level,
                                        std::chrono::milliseconds limit) {
  auto folder = TemporaryFolder::make();
  if (!folder.ok())
    return folder.status();
  const std::string input = folder->file("kernel.ptx");
  const std::string output = folder->file("kernel.cubin");
  if (Status status = folder->write("kernel.ptx", ptx); !status)
    return status;
  auto arguments = [&](const std::string &from, const std::string &to) {
    return std::vector<std::string>{
        program, "-v", "-arch=" + architecture,   from,
        "-o",    to,   fmt::format("-O{}", level)};
  };
  auto outcome = runProgram(arguments(input, output), limit);
  if (!outcome.ok())
    return outcome.status();
  AssembledCode code;
  // Without the folder, which is gone when somebody reads this.
  code.command = commandLine(arguments("kernel.ptx", "kernel.cubin"));
  code.log = std::move(outcome->output);
  if (outcome->timedOut)
    code.failure = fmt::format("did not end within {} ms", limit.count());
  else if (outcome->exitCode != 0)
    code.failure = fmt::format("ended with {}", outcome->exitCode);
  if (!code.failure.empty())
    return code;
  auto cubin = folder->read("kernel.cubin");
  if (!cubin.ok())
    return cubin.status();
  code.cubin = *std::move(cubin);
  return code;
}

} // namespace spargejit::jit

// SPDX-License-Identifier: Apache-2.0
//
// The ptxas program.
#include "runtime/jit/AssembleWithPtxas.h"

#include "runtime/jit/ChildProcess.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spargejit::jit {

namespace {

constexpr const char *kUsualPlace = "/usr/local/cuda/bin/ptxas";

bool isProgram(const std::string &path) {
  std::error_code failure;
  return std::filesystem::is_regular_file(path, failure) &&
         access(path.c_str(), X_OK) == 0;
}

/// A folder of its own that is removed with everything in it.
class TemporaryFolder {
public:
  static Result<TemporaryFolder> make() {
    std::error_code failure;
    auto base = std::filesystem::temp_directory_path(failure);
    std::string pattern = (base / "spargejit-XXXXXX").string();
    if (failure || !mkdtemp(pattern.data()))
      return Status(
          ErrorCode::IoError,
          fmt::format("{}: cannot be made: {}", pattern,
                      failure ? failure.message() : std::strerror(errno)));
    return TemporaryFolder(pattern);
  }

  TemporaryFolder(TemporaryFolder &&other) noexcept
      : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder() {
    std::error_code failure;
    if (!path_.empty())
      std::filesystem::remove_all(path_, failure);
  }

  std::string file(const char *name) const { return (path_ / name).string(); }

private:
  explicit TemporaryFolder(std::filesystem::path path)
      : path_(std::move(path)) {}

  std::filesystem::path path_;
};

Status writeFile(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status()
              : Status(ErrorCode::IoError, path + ": cannot be written");
}

Result<std::string> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file || bytes.empty())
    return Status(ErrorCode::IoError, path + ": cannot be read");
  return bytes;
}

} // namespace

Result<std::string> findPtxas(const Environment &settings) {
  if (!settings.ptxas.empty()) {
    if (isProgram(settings.ptxas))
      return settings.ptxas;
    return Status(ErrorCode::IoError,
                  fmt::format("SPARGEJIT_PTXAS: expected the path of a ptxas "
                              "program, got \"{}\"",
                              settings.ptxas));
  }
  std::istringstream folders(settings.searchPath);
  for (std::string folder; std::getline(folders, folder, ':');) {
    // A relative entry depends on the working folder: not for a program that
    // is run unasked.
    if (!folder.starts_with('/'))
      continue;
    std::string path = folder + "/ptxas";
    if (isProgram(path))
      return path;
  }
  if (isProgram(kUsualPlace))
    return std::string(kUsualPlace);
  return Status(ErrorCode::Unsupported,
                fmt::format("expected a ptxas program in SPARGEJIT_PTXAS, PATH "
                            "or {}, found none",
                            kUsualPlace));
}

Result<AssembledCode> assembleWithPtxas(const std::string &program,
                                        const std::string &ptx,
                                        const std::string &architecture,
                                        std::chrono::milliseconds limit) {
  auto folder = TemporaryFolder::make();
  if (!folder.ok())
    return folder.status();
  const std::string input = folder->file("kernel.ptx");
  const std::string output = folder->file("kernel.cubin");
  if (Status status = writeFile(input, ptx); !status)
    return status;
  const std::vector<std::string> arguments{
      program, "-v", "-arch=" + architecture, input, "-o", output};
  auto outcome = runProgram(arguments, limit);
  if (!outcome.ok())
    return outcome.status();
  AssembledCode code;
  // Without the folder, which is gone when somebody reads this.
  code.command = commandLine({program, "-v", "-arch=" + architecture,
                              "kernel.ptx", "-o", "kernel.cubin"});
  code.log = std::move(outcome->output);
  if (outcome->timedOut)
    code.failure = fmt::format("did not end within {} ms", limit.count());
  else if (outcome->exitCode != 0)
    code.failure = fmt::format("ended with {}", outcome->exitCode);
  if (!code.failure.empty())
    return code;
  auto cubin = readFile(output);
  if (!cubin.ok())
    return cubin.status();
  code.cubin = *std::move(cubin);
  return code;
}

} // namespace spargejit::jit

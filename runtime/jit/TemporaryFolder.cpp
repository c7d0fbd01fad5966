// SPDX-License-Identifier: Apache-2.0
//
// TemporaryFolder.h.
#include "runtime/jit/TemporaryFolder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace spargejit::jit {

Result<TemporaryFolder> TemporaryFolder::make() {
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

TemporaryFolder::TemporaryFolder(std::filesystem::path path)
    : path_(std::move(path)) {}

TemporaryFolder::TemporaryFolder(TemporaryFolder &&other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code failure;
  if (!path_.empty())
    std::filesystem::remove_all(path_, failure);
}

Status TemporaryFolder::write(const char *name,
                              const std::string &bytes) const {
  std::ofstream stream(file(name), std::ios::binary);
  stream << bytes;
  stream.close();
  return stream
             ? Status()
             : Status(ErrorCode::IoError, file(name) + ": cannot be written");
}

Result<std::string> TemporaryFolder::read(const char *name) const {
  std::ifstream stream(file(name), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || bytes.empty())
    return Status(ErrorCode::IoError, file(name) + ": cannot be read");
  return bytes;
}

} // namespace spargejit::jit

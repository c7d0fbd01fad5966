// SPDX-License-Identifier: Apache-2.0
//
// A folder for a program's files, gone when its owner goes.
#pragma once

#include "spargejit/status.h"

#include <filesystem>
#include <string>

namespace spargejit::jit {

class TemporaryFolder {
public:
  /// IoError, with the path, when it cannot be made.
  static Result<TemporaryFolder> make();

  TemporaryFolder(TemporaryFolder &&other) noexcept;
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  /// Removes the folder with everything in it.
  ~TemporaryFolder();

  std::string file(const char *name) const { return (path_ / name).string(); }
  /// IoError when the file cannot be written.
  Status write(const char *name, const std::string &bytes) const;
  /// IoError when the file cannot be read or is empty.
  Result<std::string> read(const char *name) const;

private:
  explicit TemporaryFolder(std::filesystem::path path);

  std::filesystem::path path_;
};

} // namespace spargejit::jit

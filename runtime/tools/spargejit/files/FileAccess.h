// SPDX-License-Identifier: Apache-2.0
//
// Whole-file reading and writing with messages that name the path. A file is
// written beside its place and renamed, so a failed or interrupted run never
// leaves half a file under the name asked for.
#pragma once

#include "spargejit/status.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace spargejit::files {

/// A regular file opened for reading.
class InputFile {
public:
  /// IoError with the path and the system's reason.
  static Result<InputFile> open(const std::string &path);

  const std::string &path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Reads exactly `count` bytes from byte `offset` on.
  Status readAt(std::uint64_t offset, void *into, std::size_t count) const;

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::string path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
};

/// A text, of a kernel or a user's stage. IoError also for one of more than
/// 1 MiB, which is some other file.
Result<std::string> readTextFile(const std::string &path);

/// A file that appears under its name when commit() succeeds. A path that is
/// already something else than a regular file (a device, a pipe, a link) is
/// written in place instead.
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  /// Removes what was written unless commit() succeeded.
  ~OutputFile();

  Status write(const void *bytes, std::size_t count);
  Status write(std::string_view text) {
    return write(text.data(), text.size());
  }
  /// For libraries that write to a stream themselves.
  std::FILE *stream() { return file_.get(); }
  Status commit();

private:
  OutputFile() = default;
  Status failure(const char *action) const;

  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::string path_;
  std::string temporaryPath_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Writes `text` to `path` as one file.
Status writeTextFile(const std::string &path, std::string_view text);

} // namespace spargejit::files

// SPDX-License-Identifier: Apache-2.0
//
// FileAccess.h over the C library's streams.
#include "runtime/tools/spargejit/files/FileAccess.h"

#include "runtime/plan/MethodLibrary.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace spargejit::files {

namespace {

Status ioError(const std::string &path, const char *action, int error) {
  return Status(ErrorCode::IoError,
                fmt::format("{}: {}: {}", path, action, std::strerror(error)));
}

} // namespace

Result<InputFile> InputFile::open(const std::string &path) {
  InputFile result;
  result.path_ = path;
  // Without waiting for the writer of a pipe, which is refused below.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return ioError(path, "cannot be opened", errno);
  result.file_.reset(::fdopen(file, "rb"));
  if (!result.file_) {
    const int error = errno;
    ::close(file);
    return ioError(path, "cannot be opened", error);
  }
  struct stat info{};
  if (fstat(fileno(result.file_.get()), &info) != 0)
    return ioError(path, "cannot be examined", errno);
  if (!S_ISREG(info.st_mode))
    return Status(ErrorCode::IoError,
                  fmt::format("{}: expected a regular file", path));
  result.size_ = static_cast<std::uint64_t>(info.st_size);
  return result;
}

Status InputFile::readAt(std::uint64_t offset, void *into,
                         std::size_t count) const {
  std::FILE *file = file_.get();
  if (fseeko(file, static_cast<off_t>(offset), SEEK_SET) != 0)
    return ioError(path_, "cannot be read", errno);
  errno = 0;
  if (std::fread(into, 1, count, file) == count)
    return Status();
  if (std::ferror(file))
    return ioError(path_, "cannot be read", errno);
  return Status(ErrorCode::IoError,
                fmt::format("{}: ended while it was read", path_));
}

Result<std::string> readTextFile(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.status();
  if (file->size() > plan::kMostTextBytes)
    return Status(ErrorCode::IoError,
                  fmt::format("{}: expected at most {} bytes, got {}", path,
                              plan::kMostTextBytes, file->size()));
  std::string text(static_cast<std::size_t>(file->size()), ' ');
  if (Status status = file->readAt(0, text.data(), text.size()); !status)
    return status;
  return text;
}

Result<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile result;
  result.path_ = path;
  struct stat info{};
  bool inPlace = lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  std::string target =
      inPlace ? path : fmt::format("{}.{}.part", path, getpid());
  result.file_.reset(std::fopen(target.c_str(), "wb"));
  if (!result.file_)
    return ioError(path, "cannot be created", errno);
  if (!inPlace)
    result.temporaryPath_ = target;
  return result;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path_(std::move(other.path_)),
      temporaryPath_(std::exchange(other.temporaryPath_, {})),
      file_(std::move(other.file_)) {}

OutputFile::~OutputFile() {
  if (temporaryPath_.empty())
    return;
  file_.reset();
  std::remove(temporaryPath_.c_str());
}

Status OutputFile::failure(const char *action) const {
  return ioError(path_, action, errno);
}

Status OutputFile::write(const void *bytes, std::size_t count) {
  if (count != 0 && std::fwrite(bytes, 1, count, file_.get()) != count)
    return failure("cannot be written");
  return Status();
}

Status OutputFile::commit() {
  bool flushed = std::fflush(file_.get()) == 0 && !std::ferror(file_.get());
  if (!flushed)
    return failure("cannot be written");
  file_.reset();
  if (temporaryPath_.empty())
    return Status();
  if (std::rename(temporaryPath_.c_str(), path_.c_str()) != 0)
    return failure("cannot be put in place");
  temporaryPath_.clear();
  return Status();
}

Status writeTextFile(const std::string &path, std::string_view text) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.status();
  if (Status status = file->write(text); !status)
    return status;
  return file->commit();
}

} // namespace spargejit::files

// SPDX-License-Identifier: Apache-2.0
//
// Files by system calls, since what went wrong is what matters here: an entry
// whose content is wrong is removed, one that could not be read is not.
#include "runtime/cache/FileIo.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace spargejit::cache {

namespace {

class Descriptor {
public:
  Descriptor(const std::string &path, int flags, mode_t mode = 0)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (number_ < 0)
      error_ = errno;
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  int number() const { return number_; }
  int error() const { return error_; }
  /// A network file system may report only here that a write has failed.
  int close() {
    int number = std::exchange(number_, -1);
    return number >= 0 && ::close(number) != 0 ? errno : 0;
  }

private:
  int number_;
  int error_ = 0;
};

int readAll(int file, std::string &bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = ::read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return 0;
}

int writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

} // namespace

FileBytes readFile(const std::string &path, std::int64_t mostBytes) {
  FileBytes file;
  // Else a pipe in a file's place would be waited for.
  Descriptor opened(path, O_RDONLY | O_NONBLOCK);
  struct stat state{};
  if (opened.error() != 0)
    file.error = opened.error();
  else if (::fstat(opened.number(), &state) != 0)
    file.error = errno;
  else if (!S_ISREG(state.st_mode))
    file.error = EINVAL;
  else if (state.st_size > mostBytes)
    file.error = EFBIG;
  if (file.error != 0)
    return file;
  file.bytes.resize(static_cast<std::size_t>(state.st_size));
  file.error = readAll(opened.number(), file.bytes);
  return file;
}

int writeNewFile(const std::string &path, std::string_view bytes) {
  Descriptor opened(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (opened.error() != 0)
    return opened.error();
  int error = writeAll(opened.number(), bytes);
  int closing = opened.close();
  return error != 0 ? error : closing;
}

int makeFolders(const std::string &path) {
  if (::mkdir(path.c_str(), 0700) == 0)
    return 0;
  int error = errno;
  if (error == ENOENT) {
    std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash == 0)
      return error;
    if (int above = makeFolders(path.substr(0, slash)); above != 0)
      return above;
    if (::mkdir(path.c_str(), 0700) == 0)
      return 0;
    error = errno;
  }
  struct stat state{};
  bool isFolder = ::stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode);
  return isFolder ? 0 : error == EEXIST ? ENOTDIR : error;
}

std::vector<std::string> listFolder(const std::string &path, int *error) {
  std::unique_ptr<DIR, int (*)(DIR *)> folder(::opendir(path.c_str()),
                                              &::closedir);
  if (error)
    *error = folder ? 0 : errno;
  std::vector<std::string> names;
  if (folder)
    while (const dirent *entry = ::readdir(folder.get()))
      if (entry->d_name[0] != '.')
        names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

int removeFolder(const std::string &path) {
  for (const std::string &name : listFolder(path))
    (void)::unlink((path + "/" + name).c_str());
  return ::rmdir(path.c_str()) == 0 ? 0 : errno;
}

FileState stateOf(const std::string &path) {
  struct stat state{};
  if (::stat(path.c_str(), &state) != 0)
    return {};
  constexpr double kNanosecond = 1e-9;
  return {static_cast<double>(state.st_mtim.tv_sec) +
              kNanosecond * static_cast<double>(state.st_mtim.tv_nsec),
          static_cast<std::int64_t>(state.st_size)};
}

void touch(const std::string &path) {
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

bool isAbsence(int error) { return error == ENOENT || error == ENOTDIR; }

std::string errorText(int error) {
  return std::generic_category().message(error);
}

} // namespace spargejit::cache

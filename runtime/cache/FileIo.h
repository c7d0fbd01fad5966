// SPDX-License-Identifier: Apache-2.0
//
// Files and folders as the caches need them: whole files, error numbers in
// place of exceptions, and nothing that a network file system lacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spargejit::cache {

struct FileBytes {
  /// The system's error number; 0 for success.
  int error = 0;
  std::string bytes;
};

/// The whole file; EFBIG for one of more than `mostBytes`, EINVAL for what is
/// no regular file.
FileBytes readFile(const std::string &path, std::int64_t mostBytes);

/// Makes a file that does not exist yet. Returns an error number; a file that
/// could not be completed stays behind.
int writeNewFile(const std::string &path, std::string_view bytes);
/// The same with every part of a folder's path that is missing, for the user
/// alone (mode 0700). An existing folder is success.
int makeFolders(const std::string &path);

/// Names of the entries of a folder, without those that start with a dot.
/// `*error`, where wanted, is why there are none.
std::vector<std::string> listFolder(const std::string &path,
                                    int *error = nullptr);

/// Removes a folder and the files in it; returns an error number.
int removeFolder(const std::string &path);

/// Seconds since the epoch at which a file was last written, and its bytes;
/// -1 where there is none.
struct FileState {
  double seconds = -1;
  std::int64_t bytes = -1;
};
FileState stateOf(const std::string &path);
/// Sets that time to now; on a file system that refuses, nothing happens.
void touch(const std::string &path);

/// Whether an error number says that there is nothing at a path.
bool isAbsence(int error);
/// The system's words for an error number.
std::string errorText(int error);

} // namespace spargejit::cache

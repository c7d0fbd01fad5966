// SPDX-License-Identifier: Apache-2.0
//
// Method texts by name.
#include "runtime/plan/MethodLibrary.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <sys/stat.h>

namespace spargejit::plan {

namespace {

constexpr std::string_view kFolder = "methods/";
constexpr std::string_view kBackwardFolder = "backward/";
constexpr std::string_view kSuffix = ".mlir";

std::shared_ptr<const MethodText>
makeMethod(std::string name, std::string fileName, std::string text) {
  Digest digest = hashText(text);
  return std::make_shared<const MethodText>(MethodText{
      std::move(name), std::move(fileName), std::move(text), digest});
}

Status cannotRead(const std::string &path, const std::string &reason) {
  return Status(ErrorCode::IoError,
                fmt::format("config.method: cannot read {}: {}", path, reason));
}

} // namespace

MethodLibrary::MethodLibrary(
    const std::vector<kernels_ir::EmbeddedText> &texts) {
  for (const kernels_ir::EmbeddedText &text : texts) {
    std::string_view path = text.path;
    const bool isBackward = path.starts_with(kBackwardFolder);
    if (!(isBackward || path.starts_with(kFolder)) || !path.ends_with(kSuffix))
      continue;
    path.remove_suffix(kSuffix.size());
    if (!isBackward)
      path.remove_prefix(kFolder.size());
    std::string name(path);
    if (!isBackward)
      names_.push_back(name);
    auto method =
        makeMethod(name, std::string(text.path), std::string(text.text));
    builtIn_.emplace(std::move(name), std::move(method));
  }
}

MethodLibrary::Found MethodLibrary::findBackward(Backward pass) const {
  auto it = builtIn_.find(pass == Backward::Dense ? "backward/dense"
                          : pass == Backward::BlockSparse
                              ? "backward/block_sparse"
                              : "backward/block_sparse_kept");
  if (it != builtIn_.end())
    return it->second;
  return Status(ErrorCode::Internal,
                "the backward pass is not among the built-in texts (bug in "
                "spargejit)");
}

MethodLibrary::Found MethodLibrary::find(const std::string &name) {
  auto it = builtIn_.find(name);
  if (it != builtIn_.end())
    return it->second;
  if (name.ends_with(kSuffix))
    return findFile(name);
  return Status(
      ErrorCode::InvalidArgument,
      fmt::format("config.method: expected one of \"{}\", or the path of a "
                  "method file (ends in .mlir), got \"{}\"",
                  fmt::join(names_, "\", \""), name));
}

MethodLibrary::Found MethodLibrary::findFile(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return cannotRead(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return cannotRead(path, "not a regular file");
  if (info.st_size > kMostTextBytes)
    return cannotRead(path, fmt::format("expected at most {} bytes, got {}",
                                        kMostTextBytes, info.st_size));
  FileStamp stamp{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                  info.st_mtim.tv_nsec};
  {
    std::lock_guard lock(filesMutex_);
    auto it = files_.find(path);
    if (it != files_.end() && it->second.stamp == stamp)
      return it->second.method;
  }
  // Read without the lock. The stamp is older than the text, so that a change
  // in between is found by the next call.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file)
    return cannotRead(path, errno ? std::strerror(errno) : "it became shorter");
  auto method = makeMethod(path, path, std::move(text));
  std::lock_guard lock(filesMutex_);
  files_[path] = FileEntry{stamp, method};
  return method;
}

} // namespace spargejit::plan

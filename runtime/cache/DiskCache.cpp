// SPDX-License-Identifier: Apache-2.0
//
// The disk cache.
#include "runtime/cache/DiskCache.h"

#include "runtime/base/Log.h"
#include "runtime/cache/CacheUpkeep.h"
#include "runtime/cache/FileIo.h"

#include <fmt/format.h>

namespace spargejit::cache {

namespace {

/// Once for reading and once for writing, whatever the entry.
void warn(const std::string &folder, const char *what,
          const std::string &reason) {
  warnOnce(fmt::format("the kernel cache {} {} ({}); working without it",
                       folder, what, reason));
}

} // namespace

std::string DiskCache::entriesFolder() const { return versionFolder(folder_); }

std::optional<StoredEntry> DiskCache::find(const KernelKey &key) const {
  if (!isOn())
    return std::nullopt;
  const std::string parent = entriesFolder();
  const std::string place = parent + "/" + key.hex();
  ReadEntry read = readEntry(place);
  if (read.state == ReadEntry::State::Found && read.key != key) {
    read.state = ReadEntry::State::Damaged;
    read.reason = "it belongs to another key";
  }
  switch (read.state) {
  case ReadEntry::State::Found:
    touch(place + "/" + kManifestName);
    return std::move(read.entry);
  case ReadEntry::State::Absent:
    break;
  case ReadEntry::State::Unreadable:
    warn(folder_, "cannot be read", read.reason);
    break;
  case ReadEntry::State::Damaged:
    logFormatted(LogLevel::Warning,
                 "removed a damaged entry of the kernel cache, {}: {}", place,
                 read.reason);
    removeEntry(parent, key.hex());
    break;
  }
  return std::nullopt;
}

bool DiskCache::prepare() const {
  if (!isOn())
    return false;
  int error = makeFolders(entriesFolder());
  if (error != 0)
    warn(folder_, "cannot be written", errorText(error));
  return error == 0;
}

void DiskCache::keep(const KernelKey &key, const StoredEntry &entry) const {
  if (!prepare())
    return;
  int error = publishEntry(entriesFolder(), key.hex(), key, entry);
  if (error != 0) {
    warn(folder_, "cannot be written", errorText(error));
    return;
  }
  noteWritten(folder_, static_cast<std::int64_t>(entry.code.size()),
              mostBytes_);
}

CompileClaim DiskCache::claim(const KernelKey &key) const {
  if (!prepare())
    return CompileClaim();
  return CompileClaim::take(entriesFolder(), key.hex());
}

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// Listing, trimming and clearing a cache folder.
#include "runtime/cache/CacheUpkeep.h"

#include "runtime/base/Log.h"
#include "runtime/cache/FileIo.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <dirent.h>
#include <memory>
#include <tuple>
#include <unistd.h>

namespace spargejit::cache {

namespace {

/// The entries' layout; with EntryFolder's manifest version.
constexpr const char *kVersionName = "v1";
/// Time of the last trim by any process.
constexpr const char *kTrimmedName = ".trimmed";
constexpr double kTrimEverySeconds = 600;
/// What is not finished by then never will be.
constexpr double kUnfinishedSeconds = 3600;

double now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

EntryInfo describeEntry(const std::string &folder, const std::string &name) {
  EntryInfo info;
  info.name = name;
  const std::string place = folder + "/" + name;
  for (const std::string &file : listFolder(place))
    info.bytes += std::max<std::int64_t>(0, stateOf(place + "/" + file).bytes);
  info.lastUsed = stateOf(place + "/" + kManifestName).seconds;
  return info;
}

/// Removes what writers and claims of ended processes left behind.
void removeLeftovers(const std::string &folder) {
  std::unique_ptr<DIR, int (*)(DIR *)> opened(::opendir(folder.c_str()),
                                              &::closedir);
  if (!opened)
    return;
  while (const dirent *entry = ::readdir(opened.get())) {
    const std::string name = entry->d_name;
    const std::string place = folder + "/" + name;
    bool isFolder = name.starts_with(kUnfinishedPrefix);
    if (!isFolder && !name.starts_with(".claim-"))
      continue;
    double written = stateOf(place).seconds;
    if (written < 0 || now() - written < kUnfinishedSeconds)
      continue;
    if (isFolder)
      removeFolder(place);
    else
      (void)::unlink(place.c_str());
  }
}

} // namespace

std::string versionFolder(const std::string &cacheFolder) {
  return cacheFolder + "/" + kVersionName;
}

std::vector<EntryInfo> listEntries(const std::string &cacheFolder) {
  const std::string folder = versionFolder(cacheFolder);
  std::vector<EntryInfo> entries;
  for (const std::string &name : listFolder(folder))
    entries.push_back(describeEntry(folder, name));
  std::sort(entries.begin(), entries.end(),
            [](const EntryInfo &a, const EntryInfo &b) {
              return std::tie(a.lastUsed, a.name) <
                     std::tie(b.lastUsed, b.name);
            });
  return entries;
}

int trimEntries(const std::string &cacheFolder, std::int64_t mostBytes) {
  const std::string folder = versionFolder(cacheFolder);
  removeLeftovers(folder);
  std::vector<EntryInfo> entries = listEntries(cacheFolder);
  std::int64_t bytes = 0;
  for (const EntryInfo &entry : entries)
    bytes += entry.bytes;
  int removed = 0;
  for (const EntryInfo &entry : entries) {
    if (bytes <= mostBytes)
      break;
    if (removeEntry(folder, entry.name) == 0)
      ++removed;
    bytes -= entry.bytes;
  }
  return removed;
}

int clearEntries(const std::string &cacheFolder) {
  const std::string folder = versionFolder(cacheFolder);
  int removed = 0;
  for (const std::string &name : listFolder(folder))
    removed += removeEntry(folder, name) == 0;
  removeLeftovers(folder);
  return removed;
}

void noteWritten(const std::string &cacheFolder, std::int64_t bytes,
                 std::int64_t mostBytes) {
  // Listing a large folder is slow, so it is not done for each entry: an eighth
  // of the budget may be written in between, by each process.
  static std::atomic<std::int64_t> writtenSinceTrim{0};
  std::int64_t written = writtenSinceTrim.fetch_add(bytes) + bytes;
  const std::string mark = versionFolder(cacheFolder) + "/" + kTrimmedName;
  bool isDue = now() - stateOf(mark).seconds > kTrimEverySeconds;
  if (!isDue && written < mostBytes / 8)
    return;
  writtenSinceTrim = 0;
  if (writeNewFile(mark, "") != 0)
    touch(mark);
  if (int removed = trimEntries(cacheFolder, mostBytes); removed > 0)
    logFormatted(LogLevel::Info,
                 "removed {} entries from the kernel cache {}, which may take "
                 "{} bytes",
                 removed, cacheFolder, mostBytes);
}

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// What is in a cache folder, and how it is kept small: for `spargejit cache`
// and for DiskCache.
#pragma once

#include "runtime/cache/EntryFolder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::cache {

/// Where this version keeps its entries in a cache folder; other versions'
/// entries are never looked at.
std::string versionFolder(const std::string &cacheFolder);

struct EntryInfo {
  /// The entry's name in the folder, which is its key.
  std::string name;
  /// All its files together.
  std::int64_t bytes = 0;
  /// Seconds since the epoch.
  double lastUsed = 0;
};

/// The entries, the one used longest ago first. Opens none of them.
std::vector<EntryInfo> listEntries(const std::string &cacheFolder);

/// Removes those used longest ago until the rest takes at most `mostBytes`, and
/// what writers left behind that ended early. Returns how many entries went.
int trimEntries(const std::string &cacheFolder, std::int64_t mostBytes);

/// Removes every entry. Returns how many went.
int clearEntries(const std::string &cacheFolder);

/// After `bytes` were written: trims where the budget may be exceeded and that
/// has not been looked at lately.
void noteWritten(const std::string &cacheFolder, std::int64_t bytes,
                 std::int64_t mostBytes);

} // namespace spargejit::cache

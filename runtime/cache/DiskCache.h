// SPDX-License-Identifier: Apache-2.0
//
// Kernels, plans and parameter lists on disk, for the next process. A folder
// v<N>/<key> is one entry (EntryFolder.h). Many processes and machines may use
// one folder: entries appear and go by a rename, and nothing relies on locks.
// Whoever can write to the folder decides what code runs.
#pragma once

#include "runtime/cache/CompileClaim.h"
#include "runtime/cache/EntryFolder.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spargejit::cache {

/// Thread-safe. No failure of the file system is a failure of a call: an entry
/// that cannot be read is a miss, one that cannot be written is not kept, and
/// the first of each is logged once.
class DiskCache {
public:
  /// Keeps nothing.
  DiskCache() = default;
  /// `folder` is made when it is first written to. `mostBytes`: what all
  /// entries together may take before those used longest ago are removed.
  DiskCache(const std::string &folder, std::int64_t mostBytes)
      : folder_(folder), mostBytes_(mostBytes) {}

  bool isOn() const { return !folder_.empty(); }

  /// The entry of `key`, verified, and marked as used now. One that is damaged
  /// is removed with a warning.
  std::optional<StoredEntry> find(const KernelKey &key) const;
  /// Writes an entry, and makes room for it where the budget is exceeded.
  void keep(const KernelKey &key, const StoredEntry &entry) const;
  /// Waits while another process makes the entry of `key`; see CompileClaim.
  CompileClaim claim(const KernelKey &key) const;

  /// The folder of this version's entries.
  std::string entriesFolder() const;

private:
  bool prepare() const;

  std::string folder_;
  std::int64_t mostBytes_ = 0;
};

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// Where entries are looked for beyond this process's memory: packs, then the
// disk cache.
#pragma once

#include "runtime/base/Environment.h"
#include "runtime/cache/DiskCache.h"
#include "runtime/cache/Pack.h"

#include <optional>
#include <string>
#include <vector>

namespace spargejit::cache {

/// Thread-safe.
class ArtifactStore {
public:
  /// Nothing is found and nothing kept.
  ArtifactStore() = default;
  /// The packs and the cache that the environment names. A pack that cannot be
  /// opened is left out with a warning.
  explicit ArtifactStore(const Environment &settings);

  std::optional<StoredEntry> find(const KernelKey &key) const;
  void keep(const KernelKey &key, const StoredEntry &entry) const {
    disk_.keep(key, entry);
  }
  CompileClaim claim(const KernelKey &key) const { return disk_.claim(key); }

  /// Where find() looks, for messages behind "there is no artifact":
  /// " in pack /a, kernel cache /b".
  std::string places() const;

private:
  std::vector<Pack> packs_;
  DiskCache disk_;
  std::string cacheFolder_;
};

} // namespace spargejit::cache

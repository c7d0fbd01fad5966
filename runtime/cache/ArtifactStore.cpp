// SPDX-License-Identifier: Apache-2.0
//
// Packs and disk cache.
#include "runtime/cache/ArtifactStore.h"

#include "runtime/base/Log.h"

#include <fmt/format.h>

namespace spargejit::cache {

ArtifactStore::ArtifactStore(const Environment &settings)
    : cacheFolder_(settings.cacheFolder) {
  for (const std::string &folder : settings.packFolders) {
    auto pack = Pack::open(folder);
    if (pack.ok())
      packs_.push_back(*std::move(pack));
    else
      warnOnce("SPARGEJIT_PACK: " + pack.status().message());
  }
  constexpr std::int64_t kMegabyte = 1 << 20;
  if (!cacheFolder_.empty())
    disk_ = DiskCache(cacheFolder_, settings.cacheMaxMegabytes * kMegabyte);
}

std::optional<StoredEntry> ArtifactStore::find(const KernelKey &key) const {
  for (const Pack &pack : packs_)
    if (auto entry = pack.find(key))
      return entry;
  return disk_.find(key);
}

std::string ArtifactStore::places() const {
  std::string text;
  for (const Pack &pack : packs_)
    text += fmt::format("{}pack {}", text.empty() ? "" : ", ", pack.folder());
  if (!cacheFolder_.empty())
    text += fmt::format("{}kernel cache {}", text.empty() ? "" : ", ",
                        cacheFolder_);
  return text.empty()
             ? ", nor a pack (SPARGEJIT_PACK) or kernel cache to look in"
             : " in " + text;
}

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// Step 4 of 9 in the life of a call (runtime/README.md): have we built this
// kernel already? Artifacts in memory, for the life of the process; behind
// them packs and the disk cache.
#pragma once

#include "runtime/base/SingleFlight.h"
#include "runtime/cache/ArtifactStore.h"

#include <functional>
#include <memory>
#include <string>

namespace spargejit::cache {

/// Thread-safe. One compilation per key, however many threads ask, and as a
/// rule one for all processes that use one cache folder; no lock is held while
/// it runs. A failure is kept with its message, so that a loop does not repeat
/// it.
class KernelCache {
public:
  using Compile = std::function<Result<KernelArtifact>()>;
  using Outcome = Result<std::shared_ptr<const KernelArtifact>>;

  /// In memory alone.
  KernelCache() = default;
  /// `generator`: the code generator's identity, written beside what is kept.
  KernelCache(ArtifactStore store, std::string generator)
      : store_(std::move(store)), generator_(std::move(generator)) {}

  /// The artifact of `key`, which is that of `spec`; runs `compile` when
  /// neither this process nor the store has it, counts and logs it.
  Outcome get(const KernelKey &key, const KernelSpec &spec,
              const Compile &compile);

  /// Number of keys with an outcome or under way.
  std::size_t size() const { return artifacts_.size(); }
  const ArtifactStore &store() const { return store_; }

private:
  Outcome make(const KernelKey &key, const KernelSpec &spec,
               const Compile &compile) const;
  std::shared_ptr<const KernelArtifact> load(const KernelKey &key,
                                             const KernelSpec &spec) const;

  ArtifactStore store_;
  std::string generator_;
  SingleFlight<KernelKey, KernelArtifact, KernelKeyHash> artifacts_;
};

} // namespace spargejit::cache

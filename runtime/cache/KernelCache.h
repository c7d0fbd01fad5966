// SPDX-License-Identifier: Apache-2.0
//
// Step 4 of 9 in the life of a call (runtime/README.md): have we built this
// kernel already? Artifacts in memory, for the life of the process.
#pragma once

#include "runtime/base/SingleFlight.h"
#include "runtime/cache/KernelKey.h"

#include <functional>
#include <memory>

namespace spargejit::cache {

/// Thread-safe. One compilation per key, however many threads ask; no lock is
/// held while it runs. A failure is kept with its message, so that a loop does
/// not repeat it.
class KernelCache {
public:
  using Compile = std::function<Result<KernelArtifact>()>;

  /// The artifact of `key`; runs `compile` when this process has none, counts
  /// and logs it. `what` describes the kernel in the log line.
  Result<std::shared_ptr<const KernelArtifact>>
  get(const KernelKey &key, const std::string &what, const Compile &compile);

  /// Number of keys with an outcome or under way.
  std::size_t size() const { return artifacts_.size(); }

private:
  SingleFlight<KernelKey, KernelArtifact, KernelKeyHash> artifacts_;
};

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache.
#include "runtime/cache/KernelCache.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"

#include <chrono>

namespace spargejit::cache {

namespace {

Result<std::shared_ptr<const KernelArtifact>>
compileNow(const std::string &what, const KernelCache::Compile &compile) {
  auto begin = std::chrono::steady_clock::now();
  Result<KernelArtifact> artifact = compile();
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  // ArtifactMissing tells that nothing was compiled.
  bool ran =
      artifact.ok() || artifact.status().code() != ErrorCode::ArtifactMissing;
  if (ran)
    countCompilation(elapsed.count());
  if (!artifact.ok())
    return artifact.status();
  logFormatted(LogLevel::Info, "compiled {} in {:.0f} ms", what,
               elapsed.count());
  return std::make_shared<const KernelArtifact>(*std::move(artifact));
}

} // namespace

Result<std::shared_ptr<const KernelArtifact>>
KernelCache::get(const KernelKey &key, const std::string &what,
                 const Compile &compile) {
  bool hit = false;
  auto outcome =
      artifacts_.get(key, [&] { return compileNow(what, compile); }, &hit);
  if (hit && outcome.ok())
    countKernelCacheHits(1);
  return outcome;
}

} // namespace spargejit::cache

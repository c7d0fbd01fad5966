// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache: memory, then packs and disk, then a compilation.
#include "runtime/cache/KernelCache.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"
#include "runtime/cache/ArtifactText.h"

#include <chrono>

namespace spargejit::cache {

namespace {

Result<KernelArtifact> compileNow(const KernelSpec &spec,
                                  const KernelCache::Compile &compile) {
  auto begin = std::chrono::steady_clock::now();
  Result<KernelArtifact> artifact = compile();
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  // ArtifactMissing tells that nothing was compiled.
  bool ran =
      artifact.ok() || artifact.status().code() != ErrorCode::ArtifactMissing;
  if (ran)
    countCompilation(elapsed.count());
  if (artifact.ok())
    logFormatted(LogLevel::Info, "compiled {} in {:.0f} ms", describeSpec(spec),
                 elapsed.count());
  return artifact;
}

} // namespace

KernelCache::Outcome KernelCache::get(const KernelKey &key,
                                      const KernelSpec &spec,
                                      const Compile &compile) {
  bool hit = false;
  auto outcome =
      artifacts_.get(key, [&] { return make(key, spec, compile); }, &hit);
  if (hit && outcome.ok())
    countKernelCacheHits(1);
  return outcome;
}

std::shared_ptr<const KernelArtifact>
KernelCache::load(const KernelKey &key, const KernelSpec &spec) const {
  auto entry = store_.find(key);
  if (!entry)
    return nullptr;
  auto artifact = artifactOf(*entry);
  if (!artifact.ok()) {
    warnOnce("passed over a kept kernel: " + artifact.status().message());
    return nullptr;
  }
  countKernelFromDisk();
  logFormatted(LogLevel::Debug, "found {} on disk", describeSpec(spec));
  return std::make_shared<const KernelArtifact>(*std::move(artifact));
}

KernelCache::Outcome KernelCache::make(const KernelKey &key,
                                       const KernelSpec &spec,
                                       const Compile &compile) const {
  if (auto kept = load(key, spec))
    return kept;
  CompileClaim claim = store_.claim(key);
  if (claim.hasWaited())
    if (auto kept = load(key, spec))
      return kept;
  auto artifact = compileNow(spec, compile);
  if (!artifact.ok())
    return artifact.status();
  store_.keep(key, entryOf(spec, generator_, *artifact));
  return std::make_shared<const KernelArtifact>(*std::move(artifact));
}

} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache: one compilation per key, failures kept, nothing locked.
#include "runtime/cache/KernelCache.h"

#include "spargejit/library.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace spargejit::cache {
namespace {

KernelSpec specOf(const std::string &kernel) {
  KernelSpec spec;
  spec.kernel = kernel;
  return spec;
}

KernelKey keyOf(const std::string &kernel) {
  return KernelKey::of(specOf(kernel), "text", "generator");
}

KernelArtifact artifact(const std::string &code) {
  KernelArtifact result;
  result.code = code;
  return result;
}

TEST(KernelCache, CompilesOnceForSixteenThreads) {
  KernelCache cache;
  const Counters before = counters();
  std::atomic<int> compiled{0};
  std::atomic<int> sameArtifact{0};
  std::latch start(16);
  std::vector<std::shared_ptr<const KernelArtifact>> results(16);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      auto outcome = cache.get(keyOf("a"), specOf("a"), [&] {
        ++compiled;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return Result<KernelArtifact>(artifact("code of a"));
      });
      results[i] = *outcome;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : results)
    sameArtifact += result == results[0] && result->code == "code of a";
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(sameArtifact, 16);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(counters().kernelsCompiled - before.kernelsCompiled, 1);
  EXPECT_GE(counters().compileMilliseconds - before.compileMilliseconds, 25);
}

TEST(KernelCache, CountsHits) {
  KernelCache cache;
  auto compile = [] { return Result<KernelArtifact>(artifact("x")); };
  ASSERT_TRUE(cache.get(keyOf("a"), specOf("a"), compile).ok());
  const Counters before = counters();
  ASSERT_TRUE(cache.get(keyOf("a"), specOf("a"), compile).ok());
  ASSERT_TRUE(cache.get(keyOf("a"), specOf("a"), compile).ok());
  ASSERT_TRUE(cache.get(keyOf("b"), specOf("b"), compile).ok());
  EXPECT_EQ(counters().kernelCacheHits - before.kernelCacheHits, 2);
  EXPECT_EQ(counters().kernelsCompiled - before.kernelsCompiled, 1);
}

TEST(KernelCache, RemembersAFailureWithItsMessage) {
  KernelCache cache;
  int compiled = 0;
  for (int i = 0; i < 5; ++i) {
    auto outcome = cache.get(keyOf("a"), specOf("a"), [&] {
      ++compiled;
      return Result<KernelArtifact>(
          Status(ErrorCode::CompileFailed, "a.mlir:3:1: expected ')'"));
    });
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), ErrorCode::CompileFailed);
    EXPECT_EQ(outcome.status().message(), "a.mlir:3:1: expected ')'");
  }
  EXPECT_EQ(compiled, 1);
}

TEST(KernelCache, CountsNoCompilationWhereNoneRan) {
  KernelCache cache;
  const Counters before = counters();
  auto outcome = cache.get(keyOf("a"), specOf("a"), [] {
    return Result<KernelArtifact>(
        Status(ErrorCode::ArtifactMissing, "run this"));
  });
  EXPECT_EQ(outcome.status().code(), ErrorCode::ArtifactMissing);
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
}

TEST(KernelCache, HoldsNoLockWhileCompiling) {
  KernelCache cache;
  // "a" is not done before "b" is, which another thread compiles meanwhile.
  std::latch compilingA(1), doneB(1);
  std::thread other([&] {
    compilingA.wait();
    auto outcome = cache.get(keyOf("b"), specOf("b"), [] {
      return Result<KernelArtifact>(artifact("b"));
    });
    EXPECT_TRUE(outcome.ok());
    doneB.count_down();
  });
  auto outcome = cache.get(keyOf("a"), specOf("a"), [&] {
    compilingA.count_down();
    doneB.wait();
    return Result<KernelArtifact>(artifact("a"));
  });
  other.join();
  EXPECT_TRUE(outcome.ok());
}

TEST(KernelCache, LogsACompilation) {
  KernelCache cache;
  std::vector<std::string> lines;
  setLogCallback(
      [&](LogLevel, const std::string &line) { lines.push_back(line); });
  auto compile = [] { return Result<KernelArtifact>(artifact("x")); };
  EXPECT_TRUE(cache.get(keyOf("a"), specOf("a"), compile).ok());
  EXPECT_TRUE(cache.get(keyOf("a"), specOf("a"), compile).ok());
  setLogCallback({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("compiled a for host () in ", 0), 0u) << lines[0];
}

} // namespace
} // namespace spargejit::cache

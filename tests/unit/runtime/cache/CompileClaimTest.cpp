// SPDX-License-Identifier: Apache-2.0
//
// Many processes and threads on a cold cache.
#include "runtime/cache/CompileClaim.h"

#include "runtime/cache/CacheUpkeep.h"
#include "runtime/cache/FileIo.h"
#include "runtime/cache/KernelCache.h"
#include "tests/unit/runtime/cache/CacheTrial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fcntl.h>
#include <latch>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace spargejit::cache {
namespace {

using namespace std::chrono_literals;

class ColdCacheTest : public testing::Test {
protected:
  void SetUp() override {
    settings_.cacheFolder = folder_.file("cache");
    spec_.kernel = "slow";
    key_ = KernelKey::of(spec_, "text", "fake 1");
  }

  /// Takes a while, and leaves a byte for each time it runs.
  Result<KernelArtifact> compile() const {
    int file = ::open(folder_.file("compiled").c_str(),
                      O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)!::write(file, "x", 1);
    ::close(file);
    std::this_thread::sleep_for(100ms);
    KernelArtifact artifact;
    artifact.code = "code of slow";
    return artifact;
  }
  bool callIsRight() const {
    KernelCache cache(ArtifactStore(settings_), "fake 1");
    auto artifact = cache.get(key_, spec_, [this] { return compile(); });
    return artifact.ok() && (*artifact)->code == "code of slow";
  }
  std::size_t compilations() const {
    return files::readBytes(folder_.file("compiled")).size();
  }

  files::TemporaryFolder folder_;
  Environment settings_;
  KernelSpec spec_;
  KernelKey key_;
};

TEST_F(ColdCacheTest, IsFilledOnceBySixtyFourProcesses) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      char byte = 0;
      ::close(gate[1]);
      (void)!::read(gate[0], &byte, 1); // until the parent closes its end
      ::_exit(callIsRight() ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_GE(compilations(), 1u);
  EXPECT_LE(compilations(), 2u);
}

TEST_F(ColdCacheTest, IsFilledOnceBySixteenThreads) {
  // Each with a memory of its own, as processes have.
  std::latch start(16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      EXPECT_TRUE(callIsRight());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_LE(compilations(), 2u);
}

TEST_F(ColdCacheTest, ServesAChildForkedAfterUse) {
  KernelCache cache(ArtifactStore(settings_), "fake 1");
  auto use = [&] {
    auto artifact = cache.get(key_, spec_, [this] { return compile(); });
    return artifact.ok() && (*artifact)->code == "code of slow";
  };
  ASSERT_TRUE(use());
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(use() && callIsRight() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(compilations(), 1u);
}

TEST_F(ColdCacheTest, CountsWhatItFoundOnDisk) {
  ASSERT_TRUE(callIsRight());
  const Counters before = counters();
  ASSERT_TRUE(callIsRight());
  EXPECT_EQ(counters().kernelsFromDisk - before.kernelsFromDisk, 1);
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
}

class CompileClaimTest : public testing::Test {
protected:
  std::string path() const { return folder_.file(".claim-a"); }
  CompileClaim take(CompileClaim::Limits limits = {}) const {
    return CompileClaim::take(folder_.file("."), "a", limits);
  }

  files::TemporaryFolder folder_;
};

TEST_F(CompileClaimTest, IsGoneWhenItsOwnerIs) {
  {
    CompileClaim claim = take();
    EXPECT_TRUE(claim.isHeld());
    EXPECT_FALSE(claim.hasWaited());
    EXPECT_GT(stateOf(path()).bytes, 0);
  }
  EXPECT_LT(stateOf(path()).bytes, 0);
}

TEST_F(CompileClaimTest, WaitsForTheOwner) {
  auto owned = std::make_unique<CompileClaim>(take());
  std::thread other([&] {
    CompileClaim claim = take();
    EXPECT_TRUE(claim.hasWaited());
  });
  std::this_thread::sleep_for(20ms);
  owned.reset();
  other.join();
}

TEST_F(CompileClaimTest, PassesToTheNextWhenTheOwnerWasKilled) {
  pid_t child = ::fork();
  if (child == 0) {
    CompileClaim claim = take();
    ::_exit(claim.isHeld() ? 0 : 1); // without taking it back
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_GT(stateOf(path()).bytes, 0);
  auto begin = std::chrono::steady_clock::now();
  CompileClaim claim = take();
  EXPECT_TRUE(claim.isHeld());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(CompileClaimTest, IsGivenUpOnWhenNothingIsKnownOfTheOwner) {
  for (const char *text : {"", "17\nsome-other-machine pid:[1]", "rubbish"}) {
    files::writeBytes(path(), text);
    CompileClaim claim = take({10s, 50ms});
    EXPECT_TRUE(claim.hasWaited());
    EXPECT_FALSE(claim.isHeld());
    // Nobody else waits for it again.
    EXPECT_LT(stateOf(path()).bytes, 0);
  }
}

} // namespace
} // namespace spargejit::cache

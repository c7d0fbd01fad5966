// SPDX-License-Identifier: Apache-2.0
//
// The disk cache: every fault is a miss and one warning.
#include "runtime/cache/DiskCache.h"

#include "runtime/cache/CacheUpkeep.h"
#include "tests/unit/runtime/cache/CacheTrial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace spargejit::cache {
namespace {

namespace fs = std::filesystem;
using unit::keyNamed;
using unit::operator==;

constexpr std::int64_t kPlenty = 1 << 30;

class DiskCacheTest : public testing::Test {
protected:
  std::string place(const std::string &name) const {
    return versionFolder(root()) + "/" + keyNamed(name).hex();
  }
  std::string root() const { return folder_.file("deep/cache"); }
  void setLastUsed(const std::string &name, std::chrono::seconds ago) const {
    fs::last_write_time(place(name) + "/" + kManifestName,
                        fs::file_time_type::clock::now() - ago);
  }

  files::TemporaryFolder folder_;
  reference::Random random_ = numerics::randomForTest();
  DiskCache cache_{folder_.file("deep/cache"), kPlenty};
};

TEST_F(DiskCacheTest, FindsWhatAnotherKept) {
  StoredEntry entry = unit::randomEntry(random_, 1000);
  EXPECT_FALSE(cache_.find(keyNamed("a")));
  cache_.keep(keyNamed("a"), entry);
  auto found = DiskCache(root(), kPlenty).find(keyNamed("a"));
  ASSERT_TRUE(found);
  EXPECT_TRUE(*found == entry);
  EXPECT_FALSE(cache_.find(keyNamed("b")));
}

TEST_F(DiskCacheTest, KeepsNothingWhenItIsOff) {
  DiskCache off;
  EXPECT_FALSE(off.isOn());
  off.keep(keyNamed("a"), unit::randomEntry(random_, 10));
  EXPECT_FALSE(off.find(keyNamed("a")));
  EXPECT_FALSE(off.claim(keyNamed("a")).isHeld());
}

TEST_F(DiskCacheTest, RemovesADamagedEntryWithOneWarning) {
  for (const char *file : {kManifestName, "kernel.o"}) {
    StoredEntry entry = unit::randomEntry(random_, 1000);
    cache_.keep(keyNamed("a"), entry);
    const std::string path = place("a") + "/" + file;
    std::string bytes = files::readBytes(path);
    // A manifest without the newline at its end is whole.
    files::writeBytes(path,
                      bytes.substr(0, random_.next() % (bytes.size() - 1)));
    unit::Warnings warnings;
    EXPECT_FALSE(cache_.find(keyNamed("a")));
    EXPECT_FALSE(cache_.find(keyNamed("a")));
    ASSERT_EQ(warnings.lines().size(), 1u);
    EXPECT_NE(warnings.lines()[0].find("damaged entry"), std::string::npos);
    EXPECT_FALSE(fs::exists(place("a")));
    cache_.keep(keyNamed("a"), entry);
    EXPECT_TRUE(cache_.find(keyNamed("a")));
    clearEntries(root());
  }
}

TEST_F(DiskCacheTest, GivesNoEntryOfAnotherKey) {
  cache_.keep(keyNamed("a"), unit::randomEntry(random_, 100));
  fs::rename(place("a"), place("b"));
  unit::Warnings warnings;
  EXPECT_FALSE(cache_.find(keyNamed("b")));
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_NE(warnings.lines()[0].find("another key"), std::string::npos);
}

TEST_F(DiskCacheTest, LooksAtNoOtherVersionsEntries) {
  cache_.keep(keyNamed("a"), unit::randomEntry(random_, 100));
  fs::rename(versionFolder(root()), root() + "/v0");
  unit::Warnings warnings;
  EXPECT_FALSE(cache_.find(keyNamed("a")));
  EXPECT_TRUE(warnings.lines().empty());
  EXPECT_TRUE(fs::exists(root() + "/v0"));
}

TEST_F(DiskCacheTest, WorksOnWhereItCannotBeWritten) {
  // Nothing can be made there, by the superuser either.
  for (const char *where : {"/proc/spargejit", "/dev/null/spargejit"}) {
    DiskCache cache(where, kPlenty);
    unit::Warnings warnings;
    for (int i = 0; i < 3; ++i) {
      cache.keep(keyNamed("a"), unit::randomEntry(random_, 100));
      EXPECT_FALSE(cache.claim(keyNamed("a")).isHeld());
      EXPECT_FALSE(cache.find(keyNamed("a")));
    }
    ASSERT_EQ(warnings.lines().size(), 1u) << where;
    EXPECT_NE(warnings.lines()[0].find("cannot be written"), std::string::npos);
  }
}

TEST_F(DiskCacheTest, LeavesAnEntryThatCannotBeRead) {
  cache_.keep(keyNamed("a"), unit::randomEntry(random_, 100));
  const std::string path = place("a") + "/" + kManifestName;
  fs::rename(path, path + ".away");
  fs::create_directory(path);
  unit::Warnings warnings;
  EXPECT_FALSE(cache_.find(keyNamed("a")));
  EXPECT_FALSE(cache_.find(keyNamed("a")));
  EXPECT_EQ(warnings.lines().size(), 1u);
  fs::remove(path);
  fs::rename(path + ".away", path);
  EXPECT_TRUE(cache_.find(keyNamed("a")));
}

TEST_F(DiskCacheTest, RemovesThoseUsedLongestAgo) {
  for (const char *name : {"a", "b", "c", "d"})
    cache_.keep(keyNamed(name), unit::randomEntry(random_, 10000));
  setLastUsed("b", std::chrono::hours(4));
  setLastUsed("a", std::chrono::hours(3));
  setLastUsed("d", std::chrono::hours(2));
  setLastUsed("c", std::chrono::hours(1));
  // Used again, so the youngest.
  ASSERT_TRUE(cache_.find(keyNamed("b")));
  auto entries = listEntries(root());
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, keyNamed("a").hex());
  EXPECT_GT(entries[0].bytes, 10000);
  EXPECT_EQ(trimEntries(root(), 25000), 2);
  EXPECT_FALSE(cache_.find(keyNamed("a")));
  EXPECT_FALSE(cache_.find(keyNamed("d")));
  EXPECT_TRUE(cache_.find(keyNamed("b")));
  EXPECT_TRUE(cache_.find(keyNamed("c")));
}

TEST_F(DiskCacheTest, StaysWithinItsBudgetAndAnEighth) {
  constexpr std::int64_t kBudget = 200000;
  DiskCache cache(root(), kBudget);
  std::int64_t most = 0;
  for (int i = 0; i < 60; ++i) {
    cache.keep(keyNamed(std::to_string(i)), unit::randomEntry(random_, 10000));
    std::int64_t bytes = 0;
    for (const EntryInfo &entry : listEntries(root()))
      bytes += entry.bytes;
    most = std::max(most, bytes);
  }
  EXPECT_LE(most, kBudget + kBudget / 8 + 2 * 11000);
  EXPECT_GT(most, kBudget / 2);
  EXPECT_TRUE(cache.find(keyNamed("59")));
}

TEST_F(DiskCacheTest, RemovesWhatKilledWritersLeft) {
  cache_.keep(keyNamed("a"), unit::randomEntry(random_, 100));
  const std::string entries = versionFolder(root());
  for (const char *name : {".unfinished-old", ".unfinished-new"})
    fs::create_directory(entries + "/" + name);
  files::writeBytes(entries + "/.claim-old", "");
  for (const char *name : {".unfinished-old", ".claim-old"})
    fs::last_write_time(entries + "/" + name, fs::file_time_type::clock::now() -
                                                  std::chrono::hours(2));
  EXPECT_EQ(trimEntries(root(), kPlenty), 0);
  EXPECT_FALSE(fs::exists(entries + "/.unfinished-old"));
  EXPECT_FALSE(fs::exists(entries + "/.claim-old"));
  EXPECT_TRUE(fs::exists(entries + "/.unfinished-new"));
  EXPECT_TRUE(cache_.find(keyNamed("a")));
  EXPECT_EQ(clearEntries(root()), 1);
  EXPECT_FALSE(cache_.find(keyNamed("a")));
}

TEST_F(DiskCacheTest, ServesThreadsThatReadWriteAndRemoveAtOnce) {
  std::vector<StoredEntry> entries;
  for (int i = 0; i < 4; ++i)
    entries.push_back(unit::randomEntry(random_, 3000));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        auto at = static_cast<std::size_t>((t + i) % 4);
        auto key = keyNamed(std::to_string(at));
        if (t == 0)
          clearEntries(root());
        else if (auto found = cache_.find(key))
          EXPECT_TRUE(*found == entries[at]);
        else
          cache_.keep(key, entries[at]);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace spargejit::cache

// SPDX-License-Identifier: Apache-2.0
//
// Entries on disk: what was written comes back, and nothing else does.
#include "runtime/cache/EntryFolder.h"

#include "tests/unit/runtime/cache/CacheTrial.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spargejit::cache {
namespace {

namespace fs = std::filesystem;
using unit::keyNamed;
using unit::operator==;
using State = ReadEntry::State;

class EntryFolderTest : public testing::Test {
protected:
  std::string place(const std::string &name) const {
    return folder_.file(name);
  }
  std::string manifest(const std::string &name) const {
    return place(name) + "/" + kManifestName;
  }
  int publish(const std::string &name, const StoredEntry &entry) const {
    return publishEntry(folder_.file("."), name, keyNamed(name), entry);
  }
  /// Changes a file of an entry; true when it then reads as `entry` all the
  /// same.
  bool readsAs(const std::string &name, const StoredEntry &entry) const {
    ReadEntry read = readEntry(place(name));
    EXPECT_NE(read.state, State::Unreadable);
    return read.state == State::Found && read.entry == entry &&
           read.key == keyNamed(name);
  }

  files::TemporaryFolder folder_;
  reference::Random random_ = numerics::randomForTest();
};

TEST_F(EntryFolderTest, GivesBackWhatWasWritten) {
  for (std::size_t bytes : {0, 1, 100, 100000}) {
    StoredEntry entry = unit::randomEntry(random_, bytes);
    ASSERT_EQ(publish("a", entry), 0);
    EXPECT_TRUE(readsAs("a", entry));
    ASSERT_EQ(removeEntry(folder_.file("."), "a"), 0);
    EXPECT_EQ(readEntry(place("a")).state, State::Absent);
  }
  StoredEntry plan{"plan", R"({"real":0.1})", "", ""};
  ASSERT_EQ(publish("b", plan), 0);
  EXPECT_TRUE(readsAs("b", plan));
  EXPECT_EQ(folder_.fileCount(), 1u);
}

TEST_F(EntryFolderTest, LeavesAnEntryThatIsThereAsItIs) {
  StoredEntry first = unit::randomEntry(random_, 50);
  ASSERT_EQ(publish("a", first), 0);
  EXPECT_EQ(publish("a", unit::randomEntry(random_, 60)), 0);
  EXPECT_TRUE(readsAs("a", first));
  EXPECT_EQ(folder_.fileCount(), 1u);
}

TEST_F(EntryFolderTest, RefusesEveryTruncatedFile) {
  StoredEntry entry = unit::randomEntry(random_, 40);
  ASSERT_EQ(publish("a", entry), 0);
  for (const std::string &file :
       {manifest("a"), place("a") + "/" + entry.codeFile}) {
    const std::string whole = files::readBytes(file);
    // All but the manifest's last line end, which says nothing.
    for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
      files::writeBytes(file, whole.substr(0, length));
      ASSERT_EQ(readEntry(place("a")).state, State::Damaged)
          << file << " cut to " << length;
    }
    files::writeBytes(file, whole);
    ASSERT_TRUE(readsAs("a", entry));
  }
}

TEST_F(EntryFolderTest, RefusesFlippedBits) {
  StoredEntry entry = unit::randomEntry(random_, 300);
  ASSERT_EQ(publish("a", entry), 0);
  for (const std::string &file :
       {manifest("a"), place("a") + "/" + entry.codeFile}) {
    const std::string whole = files::readBytes(file);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] =
          static_cast<char>(flipped[at] ^ (1 << (random_.next() % 8)));
      files::writeBytes(file, flipped);
      // Blanks of the manifest may change without changing what it says.
      ReadEntry read = readEntry(place("a"));
      bool isHarmless = read.state == State::Found && read.entry == entry;
      ASSERT_TRUE(read.state == State::Damaged || isHarmless)
          << file << " at " << at;
      if (file != manifest("a"))
        ASSERT_FALSE(isHarmless) << at;
    }
    files::writeBytes(file, whole);
  }
}

TEST_F(EntryFolderTest, RefusesAnotherVersionAndAForeignManifest) {
  StoredEntry a = unit::randomEntry(random_, 40);
  StoredEntry b = unit::randomEntry(random_, 40);
  ASSERT_EQ(publish("a", a), 0);
  ASSERT_EQ(publish("b", b), 0);
  std::string text = files::readBytes(manifest("a"));
  std::size_t version = text.find("\"manifest_version\": ") + 20;
  ASSERT_NE(version, std::string::npos + 20);
  std::string other = text;
  other[version] = '9';
  files::writeBytes(manifest("a"), other);
  ReadEntry read = readEntry(place("a"));
  EXPECT_EQ(read.state, State::Damaged);
  EXPECT_NE(read.reason.find("expected a manifest of version"),
            std::string::npos)
      << read.reason;

  files::writeBytes(manifest("a"), files::readBytes(manifest("b")));
  EXPECT_EQ(readEntry(place("a")).state, State::Damaged);
  // A whole entry of another key is whole, and says whose it is.
  fs::remove_all(place("a"));
  fs::copy(place("b"), place("a"));
  read = readEntry(place("a"));
  EXPECT_EQ(read.state, State::Found);
  EXPECT_EQ(read.key, keyNamed("b"));
}

TEST_F(EntryFolderTest, RefusesAMissingFileAndOneElsewhere) {
  StoredEntry entry = unit::randomEntry(random_, 40);
  ASSERT_EQ(publish("a", entry), 0);
  std::string text = files::readBytes(manifest("a"));
  text.replace(text.find("kernel.o"), 8, "../a/k.o");
  files::writeBytes(manifest("a"), text);
  EXPECT_EQ(readEntry(place("a")).state, State::Damaged);
  ASSERT_EQ(publish("b", entry), 0);
  fs::remove(place("b") + "/" + entry.codeFile);
  EXPECT_EQ(readEntry(place("b")).state, State::Damaged);
}

TEST_F(EntryFolderTest, TellsWhatCannotBeReadFromWhatIsDamaged) {
  ASSERT_EQ(publish("a", unit::randomEntry(random_, 40)), 0);
  fs::remove(manifest("a"));
  fs::create_directory(manifest("a"));
  EXPECT_EQ(readEntry(place("a")).state, State::Unreadable);
  EXPECT_EQ(readEntry(place("b")).state, State::Absent);
  // A pipe that nobody writes to is not waited for.
  fs::remove(manifest("a"));
  ASSERT_EQ(::mkfifo(manifest("a").c_str(), 0600), 0);
  EXPECT_EQ(readEntry(place("a")).state, State::Unreadable);
}

/// Runs `body` in a child and returns how it ended.
template <typename Body>
int inChild(Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(EntryFolderTest, LeavesNothingBehindOnAFullDisk) {
  StoredEntry entry = unit::randomEntry(random_, 5000);
  int status = inChild([&] {
    // What is written beyond the limit fails as it does on a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(publish("a", entry) == EFBIG ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder_.fileCount(), 0u);
}

TEST_F(EntryFolderTest, ShowsNoEntryInPartWhenAWriterIsKilled) {
  StoredEntry entry = unit::randomEntry(random_, 20000);
  for (int round = 0; round < 20; ++round) {
    pid_t child = ::fork();
    if (child == 0)
      for (int i = 0;; ++i)
        (void)publish("k" + std::to_string(i), entry);
    ::usleep(static_cast<useconds_t>(random_.next() % 8000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    int found = 0;
    for (int i = 0; fs::exists(place("k" + std::to_string(i))); ++i, ++found)
      ASSERT_TRUE(readsAs("k" + std::to_string(i), entry));
    for (int i = 0; i < found; ++i)
      ASSERT_EQ(removeEntry(folder_.file("."), "k" + std::to_string(i)), 0);
  }
}

} // namespace
} // namespace spargejit::cache

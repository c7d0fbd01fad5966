// SPDX-License-Identifier: Apache-2.0
//
// Files of records.
#include "autotune/db/RecordFile.h"

#include "tests/unit/autotune/RecordTrial.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <thread>

namespace spargejit::autotune {
namespace {

class RecordFileTest : public testing::Test {
protected:
  std::string path() const { return folder_.file("records.jsonl"); }
  std::vector<TuningRecord> read() const {
    auto file = readRecords(path());
    EXPECT_TRUE(file.ok()) << file.status().message();
    EXPECT_TRUE(file->skipped.empty());
    return file->records;
  }

  files::TemporaryFolder folder_;
  reference::Random random_ = numerics::randomForTest();
};

TEST_F(RecordFileTest, GrowsByAppending) {
  std::vector<TuningRecord> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back(unit::randomRecord(random_));
    ASSERT_TRUE(appendRecords(path(), {records.back()}).ok());
  }
  auto back = read();
  ASSERT_EQ(back.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(recordLine(back[i]), recordLine(records[i]));
  ASSERT_TRUE(writeRecords(path(), {records[3]}).ok());
  ASSERT_EQ(read().size(), 1u);
  EXPECT_EQ(folder_.fileCount(), 1u);
}

TEST_F(RecordFileTest, SkipsLinesThatAreNoRecordsAndSaysWhere) {
  ASSERT_TRUE(appendRecords(path(), {unit::randomRecord(random_)}).ok());
  // As a writer leaves it that was killed.
  std::string text = files::readBytes(path());
  files::writeBytes(path(), text + R"({"kernel":"atten)");
  ASSERT_TRUE(appendRecords(path(), {unit::randomRecord(random_)}).ok());
  auto file = readRecords(path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records.size(), 2u);
  ASSERT_EQ(file->skipped.size(), 1u);
  EXPECT_EQ(file->skipped[0], path() + ":3: expected a JSON object");
}

TEST_F(RecordFileTest, RefusesAFileOfAnotherKind) {
  files::writeBytes(path(), "{\"spargejit_tuning_records\":2}\n");
  auto file = readRecords(path());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(file.status().message().find(path() + ":1: expected"), 0u);
  // What is no file, and what has no end.
  for (const auto &[wrong, reason] :
       {std::pair(folder_.file("none"), "No such file or directory"),
        std::pair(std::string("/"), "Is a directory"),
        std::pair(std::string("/dev/zero"), "File too large")}) {
    Status status = readRecords(wrong).status();
    EXPECT_EQ(status.code(), ErrorCode::IoError);
    EXPECT_EQ(status.message(), wrong + ": " + reason);
  }
  EXPECT_EQ(appendRecords("/dev/null/x", {}).code(), ErrorCode::IoError);
  EXPECT_EQ(appendRecords("/dev/full", {unit::randomRecord(random_)}).code(),
            ErrorCode::IoError);
}

TEST_F(RecordFileTest, MixesNoLinesOfWritersAtTheSameTime) {
  ASSERT_TRUE(appendRecords(path(), {}).ok());
  ASSERT_TRUE(writeRecords(path(), {}).ok());
  std::vector<TuningRecord> records;
  for (int i = 0; i < 8; ++i)
    records.push_back(unit::randomRecord(random_));
  std::vector<std::thread> threads;
  for (const TuningRecord &record : records)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(appendRecords(path(), {record}).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(read().size(), 200u);
}

TEST_F(RecordFileTest, MergesTriesToTheLatest) {
  TuningRecord early = unit::randomRecord(random_);
  TuningRecord late = early;
  late.date = "2027-01-01T00:00:00.000Z";
  late.medianUs = early.medianUs + 1;
  late.problem.name = "by another name";
  TuningRecord other = early;
  other.environment.driver = "another";
  for (const auto &records :
       {std::vector{early, late, other}, std::vector{late, other, early}}) {
    auto merged = mergeRecords(records);
    ASSERT_EQ(merged.size(), 2u);
    EXPECT_EQ(merged[0].medianUs, late.medianUs);
  }
}

TEST_F(RecordFileTest, PrefersAWinnerThenTheDefaultThenTheFastest) {
  TuningRecord fast = unit::randomRecord(random_);
  fast.medianUs = 10;
  TuningRecord standard = fast;
  standard.config["stages"] = 99;
  standard.isDefault = true;
  standard.medianUs = 11;
  TuningRecord failed = fast;
  failed.config["stages"] = 98;
  failed.failure = "spills";
  failed.medianUs = 1;
  // Not by more than the spread, so that it did not win.
  auto best = bestRecords({fast, failed, standard});
  ASSERT_EQ(best.size(), 1u);
  EXPECT_TRUE(best[0].isDefault);
  fast.isWinner = true;
  best = bestRecords({standard, fast, failed});
  ASSERT_EQ(best.size(), 1u);
  EXPECT_TRUE(best[0].isWinner);
  fast.isWinner = false;
  EXPECT_EQ(bestRecords({failed, fast})[0].medianUs, 10);
  EXPECT_TRUE(bestRecords({failed}).empty());
}

} // namespace
} // namespace spargejit::autotune

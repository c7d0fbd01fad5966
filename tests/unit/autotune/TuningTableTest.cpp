// SPDX-License-Identifier: Apache-2.0
//
// What the records advise on one device, as calls ask for it.
#include "autotune/db/TuningTable.h"

#include "tests/unit/autotune/RecordTrial.h"

#include <gtest/gtest.h>

#include <thread>

namespace spargejit::autotune {
namespace {

TuningRecord recordOf(const ProblemShape &problem, std::int64_t tile) {
  auto random = numerics::randomForTest(static_cast<std::uint64_t>(tile));
  TuningRecord record = unit::randomRecord(random);
  record.problem = problem;
  record.config = {{"tile_kv", tile}};
  record.isWinner = true;
  return record;
}

TuningTable tableOf(std::vector<TuningRecord> records) {
  return TuningTable(std::move(records), unit::exampleEnvironment(),
                     {{"attention_fwd", "0123"}, {"pool", "4567"}});
}

TEST(TuningTable, GivesEqualConfigurationsOneAddress) {
  TuningTable table = tableOf({recordOf(unit::exampleProblem(1000), 7),
                               recordOf(unit::exampleProblem(9000), 8),
                               recordOf(unit::exampleProblem(70000), 7)});
  const TuningTable::Configs *small =
      table.configsFor(unit::exampleProblem(1100));
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(small->at("attention_fwd").at("tile_kv"), 7);
  EXPECT_EQ(table.configsFor(unit::exampleProblem(60000)), small);
  const auto *middle = table.configsFor(unit::exampleProblem(9000));
  EXPECT_NE(middle, small);
  EXPECT_EQ(middle->at("attention_fwd").at("tile_kv"), 8);
  EXPECT_EQ(table.match("attention_fwd", unit::exampleProblem(9000)).quality,
            MatchQuality::Exact);
  EXPECT_EQ(table.match("pool", unit::exampleProblem(9000)).quality,
            MatchQuality::Default);
}

TEST(TuningTable, SaysNothingOfOtherClassesTextsAndTargets) {
  EXPECT_EQ(tableOf({}).configsFor(unit::exampleProblem()), nullptr);
  TuningTable table = tableOf({recordOf(unit::exampleProblem(), 7)});
  EXPECT_EQ(table.configsFor(unit::exampleProblem(32760, 1)), nullptr);
  TuningRecord changed = recordOf(unit::exampleProblem(), 7);
  changed.environment.kernelText = "an older text";
  EXPECT_EQ(tableOf({changed}).configsFor(unit::exampleProblem()), nullptr);
  TuningRecord elsewhere = recordOf(unit::exampleProblem(), 7);
  elsewhere.environment.target = "host";
  EXPECT_EQ(tableOf({elsewhere}).configsFor(unit::exampleProblem()), nullptr);
}

TEST(TuningTable, TakesRecordsInAndKeepsAddresses) {
  TuningTable table = tableOf({recordOf(unit::exampleProblem(1000), 7)});
  const auto *before = table.configsFor(unit::exampleProblem(5000));
  table.add(recordOf(unit::exampleProblem(5000), 9));
  EXPECT_EQ(table.configsFor(unit::exampleProblem(5000))
                ->at("attention_fwd")
                .at("tile_kv"),
            9);
  EXPECT_EQ(table.configsFor(unit::exampleProblem(1000)), before);
}

TEST(TuningTable, ServesManyProblemsAndThreads) {
  TuningTable table = tableOf({recordOf(unit::exampleProblem(1000), 7),
                               recordOf(unit::exampleProblem(100000), 8)});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      // 10000 is the middle of both; more problems than are remembered.
      for (std::int64_t length = 1 + thread; length < 20000; length += 3) {
        if (length == 10000)
          continue;
        const auto *configs = table.configsFor(unit::exampleProblem(length));
        ASSERT_NE(configs, nullptr);
        EXPECT_EQ(configs->at("attention_fwd").at("tile_kv"),
                  length <= 10000 ? 7 : 8);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace spargejit::autotune

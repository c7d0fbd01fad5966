// SPDX-License-Identifier: Apache-2.0
//
// Which record fits a problem, and how well.
#include "autotune/db/TuningDb.h"

#include "tests/unit/autotune/RecordTrial.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(TuningDb, FindsTheProblemItself) {
  TuningDb db({recordOf(unit::exampleProblem(32760), 1),
               recordOf(unit::exampleProblem(75600), 2)});
  ProblemShape problem = unit::exampleProblem(75600);
  problem.name = "by another name";
  TuningMatch match =
      db.find("attention_fwd", problem, unit::exampleEnvironment());
  EXPECT_EQ(match.quality, MatchQuality::Exact);
  EXPECT_EQ(match.config.at("tile_kv"), 2);
  EXPECT_EQ(match.distance, 0);
}

TEST(TuningDb, FindsTheNearestOnALogScale) {
  TuningDb db({recordOf(unit::exampleProblem(1000), 1),
               recordOf(unit::exampleProblem(8000), 2)});
  auto find = [&](std::int64_t length) {
    return db.find("attention_fwd", unit::exampleProblem(length),
                   unit::exampleEnvironment());
  };
  // The middle of 1000 and 8000 is 2828, not 4500.
  EXPECT_EQ(find(2700).config.at("tile_kv"), 1);
  EXPECT_EQ(find(3000).config.at("tile_kv"), 2);
  EXPECT_EQ(find(3000).quality, MatchQuality::NearestShape);
  // Both lengths differ by a factor of two.
  EXPECT_NEAR(find(16000).distance, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(find(16000).problem.qLen, 8000);
}

TEST(TuningDb, WeighsEachDimensionByItself) {
  // As many keys visited, but a product would not tell them apart.
  ProblemShape a = unit::exampleProblem(10000, 0.1);
  ProblemShape b = unit::exampleProblem(20000, 0.05);
  EXPECT_GT(problemDistance(a, b), 1.7);
  ProblemShape grouped = a;
  grouped.kvHeads = 3;
  EXPECT_NEAR(problemDistance(a, grouped), 2, 1e-12);
  ProblemShape batched = a;
  batched.batch = 2;
  EXPECT_NEAR(problemDistance(a, batched), 1, 1e-12);
}

TEST(TuningDb, NeverMixesClasses) {
  TuningDb db({recordOf(unit::exampleProblem(), 1)});
  auto quality = [&](const ProblemShape &problem) {
    return db.find("attention_fwd", problem, unit::exampleEnvironment())
        .quality;
  };
  ProblemShape problem = unit::exampleProblem();
  EXPECT_EQ(quality(problem), MatchQuality::Exact);
  problem.headDim = 64;
  EXPECT_EQ(quality(problem), MatchQuality::Default);
  problem = unit::exampleProblem();
  problem.dtype = DataType::Float16;
  EXPECT_EQ(quality(problem), MatchQuality::Default);
  problem = unit::exampleProblem();
  problem.maskBlockKv = 16;
  EXPECT_EQ(quality(problem), MatchQuality::Default);
  problem = unit::exampleProblem();
  problem.causal = true;
  EXPECT_EQ(quality(problem), MatchQuality::Default);
  EXPECT_EQ(quality(unit::exampleProblem(32760, 1)), MatchQuality::Default);
  EXPECT_EQ(db.find("pool", unit::exampleProblem(), unit::exampleEnvironment())
                .quality,
            MatchQuality::Default);
}

TEST(TuningDb, KnowsHowSureItIs) {
  TuningRecord other = recordOf(unit::exampleProblem(32760), 1);
  other.environment.device = "Another card";
  TuningRecord near = recordOf(unit::exampleProblem(1000), 2);
  TuningEnvironment here = unit::exampleEnvironment();
  auto find = [&](const std::vector<TuningRecord> &records) {
    return TuningDb(records).find("attention_fwd", unit::exampleProblem(32760),
                                  here);
  };
  EXPECT_EQ(find({other}).quality, MatchQuality::SameArch);
  // This device's records come first, however far the shape.
  EXPECT_EQ(find({other, near}).quality, MatchQuality::NearestShape);
  EXPECT_EQ(find({other, near}).config.at("tile_kv"), 2);
  EXPECT_EQ(find({}).quality, MatchQuality::Default);
  EXPECT_TRUE(find({}).config.empty());
  here.driver = "a newer one";
  here.assembler = "another";
  EXPECT_EQ(find({near}).quality, MatchQuality::NearestShape);
  // Another code generator's come last, nearest shape first.
  here.generator = "generator 2";
  EXPECT_EQ(find({near}).quality, MatchQuality::OtherGenerator);
  EXPECT_EQ(find({near, other}).config.at("tile_kv"), 1);
  TuningRecord measuredAgain = recordOf(unit::exampleProblem(500), 3);
  measuredAgain.environment.generator = here.generator;
  measuredAgain.environment.device = "A third card";
  EXPECT_EQ(find({near, other, measuredAgain}).quality, MatchQuality::SameArch);
  EXPECT_EQ(find({near, other, measuredAgain}).config.at("tile_kv"), 3);
  // A build without a code generator has no reason to tell them apart.
  here.generator = "";
  EXPECT_EQ(find({near}).quality, MatchQuality::NearestShape);
  here = unit::exampleEnvironment();
  here.kernelText = "changed";
  EXPECT_EQ(find({other, near}).quality, MatchQuality::Default);
  here = unit::exampleEnvironment();
  here.target = "sm_100a";
  EXPECT_EQ(find({other, near}).quality, MatchQuality::Default);
  EXPECT_STREQ(matchQualityName(MatchQuality::SameArch), "same architecture");
}

TEST(TuningDb, ListsTheConfigurationsOfAClass) {
  TuningRecord other = recordOf(unit::exampleProblem(500), 2);
  other.environment.device = "Another card";
  TuningRecord sameAgain = recordOf(unit::exampleProblem(900), 2);
  TuningRecord dense = recordOf(unit::exampleProblem(900, 1), 3);
  TuningRecord stale = recordOf(unit::exampleProblem(900), 4);
  stale.environment.kernelText = "changed";
  TuningDb db(
      {recordOf(unit::exampleProblem(), 1), other, sameAgain, dense, stale});
  auto configs = db.configsOfClass("attention_fwd", unit::exampleProblem(77),
                                   unit::exampleEnvironment());
  ASSERT_EQ(configs.size(), 2u);
  EXPECT_EQ(configs[0].at("tile_kv"), 1);
  EXPECT_EQ(configs[1].at("tile_kv"), 2);
}

TEST(ProblemLists, HoldEachModelsWorkloads) {
  for (const std::string &name : problemListNames()) {
    auto problems = problemList(name);
    ASSERT_TRUE(problems.ok());
    EXPECT_EQ(problems->size() % 7, 0u);
    for (const ProblemShape &problem : *problems) {
      EXPECT_EQ(problem.headDim % 8, 0);
      EXPECT_TRUE(parseRecord(recordLine([&] {
                    auto random = numerics::randomForTest();
                    TuningRecord record = unit::randomRecord(random);
                    record.problem = problem;
                    return record;
                  }()))
                      .ok());
    }
  }
  auto wan = problemList("wan");
  EXPECT_EQ((*wan)[0].qLen, 32760);
  EXPECT_EQ(wan->back().qLen, 75600);
  auto none = problemList("wam");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(),
            "problems: expected one of wan, hunyuan, cogvideox, ltx, flux, "
            "minimax-h3, or the name of a workload or problem in one, got "
            "\"wam\"");
}

TEST(ProblemLists, GiveWorkloadsAndProblemsByName) {
  auto workload = problemList("wan-14b-480p");
  ASSERT_TRUE(workload.ok());
  ASSERT_EQ(workload->size(), 7u);
  for (const ProblemShape &problem : *workload) {
    EXPECT_EQ(problem.qHeads, 40);
    EXPECT_EQ(problem.qLen, 32760);
    auto alone = problemList(problem.name);
    ASSERT_TRUE(alone.ok()) << problem.name;
    ASSERT_EQ(alone->size(), 1u);
    EXPECT_EQ((*alone)[0].maskBlockKv, problem.maskBlockKv);
    EXPECT_EQ((*alone)[0].density, problem.density);
  }
}

} // namespace
} // namespace spargejit::autotune

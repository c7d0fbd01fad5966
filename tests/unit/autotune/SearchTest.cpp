// SPDX-License-Identifier: Apache-2.0
//
// The search on a device that is a formula.
#include "autotune/search/Search.h"

#include "autotune/db/RecordFile.h"
#include "autotune/search/UtcTime.h"
#include "tests/unit/autotune/RecordTrial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace spargejit::autotune {
namespace {

constexpr const char *kSpace = R"(tune tile = 32, 64, 96, 128, 192, 256
tune stages = 1, 2, 3, 4
require tile * stages <= 512 : rings fit the shared memory
cost = 1000 / tile + 10 * stages
)";

/// Takes 100 us and more, the farther tile and stages are from what suits it.
class SimulatedDevice final : public TuningDevice {
public:
  explicit SimulatedDevice(reference::Random random) : random_(random) {}

  TuningEnvironment environment() const override {
    return unit::exampleEnvironment();
  }
  void announce(const std::vector<Config> &configs) override {
    announced.insert(configs.begin(), configs.end());
  }
  Result<BuildReport> build(const Config &config) override {
    ++built;
    EXPECT_TRUE(announced.contains(config));
    BuildReport report;
    report.registers = static_cast<int>(100 + config.at("tile") / 4);
    report.spillBytes = spilling.contains(config.at("tile")) ? 64 : 0;
    if (config.at("tile") == uncompilable)
      return Status(ErrorCode::CompileFailed, "an operand is too wide");
    return report;
  }
  Result<double> check(const Config &config) override {
    if (wrong.contains(config.at("tile")))
      return Status(ErrorCode::Internal, "o[3] is 7 and not 1");
    checked.insert(config.at("tile"));
    return 1e-3;
  }
  Result<std::vector<double>> measure(const Config &config,
                                      int count) override {
    ++measured;
    if (measured == failAt)
      return Status(ErrorCode::DriverError, "the device fell off the bus");
    EXPECT_TRUE(checked.contains(config.at("tile")));
    // Those of a comparison are 20 in its six rounds.
    EXPECT_TRUE(count == kScreenCount || 6 * count >= 20) << count;
    slowness += (1.14 - slowness) * warmth;
    std::vector<double> samples;
    for (int i = 0; i < count; ++i)
      samples.push_back(slowness * timeOf(config) +
                        noiseUs * random_.uniform());
    return samples;
  }

  double timeOf(const Config &config) const {
    double tile = static_cast<double>(config.at("tile"));
    double stages = static_cast<double>(config.at("stages"));
    return 100 + 20 * std::abs(std::log2(tile / 192)) +
           8 * std::abs(stages - 2);
  }

  std::set<Config> announced;
  std::set<std::int64_t> spilling;
  std::set<std::int64_t> wrong;
  std::set<std::int64_t> checked;
  std::int64_t uncompilable = -1;
  double noiseUs = 0.5;
  double slowness = 1; ///< grows up to 1.14 by this share a measurement:
  double warmth = 0;
  int built = 0;
  int measured = 0;
  int failAt = -1;

private:
  reference::Random random_;
};

class SearchTest : public testing::Test {
protected:
  SearchTest() {
    request_.kernel = "attention_fwd";
    request_.problem = unit::exampleProblem();
    request_.defaultConfig = {{"tile", 64}, {"stages", 3}};
    request_.best = 100;
  }

  Result<SearchOutcome> search() {
    auto space = ConfigSpace::parse(kSpace);
    EXPECT_TRUE(space.ok());
    return searchConfigs(
        *space, request_, device_, earlier_,
        [this](const TuningRecord &record) {
          kept_.push_back(record);
          return Status();
        },
        [this](const SearchProgress &progress) {
          EXPECT_LE(progress.done, progress.total);
          EXPECT_GE(progress.done, lastDone_);
          lastDone_ = progress.done;
          return progress.done != stopAt_;
        });
  }

  SearchRequest request_;
  SimulatedDevice device_{numerics::randomForTest()};
  std::vector<TuningRecord> earlier_;
  std::vector<TuningRecord> kept_;
  int lastDone_ = 0;
  int stopAt_ = -1;
};

TEST_F(SearchTest, FindsTheFastest) {
  auto outcome = search();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->chosen.isWinner);
  EXPECT_EQ(outcome->chosen.config, (Config{{"tile", 192}, {"stages", 2}}));
  EXPECT_NEAR(outcome->chosen.medianUs, 100.25, 0.5);
  EXPECT_LT(outcome->chosen.spreadUs, 0.5);
  EXPECT_EQ(outcome->defaultRecord.config, request_.defaultConfig);
  EXPECT_GT(outcome->defaultRecord.medianUs, 130);
  EXPECT_EQ(outcome->spaceSize, 24);
  EXPECT_EQ(outcome->rejected,
            (std::vector<std::pair<std::string, std::int64_t>>{
                {"rings fit the shared memory", 4}}));
  EXPECT_EQ(outcome->measured, 20);
  // Each measurement, and the two of the comparison.
  EXPECT_EQ(kept_.size(), 22u);
}

TEST_F(SearchTest, MeasuresOnlyBrieflyWhatIsFarBehind) {
  auto outcome = search();
  ASSERT_TRUE(outcome.ok());
  double fastest = outcome->defaultRecord.medianUs;
  int brief = 0;
  for (const TuningRecord &record : kept_) {
    if (record.count < 20) {
      EXPECT_EQ(record.count, kScreenCount);
      EXPECT_GT(record.medianUs, 1.1 * fastest);
      ++brief;
    }
    if (!record.isDefault)
      fastest = std::min(fastest, record.medianUs);
  }
  EXPECT_GT(brief, 0);
  // What the records say is best is the winner all the same.
  auto best = bestRecords(mergeRecords(kept_));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].config, outcome->chosen.config);
}

TEST_F(SearchTest, AnnouncesWhatNoRecordAnswersFor) {
  stopAt_ = 6;
  ASSERT_TRUE(search().ok());
  EXPECT_EQ(device_.announced.size(), 20u);
  earlier_ = kept_;
  stopAt_ = -1;
  lastDone_ = 0;
  device_.announced.clear();
  ASSERT_TRUE(search().ok());
  EXPECT_EQ(device_.announced.size(), 14u);
}

TEST_F(SearchTest, MeasuresTheBestByEstimateAndARandomFew) {
  request_.best = 4;
  request_.random = 3;
  auto outcome = search();
  ASSERT_TRUE(outcome.ok());
  EXPECT_LE(outcome->measured, 8);
  EXPECT_GE(outcome->measured, 7);
  const int measured = outcome->measured;
  std::vector<Config> configs;
  for (const TuningRecord &record : kept_)
    configs.push_back(record.config);
  // The same again with the same seed.
  kept_.clear();
  lastDone_ = 0;
  ASSERT_TRUE(search().ok());
  for (int i = 0; i < measured; ++i)
    EXPECT_EQ(kept_[static_cast<std::size_t>(i)].config,
              configs[static_cast<std::size_t>(i)]);
}

TEST_F(SearchTest, KeepsTheDefaultWhereNothingBeatsItByMoreThanTheSpread) {
  device_.noiseUs = 200;
  request_.defaultConfig = {{"tile", 192}, {"stages", 3}};
  auto outcome = search();
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->chosen.isWinner);
  EXPECT_TRUE(outcome->chosen.isDefault);
  EXPECT_EQ(outcome->chosen.config, request_.defaultConfig);
}

// The default, measured first, has the highest clock.
TEST_F(SearchTest, FindsTheFastestOnADeviceThatGetsWarm) {
  request_.defaultConfig = {{"tile", 192}, {"stages", 3}};
  device_.warmth = 0.3;
  auto outcome = search();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->chosen.isWinner);
  EXPECT_EQ(outcome->chosen.config, (Config{{"tile", 192}, {"stages", 2}}));
  EXPECT_LT(outcome->chosen.spreadUs, 2);
}

TEST_F(SearchTest, MeasuresNothingThatIsWrongOrSpills) {
  device_.wrong = {192};
  device_.spilling = {128};
  device_.uncompilable = 256;
  auto outcome = search();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->chosen.config, (Config{{"tile", 96}, {"stages", 2}}));
  std::map<std::int64_t, std::string> failures;
  for (const TuningRecord &record : kept_)
    if (!record.failure.empty()) {
      EXPECT_EQ(record.count, 0);
      failures[record.config.at("tile")] = record.failure;
    }
  EXPECT_EQ(failures.size(), 3u);
  EXPECT_EQ(failures[192], "o[3] is 7 and not 1");
  EXPECT_EQ(failures[128], "expected no spilled registers, got 64 bytes");
  EXPECT_EQ(failures[256], "an operand is too wide");
  // 2, 4 and 2 of the stages fit.
  EXPECT_EQ(outcome->failed, 8);
}

TEST_F(SearchTest, GoesOnWhereItWasInterrupted) {
  stopAt_ = 6;
  auto first = search();
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->isInterrupted);
  EXPECT_EQ(kept_.size(), 6u);
  const int built = device_.built;
  EXPECT_EQ(built, 6);

  earlier_ = kept_;
  kept_.clear();
  stopAt_ = -1;
  lastDone_ = 0;
  auto second = search();
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->isInterrupted);
  EXPECT_EQ(second->reused, 6);
  EXPECT_EQ(device_.built, 20);
  EXPECT_EQ(second->chosen.config, (Config{{"tile", 192}, {"stages", 2}}));
}

TEST_F(SearchTest, AddsNothingWhenAllIsKnown) {
  for (const double noise : {0.5, 1000.0}) { // it wins; nobody can tell
    device_.noiseUs = noise;
    earlier_.clear();
    kept_.clear();
    lastDone_ = 0;
    auto first = search();
    ASSERT_TRUE(first.ok());
    earlier_ = kept_;
    kept_.clear();
    lastDone_ = 0;
    const int measured = device_.measured;
    auto second = search();
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second->reused, 20);
    if (earlier_.size() == 20) // nothing was faster than the default
      continue;
    EXPECT_EQ(device_.measured, measured);
    EXPECT_TRUE(kept_.empty());
    EXPECT_EQ(second->chosen.config, first->chosen.config);
    EXPECT_EQ(second->chosen.isWinner, first->chosen.isWinner);
    EXPECT_EQ(second->chosen.medianUs, first->chosen.medianUs);
    EXPECT_EQ(second->defaultRecord.medianUs, first->defaultRecord.medianUs);
  }
}

TEST_F(SearchTest, MeasuresAgainInAnotherEnvironment) {
  ASSERT_TRUE(search().ok());
  earlier_ = kept_;
  for (TuningRecord &record : earlier_)
    record.environment.driver = "an older one";
  lastDone_ = 0;
  auto outcome = search();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->reused, 0);
}

TEST_F(SearchTest, EndsWhenTheSurroundingsFail) {
  device_.failAt = 5;
  auto outcome = search();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), ErrorCode::DriverError);
  // One or two measurements a configuration.
  EXPECT_LE(kept_.size(), 4u);
  EXPECT_GE(kept_.size(), 2u);
}

TEST_F(SearchTest, SaysSoWhenTheDefaultItselfFails) {
  device_.wrong = {64};
  auto outcome = search();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().message(),
            "the default configuration cannot be tried: o[3] is 7 and not 1");
}

TEST(SpreadOf, IsMedianAndQuartiles) {
  EXPECT_EQ(spreadOf({3, 1, 2}).median, 2);
  EXPECT_EQ(spreadOf({1, 2, 3, 4}).median, 2.5);
  EXPECT_EQ(spreadOf({1, 2, 3, 4, 5}).quartiles, 2);
  EXPECT_EQ(spreadOf({7}).quartiles, 0);
  EXPECT_EQ(spreadOf({}).median, 0);
}

TEST(UtcNow, IsAnIsoTime) {
  std::string now = utcNow();
  ASSERT_EQ(now.size(), 24u);
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now.back(), 'Z');
  EXPECT_LE(now, utcNow());
}

} // namespace
} // namespace spargejit::autotune

// SPDX-License-Identifier: Apache-2.0
//
// Calls with tuning records: which configuration their kernels have, and who
// can see why.
#include "autotune/db/RecordFile.h"
#include "runtime/api/Engine.h"
#include "runtime/base/Hash.h"
#include "runtime/base/ProcessorName.h"
#include "runtime/jit/CodeGenerator.h"
#include "spargejit/library.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/CallTrial.h"
#include "tests/unit/runtime/FakeCodeGenerator.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

namespace spargejit::unit {
namespace {

using autotune::TuningRecord;

constexpr std::int64_t kDefaultTileKv = 64;

class TunedCallTest : public testing::Test {
protected:
  TunedCallTest() {
    settings_.recordFiles = {folder_.file("records.jsonl")};
    shape_.qLen = 130;
    shape_.kvLen = 200;
    shape_.headDim = 24;
  }

  CallTrial trial(const char *method) {
    CallTrial trial(random_, shape_);
    trial.config.method = method;
    trial.config.maskBlockQ = 128;
    trial.config.maskBlockKv = 16;
    return trial;
  }

  /// A winner of this machine and code generator for the trial's problem.
  static TuningRecord recordFor(const CallTrial &trial, double density,
                                std::int64_t tileKv) {
    TuningRecord record;
    record.kernel = "attention_fwd";
    record.problem.name = "tile " + std::to_string(tileKv);
    record.problem.dtype = DataType::Float32;
    record.problem.batch = trial.q().sizes[0];
    record.problem.qHeads = trial.q().sizes[1];
    record.problem.kvHeads = trial.k().sizes[1];
    record.problem.qLen = trial.q().sizes[2];
    record.problem.kvLen = trial.k().sizes[2];
    record.problem.headDim = trial.q().sizes[3];
    record.problem.maskBlockQ = trial.config.maskBlockQ;
    record.problem.maskBlockKv = trial.config.maskBlockKv;
    record.problem.density = density;
    record.environment.target = "host";
    record.environment.device = processorName();
    record.environment.generator = "fake 1";
    record.environment.kernelText = hashText("text of attention_fwd").hex();
    record.config = {{"tile_kv", tileKv}, {"of_another_kernel", 7}};
    record.isWinner = true;
    record.count = 20;
    record.medianUs = 1;
    return record;
  }
  void write(const std::vector<TuningRecord> &records) {
    ASSERT_TRUE(
        autotune::appendRecords(settings_.recordFiles[0], records).ok());
  }

  void expectRight(api::Engine &engine, CallTrial &trial) {
    BlockLists used;
    trial.lists = &used;
    trial.poison();
    Status status =
        engine.attentionInto(trial.o(), trial.q(), trial.k(), trial.v(),
                             trial.config, trial.outputs());
    ASSERT_TRUE(status.ok()) << status.message();
    reference::BlockMask mask = reference::maskOfLists(
        used.indices.view(), used.counts.view(), trial.kvBlocks());
    trial.expectReference(&mask);
  }
  TuningInfo infoOf(api::Engine &engine, const CallTrial &trial) {
    auto info = engine.tuningOf(trial.q(), trial.k(), trial.v(), trial.config);
    EXPECT_TRUE(info.ok()) << info.status().message();
    return info.ok() ? *info : TuningInfo();
  }

  reference::Random random_ = numerics::randomForTest();
  files::TemporaryFolder folder_;
  Environment settings_;
  CallShape shape_;
  FakeCodeGenerator generator_;
};

TEST_F(TunedCallTest, HaveTheDefaultWithoutARecord) {
  api::Engine engine(generator_, fakeTexts(), Environment());
  CallTrial call = trial("dense");
  expectRight(engine, call);
  EXPECT_EQ(generator_.lastTileKv, kDefaultTileKv);
  const TuningInfo info = infoOf(engine, call);
  EXPECT_EQ(info.quality, MatchQuality::Default);
  EXPECT_EQ(info.config, "");
}

TEST_F(TunedCallTest, HaveTheConfigurationOfTheNearestRecord) {
  CallTrial call = trial("dense");
  TuningRecord longer = recordFor(call, 1, 48);
  longer.problem.qLen *= 16;
  longer.problem.kvLen *= 16;
  write({recordFor(call, 1, 96), longer});
  api::Engine engine(generator_, fakeTexts(), settings_);
  expectRight(engine, call);
  EXPECT_EQ(generator_.lastTileKv, 96);
  TuningInfo info = infoOf(engine, call);
  EXPECT_EQ(info.quality, MatchQuality::Exact);
  EXPECT_EQ(info.distance, 0);
  EXPECT_EQ(info.problem, "tile 96");
  EXPECT_EQ(info.config, "of_another_kernel=7, tile_kv=96");

  // Nearer to the longer one: another kernel, compiled once for all such.
  shape_.qLen *= 8;
  shape_.kvLen *= 8;
  for (int i = 0; i < 3; ++i) {
    CallTrial other = trial("dense");
    expectRight(engine, other);
    EXPECT_EQ(generator_.lastTileKv, 48);
    EXPECT_EQ(generator_.compiled, 2);
    info = infoOf(engine, other);
    EXPECT_EQ(info.quality, MatchQuality::NearestShape);
    EXPECT_GT(info.distance, 0.9);
  }
  expectRight(engine, call);
  EXPECT_EQ(generator_.compiled, 2);
}

TEST_F(TunedCallTest, AreMatchedByTheDensityThatTheCallTells) {
  CallTrial call = trial("spargeattention2");
  write({recordFor(call, 0.1, 32), recordFor(call, 0.6, 80)});
  api::Engine engine(generator_, fakeTexts(), settings_);
  for (auto [topK, tile] : {std::pair(0.12, 32), {0.5, 80}, {1.0, 80}}) {
    call.config.topK = topK;
    expectRight(engine, call);
    EXPECT_EQ(generator_.lastTileKv, tile);
  }
  // Lists tell it by their room; all blocks tell nothing.
  call.config.method = "block_sparse";
  BlockLists lists;
  lists.maskBlockQ = 128;
  lists.maskBlockKv = 16;
  for (auto [room, tile] : {std::pair(8, 80), {2, 32}, {13, 32}}) {
    lists.indices = *Tensor::allocate(
        DataType::Int32, {call.q().sizes[0], call.q().sizes[1], 2, room});
    call.config.lists = &lists;
    EXPECT_EQ(infoOf(engine, call).problem, "tile " + std::to_string(tile))
        << room;
  }
}

TEST_F(TunedCallTest, FallBackToTheDefaultWithAWarning) {
  CallTrial call = trial("dense");
  write({recordFor(call, 1, 96)});
  generator_.refusedTileKv = 96;
  std::vector<std::string> warnings;
  setLogCallback([&](LogLevel level, const std::string &line) {
    if (level == LogLevel::Warning)
      warnings.push_back(line);
  });
  api::Engine engine(generator_, fakeTexts(), settings_);
  expectRight(engine, call);
  setLogCallback({});
  EXPECT_EQ(generator_.lastTileKv, kDefaultTileKv);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("a tile that is refused"), std::string::npos);
}

/// The fake texts, and a space of three tiles.
std::vector<kernels_ir::EmbeddedText> textsWithSpace() {
  std::vector<kernels_ir::EmbeddedText> texts = fakeTexts();
  texts.push_back({"kernels/portable/attention_fwd.tuning",
                   "tune tile_kv = 32, 64, 96\ncost = tile_kv\n"});
  return texts;
}

TEST_F(TunedCallTest, MeasureOnceWhereTheyAskForIt) {
  const auto texts = textsWithSpace();
  settings_ = Environment();
  settings_.cacheFolder = folder_.file("cache");
  for (const char *method : {"dense", "spargeattention2"}) {
    CallTrial call = trial(method);
    call.config.tune = TuneMode::OnFirstUse;
    int compiled = 0;
    {
      api::Engine engine(generator_, texts, settings_);
      EXPECT_EQ(infoOf(engine, call).quality, MatchQuality::Default);
      expectRight(engine, call);
      EXPECT_EQ(infoOf(engine, call).quality, MatchQuality::Exact);
      compiled = generator_.compiled;
      EXPECT_GE(compiled, 3);
      expectRight(engine, call);
      EXPECT_EQ(generator_.compiled, compiled);
    }
    // The next process finds the record and the kernels.
    api::Engine next(generator_, texts, settings_);
    EXPECT_EQ(infoOf(next, call).quality, MatchQuality::Exact);
    expectRight(next, call);
    EXPECT_EQ(generator_.compiled, compiled);
  }
  auto kept = autotune::readRecords(settings_.cacheFolder + "/tuned.jsonl");
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(kept->records.size(), 2u);
}

TEST_F(TunedCallTest, PrepareMeasuresToo) {
  const auto texts = textsWithSpace();
  settings_ = Environment();
  CallTrial call = trial("dense");
  call.config.tune = TuneMode::OnFirstUse;
  // A candidate that does not compile is none.
  generator_.refusedTileKv = 96;
  api::Engine engine(generator_, texts, settings_);
  TensorView q = call.q(), k = call.k(), v = call.v();
  q.data = k.data = v.data = nullptr;
  ASSERT_TRUE(engine.prepare(q, k, v, call.config, {}).ok());
  EXPECT_EQ(infoOf(engine, call).quality, MatchQuality::Exact);
  const int compiled = generator_.compiled;
  expectRight(engine, call);
  EXPECT_EQ(generator_.compiled, compiled);
}

TEST_F(TunedCallTest, SayWhyTheyWereNotMeasured) {
  std::vector<std::string> warnings;
  setLogCallback([&](LogLevel level, const std::string &line) {
    if (level == LogLevel::Warning)
      warnings.push_back(line);
  });
  api::Engine engine(generator_, fakeTexts(), Environment());
  CallTrial call = trial("dense");
  call.config.tune = TuneMode::OnFirstUse;
  expectRight(engine, call);
  setLogCallback({});
  EXPECT_EQ(generator_.lastTileKv, kDefaultTileKv);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("attention_fwd has no tuning space for host"),
            std::string::npos)
      << warnings[0];
}

TEST_F(TunedCallTest, PassOverRecordsOfAnotherTextAndSayWhoseCodeItWas) {
  CallTrial call = trial("dense");
  TuningRecord record = recordFor(call, 1, 96);
  record.environment.kernelText = hashText("an older text").hex();
  TuningRecord older = recordFor(call, 1, 48);
  older.environment.generator = "fake 0";
  write({record, older});
  api::Engine engine(generator_, fakeTexts(), settings_);
  expectRight(engine, call);
  EXPECT_EQ(generator_.lastTileKv, 48);
  EXPECT_EQ(infoOf(engine, call).quality, jit::hasBuiltInCompiler()
                                              ? MatchQuality::OtherGenerator
                                              : MatchQuality::Exact);
  settings_.usesRecords = false;
  api::Engine without(generator_, fakeTexts(), settings_);
  expectRight(without, call);
  EXPECT_EQ(generator_.lastTileKv, kDefaultTileKv);
}

} // namespace
} // namespace spargejit::unit

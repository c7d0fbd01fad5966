// SPDX-License-Identifier: Apache-2.0
//
// Whole calls on the fake code generator, against the float64 reference.
#include "runtime/api/Engine.h"

#include "spargejit/library.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/CallTrial.h"
#include "tests/unit/runtime/FakeCodeGenerator.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <thread>

namespace spargejit::unit {
namespace {

class EngineTest : public testing::Test {
protected:
  Status run(CallTrial &trial) {
    return engine_.attentionInto(trial.o(), trial.q(), trial.k(), trial.v(),
                                 trial.config, trial.outputs());
  }

  FakeCodeGenerator generator_;
  api::Engine engine_{generator_, fakeTexts(), Environment()};
};

TEST_F(EngineTest, ComputesDenseAttention) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 20; ++repeat) {
    CallTrial trial(random);
    trial.config.method = "dense";
    Status status = run(trial);
    ASSERT_TRUE(status.ok()) << status.message();
    trial.expectReference(nullptr);
  }
}

TEST_F(EngineTest, PlansAndCompilesNothingOnAWarmDisk) {
  files::TemporaryFolder folder;
  Environment settings;
  settings.cacheFolder = folder.file("cache");
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "dense";
  for (int process = 0; process < 2; ++process) {
    FakeCodeGenerator generator;
    api::Engine engine(generator, fakeTexts(), settings);
    trial.poison();
    Status status =
        engine.attentionInto(trial.o(), trial.q(), trial.k(), trial.v(),
                             trial.config, trial.outputs());
    ASSERT_TRUE(status.ok()) << status.message();
    trial.expectReference(nullptr);
    EXPECT_EQ(generator.compiled, process == 0 ? 1 : 0);
    EXPECT_EQ(generator.planned, process == 0 ? 1 : 0);
    EXPECT_EQ(generator.listed, process == 0 ? 1 : 0);
  }
}

TEST_F(EngineTest, ComputesAttentionOverTheCallersMask) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 20; ++repeat) {
    CallTrial trial(random);
    trial.config.method = "block_sparse";
    reference::BlockMask mask = trial.randomMask(random);
    trial.config.blockMask = viewOf(mask);
    BlockLists lists;
    trial.lists = &lists;
    ASSERT_TRUE(run(trial).ok());
    trial.expectReference(&mask);

    // The lists that come back are the mask, and do the same again.
    EXPECT_EQ(reference::maskOfLists(lists.indices.view(), lists.counts.view(),
                                     mask.kvBlocks),
              mask);
    trial.poison();
    trial.config.blockMask.reset();
    trial.config.lists = &lists;
    trial.config.validateLists = true;
    BlockLists again;
    trial.lists = &again;
    ASSERT_TRUE(run(trial).ok());
    trial.expectReference(&mask);
    EXPECT_EQ(again.indices.view().data, lists.indices.view().data);
  }
}

TEST_F(EngineTest, SharesAMaskBetweenHeadsByAStrideOfZero) {
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "block_sparse";
  reference::BlockMask mask = trial.randomMask(random);
  for (std::int64_t b = 0; b < mask.batch; ++b)
    for (std::int64_t h = 0; h < mask.heads; ++h)
      for (std::int64_t i = 0; i < mask.qBlocks; ++i)
        for (std::int64_t j = 0; j < mask.kvBlocks; ++j)
          mask.set(b, h, i, j, mask.at(0, 0, i, j));
  TensorView view = viewOf(mask);
  view.strides[0] = view.strides[1] = 0;
  trial.config.blockMask = view;
  ASSERT_TRUE(run(trial).ok());
  trial.expectReference(&mask);
}

TEST_F(EngineTest, SelectsThenAttends) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 10; ++repeat) {
    CallTrial trial(random);
    trial.config.method = "spargeattention2";
    trial.config.topK = random.uniform();
    BlockLists used;
    trial.lists = &used;
    ASSERT_TRUE(run(trial).ok());
    reference::BlockMask mask = reference::maskOfLists(
        used.indices.view(), used.counts.view(), trial.kvBlocks());
    trial.expectReference(&mask);
    std::int64_t kept = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(trial.config.topK *
                                     static_cast<double>(trial.kvBlocks())));
    EXPECT_DOUBLE_EQ(used.density(), static_cast<double>(kept) /
                                         static_cast<double>(trial.kvBlocks()));

    // The selection alone gives the same lists, which give the same result.
    auto lists = engine_.selectBlocks(trial.q(), trial.k(), trial.config);
    ASSERT_TRUE(lists.ok()) << lists.status().message();
    EXPECT_EQ(reference::maskOfLists(lists->indices.view(),
                                     lists->counts.view(), trial.kvBlocks()),
              mask);
    trial.poison();
    trial.lists = nullptr;
    trial.config.method = "block_sparse";
    trial.config.lists = &*lists;
    ASSERT_TRUE(run(trial).ok());
    trial.expectReference(&mask);
  }
}

TEST_F(EngineTest, CompilesForSelectionWhatSelectionNeeds) {
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "spargeattention2";
  ASSERT_TRUE(engine_.selectBlocks(trial.q(), trial.k(), trial.config).ok());
  int selection = generator_.compiled;
  ASSERT_TRUE(run(trial).ok());
  EXPECT_EQ(generator_.compiled, selection + 1) << "attention_fwd alone is new";
}

TEST_F(EngineTest, HandsOutAllBlocksForDense) {
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "dense";
  BlockLists lists;
  trial.lists = &lists;
  ASSERT_TRUE(run(trial).ok());
  EXPECT_EQ(lists.density(), 1);
  EXPECT_EQ(lists.maskBlockKv, trial.config.maskBlockKv);
  EXPECT_EQ(lists.kvLen, trial.k().sizes[2]);
}

TEST_F(EngineTest, ReturnsANewTensor) {
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "dense";
  auto o = engine_.attention(trial.q(), trial.k(), trial.v(), trial.config,
                             trial.outputs());
  ASSERT_TRUE(o.ok());
  EXPECT_EQ(o->view().sizes, trial.q().sizes);
  trial.expectReference(nullptr, o->view());
}

TEST_F(EngineTest, GivesEmptyRowsWithoutKeys) {
  auto random = numerics::randomForTest();
  for (const char *method : {"dense", "spargeattention2"}) {
    CallShape shape;
    shape.qLen = 70;
    shape.kvLen = 0;
    CallTrial trial(random, shape);
    trial.config.method = method;
    BlockLists lists;
    trial.lists = &lists;
    ASSERT_TRUE(run(trial).ok());
    trial.expectReference(nullptr);
    EXPECT_EQ(lists.density(), 0);
    for (std::int64_t i = 0; i < lists.counts.view().elementCount(); ++i)
      EXPECT_EQ(lists.counts.data<std::int32_t>()[i], 0);
    auto selected = engine_.selectBlocks(trial.q(), trial.k(), trial.config);
    EXPECT_EQ(selected.ok(), std::string(method) == "spargeattention2");
  }
  EXPECT_EQ(generator_.compiled, 0);
}

TEST_F(EngineTest, AcceptsNoBatchAndNoRows) {
  for (bool noBatch : {true, false}) {
    TensorView q = TensorView::contiguous(
        nullptr, DataType::Float32, {noBatch ? 0 : 2, 4, noBatch ? 5 : 0, 16});
    std::vector<float> keys(2 * 2 * 9 * 16, 1.0f);
    TensorView k = TensorView::contiguous(keys.data(), DataType::Float32,
                                          {noBatch ? 0 : 2, 2, 9, 16});
    AttentionConfig config;
    BlockLists lists;
    auto o = engine_.attention(q, k, k, config, {nullptr, &lists});
    ASSERT_TRUE(o.ok()) << o.status().message();
    EXPECT_EQ(o->view().elementCount(), 0);
    EXPECT_EQ(lists.counts.view().elementCount(), 0);
    EXPECT_EQ(lists.density(), 0);
    EXPECT_TRUE(engine_.attentionInto(q, q, k, k, config, {}).ok());
  }
}

TEST_F(EngineTest, CompilesOnceForAllLengthsAndAllocatesOnceForOne) {
  auto random = numerics::randomForTest();
  CallShape shape;
  shape.qLen = 300;
  shape.kvLen = 500;
  shape.headDim = 24;
  CallTrial trial(random, shape);
  trial.config.method = "spargeattention2";
  trial.config.threads = 1; // the calling thread's scratch alone
  ASSERT_TRUE(run(trial).ok());
  const int compiled = generator_.compiled;
  const Counters before = counters();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(run(trial).ok());
  EXPECT_EQ(counters().bytesAllocated, before.bytesAllocated);
  EXPECT_EQ(counters().kernelCacheHits - before.kernelCacheHits, 3 * 3);
  for (std::int64_t length : {1, 63, 64, 65, 200}) {
    shape.qLen = shape.kvLen = length;
    CallTrial other(random, shape);
    other.config = trial.config;
    other.config.topK = 0.3;
    other.config.topP = 0.9;
    ASSERT_TRUE(run(other).ok());
  }
  EXPECT_EQ(generator_.compiled, compiled);
  EXPECT_EQ(generator_.planned, 1);
}

TEST_F(EngineTest, CompilesNothingAfterPrepare) {
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "spargeattention2";
  Status status = engine_.prepare(trial.q(), trial.k(), trial.v(), trial.config,
                                  trial.outputs());
  ASSERT_TRUE(status.ok()) << status.message();
  const int compiled = generator_.compiled, loaded = generator_.loaded;
  EXPECT_GE(compiled, 3);
  ASSERT_TRUE(run(trial).ok());
  EXPECT_EQ(generator_.compiled, compiled);
  EXPECT_EQ(generator_.loaded, loaded);
}

TEST_F(EngineTest, ServesManyThreadsAtOnce) {
  constexpr int kThreads = 16;
  auto random = numerics::randomForTest();
  std::vector<std::unique_ptr<CallTrial>> trials;
  for (int i = 0; i < kThreads; ++i) {
    CallShape shape;
    shape.qLen = 100 + i;
    shape.kvLen = 90 + 3 * i;
    shape.headDim = 24;
    trials.push_back(std::make_unique<CallTrial>(random, shape));
    trials.back()->config.method = "dense";
    trials.back()->config.maskBlockQ = trials.back()->config.maskBlockKv = 64;
  }
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (auto &trial : trials)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int repeat = 0; repeat < 3; ++repeat) {
        trial->poison();
        EXPECT_TRUE(run(*trial).ok());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &trial : trials)
    trial->expectReference(nullptr);
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(generator_.planned, 1);
}

// A text for a method that takes none, none for one that does, and the refusal
// of the CPU; nothing is written.
TEST_F(EngineTest, TakesACustomSourceWhereTheMethodDoes) {
  std::vector<kernels_ir::EmbeddedText> texts = fakeTexts();
  texts.push_back({"methods/custom.mlir", "text of custom"});
  api::Engine engine(generator_, texts, Environment());
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  auto failureOf = [&](const std::string &method, const std::string &source) {
    trial.config.method = method;
    trial.config.customSource = source;
    trial.poison();
    Status status =
        engine.attentionInto(trial.o(), trial.q(), trial.k(), trial.v(),
                             trial.config, trial.outputs());
    EXPECT_FALSE(status.ok());
    return status;
  };
  Status status = failureOf("dense", "float score();");
  EXPECT_EQ(status.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(status.message(),
            "config.customSource: expected nothing, since method \"dense\" has "
            "no stage that takes it, got a text");
  status = failureOf("custom", "");
  EXPECT_EQ(status.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(status.message(), "config.customSource: expected CUDA C++ for "
                              "method \"custom\", got nothing");
  for (int i = 0; i < 2; ++i) { // the refusal is no different the second time
    status = failureOf("custom", "float score();");
    EXPECT_EQ(status.code(), ErrorCode::Unsupported);
    EXPECT_EQ(status.message(),
              "config.method: expected one without stages in CUDA C++ "
              "(sparge.custom_scores, sparge.custom_select) on cpu; they run "
              "on a GPU alone");
  }
  auto lists = engine.selectBlocks(trial.q(), trial.k(), trial.config);
  ASSERT_FALSE(lists.ok());
  EXPECT_EQ(lists.status().code(), ErrorCode::Unsupported);
  trial.config.customSource.clear();
  EXPECT_EQ(engine
                .prepare(trial.q(), trial.k(), trial.v(), trial.config,
                         trial.outputs())
                .message(),
            "config.customSource: expected CUDA C++ for method \"custom\", got "
            "nothing");
}

TEST_F(EngineTest, ReportsACompilationThatFails) {
  generator_.compileFailure = "attention_fwd.mlir:9:3: no";
  auto random = numerics::randomForTest();
  CallTrial trial(random);
  trial.config.method = "dense";
  for (int i = 0; i < 2; ++i) {
    Status status = run(trial);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::CompileFailed);
    EXPECT_NE(status.message().find("attention_fwd.mlir:9:3: no"),
              std::string::npos);
  }
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(engine_
                .prepare(trial.q(), trial.k(), trial.v(), trial.config,
                         trial.outputs())
                .code(),
            ErrorCode::CompileFailed);
}

} // namespace
} // namespace spargejit::unit

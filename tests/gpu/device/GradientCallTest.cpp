// SPDX-License-Identifier: Apache-2.0
//
// Whole forward and backward passes on the card: captures, streams, threads and
// repeats. Their numbers are compared with float64 by the tables of
// tests/numerics, which run on the card as well.
#include "spargejit/library.h"
#include "spargejit/spargejit.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/numerics/harness/CudaTestBackend.h"
#include "tests/numerics/harness/GradientTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <cmath>
#include <memory>
#include <thread>

namespace spargejit::gpu {
namespace {

using numerics::AttentionCase;
using numerics::GradientTrial;
using numerics::Random;
using numerics::randomForTest;
using numerics::succeeded;
using numerics::TestTensor;

constexpr AttentionCase kShape{.dtype = DataType::BFloat16,
                               .qHeads = 4,
                               .kvHeads = 2,
                               .qLen = 500,
                               .kvLen = 700,
                               .headDim = 128};

class GradientCall : public GpuTest {
protected:
  numerics::TestBackend &backend() { return *numerics::cudaTestBackend(); }
  static void useRandomLists(GradientTrial &trial, Random &random) {
    trial.forward.useLists(trial.forward.shape.randomMask(random, 0.4, true),
                           random, {.shuffled = true});
  }
  static AttentionGradientViews gradientsOf(const GradientTrial &trial) {
    return {trial.dq.view(), trial.dk.view(), trial.dv.view()};
  }
  /// Both calls alone: nothing uploaded, nothing waited for.
  static Status call(GradientTrial &trial) {
    const auto &forward = trial.forward;
    if (Status status =
            attentionInto(forward.o.view(), forward.q.view(), forward.k.view(),
                          forward.v.view(), forward.config,
                          {.lse = &forward.lse.view(), .lists = nullptr});
        !status)
      return status;
    return attentionBackwardInto(
        gradientsOf(trial), forward.q.view(), forward.k.view(),
        forward.v.view(), trial.saved(), trial.dO.view(), forward.config,
        trial.wantsDLse ? &trial.dLse.view() : nullptr);
  }
  static void poison(GradientTrial &trial) {
    for (TestTensor *tensor : {&trial.dq, &trial.dk, &trial.dv}) {
      tensor->poison();
      tensor->upload();
    }
  }
  static std::vector<std::byte> bitsOf(GradientTrial &trial) {
    for (TestTensor *tensor : {&trial.dq, &trial.dk, &trial.dv})
      tensor->download();
    return trial.bits();
  }
};

TEST_F(GradientCall, GivesTheSameBitsTwoHundredTimes) {
  Random random = randomForTest();
  GradientTrial trial(backend(), kShape, random);
  useRandomLists(trial, random);
  ASSERT_TRUE(trial.isRight());
  const auto first = trial.bits();
  for (int repeat = 0; repeat < 200; ++repeat) {
    poison(trial);
    ASSERT_TRUE(succeeded(call(trial)));
    ASSERT_TRUE(bitsOf(trial) == first) << repeat;
  }
}

TEST_F(GradientCall, KeepsScoreGradientsInTheBytesThatItMay) {
  Random random = randomForTest();
  GradientTrial trial(backend(), kShape, random);
  useRandomLists(trial, random);
  const auto bytesWith = [&](std::int64_t kept) {
    trial.forward.config.keptBytes = kept;
    return backwardWorkspaceBytes(trial.forward.q.view(),
                                  trial.forward.k.view(),
                                  trial.forward.v.view(), trial.forward.config)
        .value();
  };
  const std::int64_t none = bytesWith(0);
  // 4 x 4 x 11 blocks of 16 KiB are all pairs; who keeps any says where.
  const std::int64_t places = 4 * 4 * (4 * (11 + 1) + 1) + 3 * 64;
  EXPECT_LE(bytesWith(1 << 30), none + places + 4 * 4 * 11 * 16384);
  EXPECT_GE(bytesWith(1 << 30), none + 4 * 4 * 11 * 16384);
  EXPECT_LE(bytesWith(1 << 20), none + places + (1 << 20));
  EXPECT_GE(bytesWith(1 << 20), none + (1 << 20) - 4 * 16384);
  EXPECT_EQ(bytesWith(16384), none) << "no head has room";
}

TEST_F(GradientCall, RunsOnTwoStreamsAtOnce) {
  Random random = randomForTest();
  Stream streams[2] = {Stream(gpu()), Stream(gpu())};
  GradientTrial first(backend(), kShape, random);
  GradientTrial second(backend(), kShape, random);
  GradientTrial *trials[] = {&first, &second};
  std::vector<std::byte> right[2];
  for (std::size_t i = 0; i < 2; ++i) {
    useRandomLists(*trials[i], random);
    ASSERT_TRUE(trials[i]->isRight());
    right[i] = trials[i]->bits();
    trials[i]->forward.config.stream = streams[i].handle();
    poison(*trials[i]);
  }
  for (int repeat = 0; repeat < 50; ++repeat)
    for (GradientTrial *trial : trials)
      ASSERT_TRUE(succeeded(call(*trial)));
  for (std::size_t i = 0; i < 2; ++i) {
    streams[i].synchronise();
    EXPECT_TRUE(bitsOf(*trials[i]) == right[i]);
  }
}

TEST_F(GradientCall, RunsOnThreadsAtOnce) {
  Random random = randomForTest();
  std::vector<std::unique_ptr<GradientTrial>> trials;
  std::vector<std::vector<std::byte>> right;
  for (int t = 0; t < 4; ++t) {
    AttentionCase shape = kShape;
    shape.kvLen = 100 + 200 * t;
    trials.push_back(std::make_unique<GradientTrial>(backend(), shape, random));
    useRandomLists(*trials.back(), random);
    ASSERT_TRUE(trials.back()->isRight());
    right.push_back(trials.back()->bits());
    poison(*trials.back());
  }
  std::vector<std::thread> threads;
  for (const auto &trial : trials)
    threads.emplace_back([&] {
      Stream stream(gpu());
      trial->forward.config.stream = stream.handle();
      for (int repeat = 0; repeat < 50; ++repeat)
        EXPECT_TRUE(succeeded(call(*trial)));
      stream.synchronise();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (std::size_t t = 0; t < trials.size(); ++t)
    EXPECT_TRUE(bitsOf(*trials[t]) == right[t]) << t;
}

/// Selection, attention, the loss against a teacher and the backward pass, in
/// memory that stays where it is.
class TrainingStep {
public:
  TrainingStep(numerics::TestBackend &backend, void *stream, Random &random)
      : trial(backend, kShape, random),
        teacher(backend, DataType::BFloat16, {1, 4, 500, 128}),
        loss(backend, DataType::Float32, {1}), backend_(backend),
        random_(random) {
    config().method = "spargeattention2";
    config().topK = 0.2;
    config().topP = 0.3;
    config().stream = stream;
    draw();
    kept = attentionForward(trial.forward.q.view(), trial.forward.k.view(),
                            trial.forward.v.view(), config())
               .value();
  }
  AttentionConfig &config() { return trial.forward.config; }

  /// New inputs; what a step writes is poisoned.
  void draw() {
    for (TestTensor *tensor :
         {&trial.forward.q, &trial.forward.k, &trial.forward.v, &teacher})
      tensor->fillNormal(random_);
    for (TestTensor *tensor :
         {&loss, &trial.dO, &trial.dq, &trial.dk, &trial.dv})
      tensor->poison();
    for (TestTensor *tensor :
         {&trial.forward.q, &trial.forward.k, &trial.forward.v, &teacher, &loss,
          &trial.dO, &trial.dq, &trial.dk, &trial.dv})
      tensor->upload();
  }

  Status run() {
    const auto &f = trial.forward;
    Status status = attentionForwardInto(kept, f.q.view(), f.k.view(),
                                         f.v.view(), f.config);
    if (status.ok())
      status = distillationLoss(loss.view(), &trial.dO.view(), kept.o.view(),
                                teacher.view(), {.stream = f.config.stream});
    if (status.ok())
      status = attentionBackwardInto(
          {trial.dq.view(), trial.dk.view(), trial.dv.view()}, f.q.view(),
          f.k.view(), f.v.view(), kept.saved(), trial.dO.view(), f.config);
    return status;
  }

  /// What a step that has ended left, against float64.
  testing::AssertionResult isRight() {
    for (TestTensor *tensor :
         {&loss, &trial.dO, &trial.dq, &trial.dk, &trial.dv})
      tensor->download();
    const BlockLists lists = numerics::listsOnHost(backend_, kept.lists);
    trial.forward.mask = reference::maskOfLists(
        lists.indices.view(), lists.counts.view(), kShape.kvBlocks());
    trial.wantsDLse = false;
    const auto o = trial.forward.expected().o;
    const std::vector<double> wanted = teacher.values();
    const std::vector<double> slopes = trial.dO.values();
    const auto n = static_cast<double>(o.size());
    double sum = 0, slopeError = 0;
    for (std::size_t i = 0; i < o.size(); ++i) {
      sum += (o[i] - wanted[i]) * (o[i] - wanted[i]);
      slopeError += std::pow(slopes[i] * n / 2 - (o[i] - wanted[i]), 2);
    }
    const double right = sum / n;
    // o is rounded to bfloat16.
    if (!(std::fabs(loss.values()[0] - right) <= 1e-3 * right))
      return testing::AssertionFailure()
             << "loss " << loss.values()[0] << ", expected " << right;
    if (!(slopeError <= 1e-4 * sum))
      return testing::AssertionFailure()
             << "the loss's gradient is off by " << std::sqrt(slopeError / sum);
    return trial.matchesReference();
  }
  std::vector<std::byte> bits() const {
    std::vector<std::byte> all = trial.bits();
    const std::vector<std::byte> number = loss.bits();
    all.insert(all.end(), number.begin(), number.end());
    return all;
  }

  GradientTrial trial;
  TestTensor teacher;
  TestTensor loss;
  AttentionForward kept;

private:
  numerics::TestBackend &backend_;
  Random &random_;
};

TEST_F(GradientCall, AWholeTrainingStepIsReplayedWithOtherInputs) {
  Random random = randomForTest();
  Stream stream(gpu());
  TrainingStep step(backend(), stream.handle(), random);
  ASSERT_TRUE(succeeded(step.run()));
  stream.synchronise();
  ASSERT_TRUE(step.isRight());
  const auto uncaptured = step.bits();
  const Counters before = counters();
  stream.beginCapture(); // in which a wait or an allocation is an error
  ASSERT_TRUE(succeeded(step.run()));
  Graph graph = stream.endCapture();
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
  EXPECT_EQ(counters().bytesAllocated, before.bytesAllocated);
  graph.launch(stream);
  stream.synchronise();
  ASSERT_TRUE(step.isRight());
  EXPECT_TRUE(step.bits() == uncaptured);
  for (int draw = 0; draw < 4; ++draw) {
    step.draw();
    graph.launch(stream);
    stream.synchronise();
    ASSERT_TRUE(step.isRight()) << draw;
    EXPECT_FALSE(step.bits() == uncaptured) << draw;
  }
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
}

} // namespace
} // namespace spargejit::gpu

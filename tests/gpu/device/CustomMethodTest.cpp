// SPDX-License-Identifier: Apache-2.0
//
// Whole methods with a stage in CUDA C++, called through the public interface:
// lists against float64, attention against the float64 reference, captures, and
// mistakes with the user's lines.
#include "runtime/base/Environment.h"
#include "runtime/jit/Nvrtc.h"
#include "spargejit/library.h"
#include "spargejit/spargejit.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/CudaTestBackend.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Elements.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace spargejit::gpu {
namespace {

namespace fs = std::filesystem;
using numerics::AttentionTrial;
using numerics::failedWith;
using numerics::Random;
using numerics::randomForTest;
using numerics::SelectionCase;
using numerics::SelectionTrial;
using numerics::succeeded;
using numerics::TestTensor;

/// A method around `stages`, which makes %lists of %pooled_q and %pooled_k.
std::string methodText(const std::string &name, const std::string &stages) {
  return "sparge.method @" + name +
         "(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>,\n"
         "                 %v: !sparge.tensor<value>) {\n"
         "  %pooled_q = sparge.pool %q : !sparge.tensor<query>\n"
         "  %pooled_k = sparge.pool %k : !sparge.tensor<key>\n" +
         stages +
         "  %o, %lse = sparge.attention %q, %k, %v lists(%lists)\n"
         "    : !sparge.tensor<query>, !sparge.tensor<key>, "
         "!sparge.tensor<value>\n"
         "  sparge.return %o, %lse, %lists\n"
         "    : !sparge.tensor<output>, !sparge.lse, !sparge.lists\n"
         "}\n";
}

/// Top-k and top-p of a score that the call brings.
const char *const kRankedStages =
    "  %top_k = sparge.parameter \"top_k\"\n"
    "  %top_p = sparge.parameter \"top_p\"\n"
    "  %scores = sparge.custom_scores %pooled_q, %pooled_k code<config>\n"
    "    : !sparge.pooled<query>, !sparge.pooled<key>\n"
    "  %lists = sparge.select_blocks %scores top_k(%top_k) top_p(%top_p)\n";
const char *const kUsualScore =
    "float score(const spargejit::BlockPair &pair) { return pair.score; }\n";

/// The rule of docs/examples/threshold.mlir.
const char *const kThresholdStages =
    "  %top_p = sparge.parameter \"top_p\"\n"
    "  %scores = sparge.block_scores %pooled_q, %pooled_k\n"
    "    : !sparge.pooled<query>, !sparge.pooled<key>\n"
    "  %lists = sparge.custom_select %scores code<[\n"
    "    \"bool keep(const spargejit::ScoredPair &pair) {\",\n"
    "    \"  return expf(pair.score - pair.rowMax) >= pair.topP;\",\n"
    "    \"}\"]> top_p(%top_p)\n";

class CustomMethod : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!gpu_)
      return;
    folder_ = fs::path(testing::TempDir()) /
              ("custom_method_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    auto nvrtc = jit::Nvrtc::open(*environment());
    if (nvrtc.ok())
      return;
    if (numerics::environment("SPARGEJIT_REQUIRE_GPU") == "1")
      FAIL() << nvrtc.status().message();
    GTEST_SKIP() << nvrtc.status().message();
  }
  void TearDown() override {
    if (!folder_.empty())
      fs::remove_all(folder_);
  }

  numerics::TestBackend &backend() { return *numerics::cudaTestBackend(); }
  std::string write(const std::string &name, const std::string &text) {
    const fs::path path = folder_ / (name + ".mlir");
    std::ofstream(path) << text;
    return path;
  }
  std::string rankedMethod() {
    return write("ranked", methodText("ranked", kRankedStages));
  }
  /// The lists of a call become the mask of the reference.
  BlockLists useLists(AttentionTrial &trial) {
    auto lists = selectBlocks(trial.q.view(), trial.k.view(), trial.config);
    EXPECT_TRUE(succeeded(lists.status()));
    BlockLists host = numerics::listsOnHost(backend(), *lists);
    trial.mask = reference::maskOfLists(host.indices.view(), host.counts.view(),
                                        trial.shape.kvBlocks());
    return host;
  }

  fs::path folder_;
};

// With the usual score, the whole way through a user's text gives the lists of
// the float64 ranking.
TEST_F(CustomMethod, TheUsualScoreSelectsWhatTheRankingSays) {
  const std::string method = rankedMethod();
  numerics::SelectionTally tally;
  for (const SelectionCase &shape : {SelectionCase{.dtype = DataType::BFloat16,
                                                   .batch = 2,
                                                   .qHeads = 4,
                                                   .kvHeads = 2,
                                                   .qLen = 1300,
                                                   .kvLen = 2100,
                                                   .headDim = 128},
                                     SelectionCase{.dtype = DataType::Float16,
                                                   .qHeads = 3,
                                                   .qLen = 1000,
                                                   .kvLen = 900,
                                                   .headDim = 72,
                                                   .maskBlockQ = 64,
                                                   .maskBlockKv = 16,
                                                   .causal = true}}) {
    Random random = randomForTest();
    SelectionTrial trial(backend(), shape);
    trial.q.fillNormal(random);
    trial.k.fillNormal(random);
    EXPECT_TRUE(trial.isRight({method, 0.1, 0.0, kUsualScore}, tally));
    EXPECT_TRUE(trial.isRight({method, 0.05, 0.4, kUsualScore}, tally));
  }
  EXPECT_LT(tally.nearTies * 4, tally.rows);
}

/// exp(score - largest score of the row) of each key block, in float64.
std::vector<double> weightsOf(const AttentionTrial &trial, std::int64_t b,
                              std::int64_t h, std::int64_t i) {
  const auto &shape = trial.shape;
  auto pooled = [&](const TensorView &x, std::int64_t head, std::int64_t block,
                    std::int64_t first) {
    const std::int64_t end = std::min(first + block, x.sizes[2]);
    std::vector<double> mean(static_cast<std::size_t>(x.sizes[3]), 0.0);
    for (std::int64_t n = first; n < end; ++n)
      for (std::size_t d = 0; d < mean.size(); ++d)
        mean[d] +=
            reference::elementAt(x, b, head, n, static_cast<std::int64_t>(d)) /
            static_cast<double>(end - first);
    return mean;
  };
  const auto q =
      pooled(trial.q.host(), h, shape.maskBlockQ, i * shape.maskBlockQ);
  std::vector<double> scores;
  for (std::int64_t j = 0; j < shape.kvBlocks(); ++j) {
    const auto k = pooled(trial.k.host(), h / (shape.qHeads / shape.kvHeads),
                          shape.maskBlockKv, j * shape.maskBlockKv);
    double sum = 0;
    for (std::size_t d = 0; d < q.size(); ++d)
      sum += q[d] * k[d];
    scores.push_back(shape.scale() * sum);
  }
  const double top = *std::max_element(scores.begin(), scores.end());
  for (double &score : scores)
    score = std::exp(score - top);
  return scores;
}

TEST_F(CustomMethod, AThresholdRuleRunsFromListsToOutput) {
  Random random = randomForTest();
  AttentionTrial trial(backend(),
                       {.dtype = DataType::BFloat16,
                        .batch = 2,
                        .qHeads = 2,
                        .kvHeads = 1,
                        .qLen = 700,
                        .kvLen = 1500,
                        .headDim = 64},
                       random);
  trial.config.method =
      write("threshold", methodText("threshold", kThresholdStages));
  // Half of the pairs lie on each side of it.
  const auto &shape = trial.shape;
  std::vector<double> all;
  for (std::int64_t row = 0; row < 2 * 2 * shape.qBlocks(); ++row)
    for (double weight :
         weightsOf(trial, row / shape.qBlocks() / 2, row / shape.qBlocks() % 2,
                   row % shape.qBlocks()))
      all.push_back(weight);
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  const double threshold = static_cast<float>(all[all.size() / 2] - 2e-5);
  trial.config.topP = threshold;
  ASSERT_TRUE(succeeded(trial.run()));
  EXPECT_TRUE(trial.memoryIsIntact());
  const BlockLists lists = useLists(trial);
  EXPECT_TRUE(trial.matchesReference(random));
  // Each pair as float64 decides, but for those at the threshold.
  std::int64_t kept = 0, close = 0, pairs = 0;
  for (std::int64_t row = 0; row < 2 * 2 * shape.qBlocks(); ++row) {
    const std::int64_t i = row % shape.qBlocks(), h = row / shape.qBlocks() % 2;
    const auto weights = weightsOf(trial, row / shape.qBlocks() / 2, h, i);
    const auto list = numerics::listOf(lists, row);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const bool isListed =
          std::find(list.begin(), list.end(), j) != list.end();
      ++pairs;
      kept += isListed;
      if (std::fabs(weights[j] - threshold) < 1e-5)
        ++close;
      else
        EXPECT_EQ(isListed, weights[j] >= threshold) << row << " " << j;
    }
  }
  EXPECT_GT(kept, pairs / 50);
  EXPECT_LT(kept, pairs * 49 / 50);
  EXPECT_LT(close * 100, pairs);
}

// A graph, with the k and p of the replay.
TEST_F(CustomMethod, IsCapturedAndReplayedWithOtherKAndP) {
  Random random = randomForTest();
  AttentionTrial trial(backend(),
                       {.dtype = DataType::BFloat16,
                        .qHeads = 3,
                        .kvHeads = 3,
                        .qLen = 900,
                        .kvLen = 1700,
                        .headDim = 128},
                       random);
  TestTensor k(backend(), DataType::Float32, {3}),
      p(backend(), DataType::Float32, {3});
  trial.config.method = rankedMethod();
  trial.config.customSource = kUsualScore;
  trial.config.topKByHead = k.view();
  trial.config.topPByHead = p.view();
  Stream stream(gpu());
  trial.config.stream = stream.handle();
  const AttentionOutputs outputs{.lse = &trial.lse.view(), .lists = nullptr};
  ASSERT_TRUE(succeeded(prepare(trial.q.view(), trial.k.view(), trial.v.view(),
                                trial.config, outputs)));
  const Counters before = counters();
  stream.beginCapture();
  ASSERT_TRUE(
      succeeded(attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                              trial.v.view(), trial.config, outputs)));
  Graph graph = stream.endCapture();
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
  for (int draw = 0; draw < 3; ++draw) {
    for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v}) {
      tensor->fillNormal(random);
      tensor->upload();
    }
    for (TestTensor *values : {&k, &p}) {
      values->fill([&] { return 0.5 * random.uniform(); });
      values->upload();
    }
    for (TestTensor *tensor : {&trial.o, &trial.lse}) {
      tensor->poison();
      tensor->upload();
    }
    graph.launch(stream);
    stream.synchronise();
    trial.o.download();
    trial.lse.download();
    const BlockLists lists = useLists(trial);
    EXPECT_TRUE(trial.matchesReference(random)) << draw;
    // The same as the library's own ranking, but for near-ties.
    AttentionConfig own = trial.config;
    own.method = "spargeattention2";
    own.customSource.clear();
    auto ranked = selectBlocks(trial.q.view(), trial.k.view(), own);
    ASSERT_TRUE(succeeded(ranked.status()));
    const BlockLists ownLists = numerics::listsOnHost(backend(), *ranked);
    std::int64_t different = 0;
    for (std::int64_t row = 0; row < 3 * trial.shape.qBlocks(); ++row)
      different +=
          numerics::listOf(lists, row) != numerics::listOf(ownLists, row);
    EXPECT_LE(different, 2) << draw;
  }
}

TEST_F(CustomMethod, MistakesAreReportedWithTheUsersLine) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), {.dtype = DataType::BFloat16}, random);
  trial.config.method = rankedMethod();
  trial.config.customSource =
      "float score(const spargejit::BlockPair &pair) {\n"
      "  return pair.scor;\n}\n";
  EXPECT_TRUE(failedWith(trial.run(), ErrorCode::CompileFailed,
                         {"config.customSource(2)", "scor"}));
  std::string text = methodText("broken", kThresholdStages);
  text.replace(text.find("return expf"), 11, "return expg");
  trial.config.method = write("broken", text);
  trial.config.customSource.clear();
  EXPECT_TRUE(failedWith(trial.run(), ErrorCode::CompileFailed,
                         {"broken.mlir(", "expg"}));
}

} // namespace
} // namespace spargejit::gpu

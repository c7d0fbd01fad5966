// SPDX-License-Identifier: Apache-2.0
//
// k and p of each head from memory (AttentionConfig::topKByHead, topPByHead):
// the lists that the same numbers give as topK and topP, which SelectionTest
// compares with the float64 reference.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace spargejit::numerics {
namespace {

using reference::Random;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// 3 query heads on 1 key head; 10 rows of 47 blocks a head.
constexpr SelectionCase kShape{.batch = 2,
                               .qHeads = 3,
                               .kvHeads = 1,
                               .qLen = 1250,
                               .kvLen = 3000,
                               .headDim = 64,
                               .maskBlockQ = 128,
                               .maskBlockKv = 64};

class SelectionByHead : public BackendTest {
protected:
  /// Values by head in the back end's memory: `sizes` says how.
  void give(TestTensor &tensor, const std::vector<float> &values) {
    std::size_t at = 0;
    tensor.fill([&] { return double{values[at++]}; });
    tensor.upload();
  }

  /// What topKByHead means, in topK that gives the same number of blocks.
  static double shareLike(float value, std::int64_t blocks) {
    const float product = value * static_cast<float>(blocks);
    const float kept =
        std::isnan(product)
            ? 1
            : std::clamp(product, 1.0f, static_cast<float>(blocks));
    return std::min(
        (std::floor(double{kept}) + 0.5) / static_cast<double>(blocks), 1.0);
  }
  static double massLike(float value) {
    return std::isnan(value) ? 1 : std::clamp(double{value}, 0.0, 1.0);
  }

  Result<BlockLists> select(SelectionTrial &trial,
                            const AttentionConfig &config) {
    auto lists = selectBlocks(trial.q.view(), trial.k.view(), config);
    return lists.ok() ? listsOnHost(backend(), *lists) : lists;
  }

  /// Row by row: the lists with `k` and `p` by head, [batch][qHeads], are those
  /// that each head's numbers give.
  void expectListsOf(SelectionTrial &trial, const std::vector<float> &k,
                     const std::vector<float> &p,
                     const AttentionConfig &byHead) {
    const Result<BlockLists> lists = select(trial, byHead);
    ASSERT_TRUE(succeeded(lists.status()));
    const std::int64_t rows = trial.shape.qBlocks();
    for (std::size_t head = 0; head < k.size(); ++head) {
      AttentionConfig numbers = byHead;
      numbers.topKByHead.reset();
      numbers.topPByHead.reset();
      numbers.topK = shareLike(k[head], trial.shape.kvBlocks());
      numbers.topP = std::min(massLike(p[head]), 1.0);
      const Result<BlockLists> expected = select(trial, numbers);
      ASSERT_TRUE(succeeded(expected.status()));
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto row = static_cast<std::int64_t>(head) * rows + i;
        ASSERT_EQ(listOf(*lists, row), listOf(*expected, row))
            << "head " << head << " row " << i << " k " << k[head] << " p "
            << p[head];
      }
    }
  }
};
SPARGEJIT_ON_EVERY_BACKEND(SelectionByHead);

/// Blocks that differ, so that both k and p decide.
void fillBlocks(TestTensor &tensor, Random &random) {
  std::int64_t at = 0;
  double level = 0;
  tensor.fill([&] {
    if (at++ % (64 * tensor.host().sizes[3]) == 0)
      level = random.normal();
    return level + 0.5 * random.normal();
  });
  tensor.upload();
}

TEST_P(SelectionByHead, EachHeadHasItsOwnKAndP) {
  for (std::uint64_t draw = 0; draw < 4; ++draw) {
    Random random = randomForTest(draw);
    SelectionCase shape = kShape;
    shape.causal = draw % 2 == 1;
    SelectionTrial trial(backend(), shape);
    fillBlocks(trial.q, random);
    fillBlocks(trial.k, random);
    std::vector<float> k, p;
    for (int head = 0; head < 6; ++head) {
      k.push_back(static_cast<float>(random.uniform()));
      p.push_back(static_cast<float>(random.uniform()));
    }
    k[random.below(6)] = 0;
    p[random.below(6)] = 0;
    TestTensor kValues(backend(), DataType::Float32, {2, 3}),
        pValues(backend(), DataType::Float32, {2, 3});
    give(kValues, k);
    give(pValues, p);
    AttentionConfig config = trial.configOf({});
    config.topKByHead = kValues.view();
    config.topPByHead = pValues.view();
    expectListsOf(trial, k, p, config);
    EXPECT_TRUE(kValues.isUnchanged());
    EXPECT_TRUE(pValues.isUnchanged());
  }
}

TEST_P(SelectionByHead, ValuesOfAllHeadsOrOfEachComeInAnyStride) {
  Random random = randomForTest();
  SelectionTrial trial(backend(), kShape);
  fillBlocks(trial.q, random);
  fillBlocks(trial.k, random);
  TestTensor one(backend(), DataType::Float32, {1}),
      three(backend(), DataType::Float32, {3}),
      wide(backend(), DataType::Float32, {2, 3}, {11, 2}, {});
  give(one, {0.31f});
  give(three, {0.1f, 0.2f, 0.4f});
  give(wide, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f});
  AttentionConfig config = trial.configOf({});
  config.topKByHead = one.view();
  config.topPByHead = three.view();
  expectListsOf(trial, std::vector<float>(6, 0.31f),
                {0.1f, 0.2f, 0.4f, 0.1f, 0.2f, 0.4f}, config);
  config.topKByHead = wide.view();
  config.topPByHead = one.view();
  expectListsOf(trial, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f},
                std::vector<float>(6, 0.31f), config);
  // One of them by head, the other a number.
  config.topPByHead.reset();
  config.topP = 0.31;
  expectListsOf(trial, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f},
                std::vector<float>(6, 0.31f), config);
}

TEST_P(SelectionByHead, ValuesBeyondTheirRangeCountAsItsEnds) {
  Random random = randomForTest();
  SelectionTrial trial(backend(), kShape);
  fillBlocks(trial.q, random);
  fillBlocks(trial.k, random);
  TestTensor kValues(backend(), DataType::Float32, {2, 3}),
      pValues(backend(), DataType::Float32, {2, 3});
  const std::vector<float> wild{-1, 7, kNan, kInfinity, -kInfinity, 1e30f};
  const std::vector<float> tame(6, 0.1f);
  AttentionConfig config = trial.configOf({});
  config.topKByHead = kValues.view();
  config.topPByHead = pValues.view();
  give(kValues, wild);
  give(pValues, tame);
  expectListsOf(trial, wild, tame, config);
  give(kValues, tame);
  give(pValues, wild);
  expectListsOf(trial, tame, wild, config);
}

// The product of a share in float32: n / blocks asks for n blocks or one less,
// where topK in float64 has the same freedom.
TEST_P(SelectionByHead, SharesAreCutToWholeBlocksInFloat32) {
  SelectionCase shape = kShape;
  shape.batch = 1;
  shape.qHeads = 1;
  shape.qLen = 128;
  shape.kvLen = 64 * 10;
  SelectionTrial trial(backend(), shape);
  Random random = randomForTest();
  fillBlocks(trial.q, random);
  fillBlocks(trial.k, random);
  TestTensor share(backend(), DataType::Float32, {1});
  AttentionConfig config = trial.configOf({"topk", 0, 0});
  config.topKByHead = share.view();
  for (int tenths = 0; tenths <= 10; ++tenths) {
    give(share, {static_cast<float>(tenths) / 10});
    const Result<BlockLists> lists = select(trial, config);
    ASSERT_TRUE(succeeded(lists.status()));
    EXPECT_EQ(listOf(*lists, 0).size(), std::max(tenths, 1));
  }
}

// Attention, and not only the selection alone, reads them.
TEST_P(SelectionByHead, AttentionUsesThem) {
  Random random = randomForTest();
  AttentionTrial trial(backend(),
                       {.dtype = DataType::BFloat16,
                        .qHeads = 2,
                        .kvHeads = 2,
                        .qLen = 300,
                        .kvLen = 900},
                       random);
  TestTensor k(backend(), DataType::Float32, {2}),
      p(backend(), DataType::Float32, {1});
  give(k, {0.2f, 0.6f});
  give(p, {0});
  trial.config.method = "spargeattention2";
  trial.config.topK = 1;
  trial.config.topP = 1;
  trial.config.topKByHead = k.view();
  trial.config.topPByHead = p.view();
  ASSERT_TRUE(succeeded(trial.run()));
  auto made = selectBlocks(trial.q.view(), trial.k.view(), trial.config);
  ASSERT_TRUE(succeeded(made.status()));
  const BlockLists lists = listsOnHost(backend(), *made);
  EXPECT_EQ(listOf(lists, 0).size(), 3u); // 0.2 of 15
  EXPECT_EQ(listOf(lists, 3).size(), 9u);
  trial.mask = reference::maskOfLists(lists.indices.view(), lists.counts.view(),
                                      trial.shape.kvBlocks());
  EXPECT_TRUE(trial.matchesReference(random));
}

} // namespace
} // namespace spargejit::numerics

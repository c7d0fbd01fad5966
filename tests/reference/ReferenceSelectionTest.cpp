// SPDX-License-Identifier: Apache-2.0
//
// The float64 selection against rows worked out by hand.
#include "tests/reference/ReferenceSelection.h"

#include "tests/reference/HostArray.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace spargejit::reference {
namespace {

using Blocks = std::vector<std::int32_t>;

/// One query block of one token (value 1) against key blocks of one token each,
/// so that the scores are the keys.
class Row {
public:
  explicit Row(const std::vector<double> &scores)
      : q_(DataType::Float32, {1, 1, 1, 1}),
        k_(DataType::Float32,
           {1, 1, static_cast<std::int64_t>(scores.size()), 1}) {
    q_.set(0, 0, 0, 0, 1);
    k_.fill([&](auto, auto, auto n, auto) {
      return scores[static_cast<std::size_t>(n)];
    });
    rules.maskBlockQ = 1;
    rules.maskBlockKv = 1;
  }

  SelectedRow select() const {
    return referenceSelection(q_.view(), k_.view(), rules)[0];
  }

  SelectionRules rules;

private:
  HostArray q_;
  HostArray k_;
};

/// Scores whose softmax has the probabilities given.
std::vector<double> logarithms(const std::vector<double> &probabilities) {
  std::vector<double> scores;
  for (const double p : probabilities)
    scores.push_back(std::log(p));
  return scores;
}

TEST(ReferenceSelection, TopKTruncatesTheRatioAndKeepsAtLeastOne) {
  Row row({0.1, 0.5, 0.3, 0.4});
  row.rules.topK = 0.74; // 2.96 blocks
  EXPECT_EQ(row.select().blocks, (Blocks{1, 3}));
  row.rules.topK = 0.0;
  EXPECT_EQ(row.select().blocks, Blocks{1});
  row.rules.topK = 1.0;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1, 2, 3}));
}

TEST(ReferenceSelection, TiesGoToTheLowerIndex) {
  Row row({1, 2, 1, 1, 2, 1});
  row.rules.topK = 0.7; // 4 of 6
  const SelectedRow selected = row.select();
  EXPECT_EQ(selected.blocks, (Blocks{0, 1, 2, 4}));
  EXPECT_EQ(selected.scoreMargin, 0);
  EXPECT_FALSE(selected.isNearTie());
}

TEST(ReferenceSelection, TopPKeepsTheCrossingBlock) {
  Row row(logarithms({0.15, 0.5, 0.05, 0.3})); // sums 0.5, 0.8, 0.95, 1
  row.rules.topP = 0.7;
  EXPECT_EQ(row.select().blocks, (Blocks{1, 3}));
  EXPECT_NEAR(row.select().massMargin, 0.1, 1e-6);
  row.rules.topP = 0.45;
  EXPECT_EQ(row.select().blocks, Blocks{1});
  row.rules.topP = 0.9;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1, 3}));
  row.rules.topP = 0.0;
  EXPECT_EQ(row.select().blocks, Blocks{1});
  row.rules.topP = 1.0;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1, 2, 3}));
  row.rules.topP = 0.8000001; // float32 cannot tell
  EXPECT_TRUE(row.select().isNearTie());
}

TEST(ReferenceSelection, HybridKeepsTheLongerOfBothPrefixes) {
  Row row(logarithms({0.15, 0.5, 0.05, 0.3}));
  row.rules.topK = 0.25;
  row.rules.topP = 0.7;
  EXPECT_EQ(row.select().prefix, 2);
  row.rules.topK = 0.75;
  EXPECT_EQ(row.select().prefix, 3);
}

TEST(ReferenceSelection, NotANumberRanksLast) {
  const double nan = std::nan("");
  Row row({nan, 0.5, nan, 0.7});
  row.rules.topK = 0.75;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1, 3}));
  row.rules.topK.reset();
  row.rules.topP = 0.9;
  EXPECT_EQ(row.select().blocks, (Blocks{1, 3}));
}

TEST(ReferenceSelection, ARowWithoutScoresKeepsTheFirstBlocks) {
  const double infinity = std::numeric_limits<double>::infinity();
  Row row({-infinity, -infinity, -infinity, -infinity});
  row.rules.topK = 0.5;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1}));
  row.rules.topP = 0.5;
  EXPECT_EQ(row.select().blocks, (Blocks{0, 1}));
  row.rules.topK.reset();
  EXPECT_EQ(row.select().blocks, Blocks{0});
}

TEST(ReferenceSelection, MeansAreTakenOverRealTokens) {
  HostArray q(DataType::Float32, {1, 1, 3, 1});
  HostArray k(DataType::Float32, {1, 1, 5, 1});
  q.fill([](auto, auto, auto, auto) { return 1.0; });
  // Blocks of two keys: means 1, 1.5, 2; the last has one key.
  k.fill([](auto, auto, auto n, auto) {
    return n < 2 ? 1.0 : n < 4 ? 1.5 : 2.0;
  });
  SelectionRules rules;
  rules.maskBlockQ = 2;
  rules.maskBlockKv = 2;
  rules.topK = 0.4;
  const auto rows = referenceSelection(q.view(), k.view(), rules);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].blocks, Blocks{2});
  EXPECT_EQ(rows[1].blocks, Blocks{2});
}

TEST(ReferenceSelection, HiddenBlocksAreNeverKept) {
  HostArray q(DataType::Float32, {1, 1, 4, 1});
  HostArray k(DataType::Float32, {1, 1, 6, 1});
  q.fill([](auto, auto, auto, auto) { return 1.0; });
  k.fill([](auto, auto, auto n, auto) { return static_cast<double>(n); });
  SelectionRules rules;
  rules.causal = true;
  rules.maskBlockQ = 2;
  rules.maskBlockKv = 2;
  rules.topK = 1.0;
  auto rows = referenceSelection(q.view(), k.view(), rules);
  EXPECT_EQ(rows[0].blocks, (Blocks{0, 1})); // rows 0, 1 see keys 0…2, 0…3
  EXPECT_EQ(rows[1].blocks, (Blocks{0, 1, 2}));
  rows = referenceSelection(k.view(), q.view(), rules);
  EXPECT_EQ(rows[0].blocks, Blocks{}); // rows 0, 1 of 6 see nothing of 4 keys
  EXPECT_EQ(rows[1].blocks, Blocks{0});
}

TEST(ReferenceSelection, ForcedBlocksJoinThePrefix) {
  HostArray q(DataType::Float32, {1, 1, 4, 1});
  HostArray k(DataType::Float32, {1, 1, 12, 1});
  q.fill([](auto, auto, auto, auto) { return 1.0; });
  k.fill([](auto, auto, auto n, auto) { return n == 4 ? 9.0 : 0.0; });
  SelectionRules rules;
  rules.maskBlockQ = 2;
  rules.maskBlockKv = 2;
  rules.topK = 0.2;
  rules.keepDiagonal = true;
  rules.keepFirstBlocks = 1;
  for (const bool causal : {false, true}) {
    rules.causal = causal;
    const auto rows = referenceSelection(q.view(), k.view(), rules);
    EXPECT_EQ(rows[0].blocks, (Blocks{0, 2, 4})); // last row 1 sees key 9
    EXPECT_EQ(rows[1].blocks, (Blocks{0, 2, 5}));
    EXPECT_EQ(rows[0].prefix, 1);
  }
}

TEST(ReferenceSelection, GroupedHeadsShareKeys) {
  HostArray q(DataType::Float32, {1, 4, 1, 1});
  HostArray k(DataType::Float32, {1, 2, 2, 1});
  q.fill([](auto, auto, auto, auto) { return 1.0; });
  k.fill([](auto, auto h, auto n, auto) { return h == n ? 1.0 : 0.0; });
  SelectionRules rules;
  rules.maskBlockQ = 1;
  rules.maskBlockKv = 1;
  rules.topK = 0.5;
  const auto rows = referenceSelection(q.view(), k.view(), rules);
  EXPECT_EQ(rows[1].blocks, Blocks{0});
  EXPECT_EQ(rows[2].blocks, Blocks{1});
}

} // namespace
} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// What backward passes of block-sparse attention are known to get wrong.
#include "tests/numerics/harness/GradientTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace spargejit::numerics {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Rows [first, first + count) of every head, flat.
std::vector<double> rowsOf(const TestTensor &tensor, std::int64_t first,
                           std::int64_t count) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = first; row < first + count; ++row)
    rows.push_back(row);
  return tensor.valuesOfRows(rows);
}

void expectZeros(const std::vector<double> &values, const char *what) {
  for (const double value : values)
    ASSERT_EQ(value, 0) << what;
}

void expectFinite(const TestTensor &tensor, const char *what) {
  for (const double value : tensor.values())
    ASSERT_TRUE(std::isfinite(value)) << what;
}

class GradientScenarios : public BackendTest {
protected:
  void SetUp() override { SPARGEJIT_NEEDS(gradients); }
};
SPARGEJIT_ON_EVERY_BACKEND(GradientScenarios);

// cases: 5, 11
TEST_P(GradientScenarios, KeysThatNoRowSelectsGetExactlyZero) {
  Random random = randomForTest();
  GradientTrial trial(backend(),
                      {.qHeads = 4, .kvHeads = 2, .qLen = 300, .kvLen = 500},
                      random);
  BlockMask mask = trial.forward.shape.randomMask(random, 0.7);
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t i = 0; i < mask.qBlocks; ++i)
      for (const std::int64_t j : {0, 5, 6, 7})
        mask.set(0, h, i, j, false);
  trial.forward.useLists(mask, random, {.shuffled = true});
  ASSERT_TRUE(trial.isRight());
  for (const TestTensor *tensor : {&trial.dk, &trial.dv}) {
    expectZeros(rowsOf(*tensor, 0, 64), "first block");
    expectZeros(rowsOf(*tensor, 320, 180), "last blocks");
  }
}

// cases: 21
TEST_P(GradientScenarios, RowsWithoutKeysGetExactlyZero) {
  Random random = randomForTest();
  GradientTrial trial(backend(), {.qHeads = 2, .qLen = 400, .kvLen = 300},
                      random);
  BlockMask mask = trial.forward.shape.randomMask(random, 0.8);
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t j = 0; j < mask.kvBlocks; ++j)
      mask.set(0, h, 1, j, false);
  trial.forward.useLists(mask, random);
  ASSERT_TRUE(trial.isRight());
  expectZeros(rowsOf(trial.dq, 128, 128), "the empty row of blocks");

  // Nothing at all.
  trial.forward.useLists(trial.forward.shape.emptyMask(), random);
  ASSERT_TRUE(succeeded(trial.run()));
  for (const TestTensor *tensor : {&trial.dq, &trial.dk, &trial.dv})
    expectZeros(tensor->values(), "no block is selected");
}

// Rows before the first key of a causal call see nothing; what stands in dO
// there reaches no gradient.
// cases: 21, 23
TEST_P(GradientScenarios, CausalRowsBeforeTheFirstKeyGetExactlyZero) {
  Random random = randomForTest();
  GradientTrial trial(backend(), {.qLen = 300, .kvLen = 100, .causal = true},
                      random);
  ASSERT_TRUE(trial.isRight());
  expectZeros(rowsOf(trial.dq, 0, 200), "rows 0 to 199");
  for (const TestTensor *tensor : {&trial.dq, &trial.dk, &trial.dv})
    expectFinite(*tensor, "causal");
}

// cases: 1
TEST_P(GradientScenarios, ListsOfTheVisibleBlocksGiveTheCausalGradients) {
  Random random = randomForTest();
  GradientTrial trial(backend(),
                      {.qHeads = 2,
                       .qLen = 1024,
                       .kvLen = 1024,
                       .headDim = 64,
                       .maskBlockKv = 128,
                       .causal = true},
                      random);
  ASSERT_TRUE(succeeded(trial.run()));
  const std::vector<double> dense[] = {trial.dq.values(), trial.dk.values(),
                                       trial.dv.values()};
  BlockMask mask = trial.forward.shape.emptyMask();
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < mask.qBlocks; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        mask.set(0, h, i, j, true);
  trial.forward.useLists(mask, random, {.shuffled = true});
  ASSERT_TRUE(succeeded(trial.run()));
  const TestTensor *sparse[] = {&trial.dq, &trial.dk, &trial.dv};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto found = reference::compare(sparse[i]->values(), dense[i]);
    EXPECT_EQ(found.nonFiniteMismatches, 0);
    EXPECT_LE(found.relativeL2,
              reference::gradientBound(trial.forward.shape.dtype))
        << i;
  }
}

// cases: 18
TEST_P(GradientScenarios, SlotsBeyondTheCountAndStrayEntriesAreNothing) {
  Random random = randomForTest();
  GradientTrial trial(backend(), {.qHeads = 2, .qLen = 400, .kvLen = 700},
                      random);
  const BlockMask mask = trial.forward.shape.randomMask(random, 0.4, true);
  trial.forward.useLists(mask, random,
                         {.shuffled = true,
                          .garbageSuffix = true,
                          .strayEntries = true,
                          .spareSlots = 3});
  EXPECT_TRUE(trial.isRight());
}

// cases: 4
TEST_P(GradientScenarios, EveryRunHasTheSameBits) {
  Random random = randomForTest();
  GradientTrial trial(backend(),
                      {.dtype = DataType::BFloat16,
                       .qHeads = 4,
                       .kvHeads = 2,
                       .qLen = 500,
                       .kvLen = 777,
                       .headDim = 128},
                      random);
  trial.forward.useLists(trial.forward.shape.randomMask(random, 0.5, true),
                         random, {.shuffled = true});
  ASSERT_TRUE(trial.isRight());
  const std::vector<std::byte> first = trial.bits();
  for (std::int64_t run = repetitions(200, 5); run > 0; --run) {
    ASSERT_TRUE(succeeded(trial.runBackward()));
    ASSERT_EQ(trial.bits() == first, true) << "a run differs from the first";
  }
}

// Score gradients that one kernel keeps for another: none, of all heads at
// once, of one at a time; where the room ends among the rows of a head, and
// where lists have entries that are no blocks, they are computed again.
TEST_P(GradientScenarios, AreRightHoweverMuchIsKept) {
  Random random = randomForTest();
  constexpr std::int64_t kBlockBytes = 128 * 32 * 2;
  // 6 x 22 blocks a head, of which 6 % are 8; two heads of q to one of k.
  for (const bool strays : {false, true})
    for (const std::int64_t blocks :
         {0, 2 * 2 * 8, 2 * 2 * 40, 2 * 4 * 50, 1 << 20}) {
      GradientTrial trial(backend(),
                          {.dtype = DataType::BFloat16,
                           .batch = 2,
                           .qHeads = 4,
                           .kvHeads = 2,
                           .qLen = 700,
                           .kvLen = 690,
                           .headDim = 64,
                           .maskBlockKv = 32},
                          random);
      trial.forward.config.keptBytes = blocks * kBlockBytes;
      trial.forward.useLists(trial.forward.shape.randomMask(random, 0.5, true),
                             random,
                             {.shuffled = true,
                              .garbageSuffix = true,
                              .strayEntries = strays,
                              .spareSlots = 3});
      ASSERT_TRUE(trial.isRight()) << blocks;
      const std::vector<std::byte> first = trial.bits();
      for (std::int64_t run = repetitions(20, 2); run > 0; --run) {
        ASSERT_TRUE(succeeded(trial.runBackward()));
        ASSERT_EQ(trial.bits() == first, true) << blocks;
      }
    }
}

// The order of the entries of a list must not change a key's gradients: the
// inverted lists are ascending whatever the lists are.
TEST_P(GradientScenarios, KeyGradientsDoNotDependOnTheOrderOfLists) {
  Random random = randomForTest();
  GradientTrial trial(backend(), {.qHeads = 2, .qLen = 600, .kvLen = 640},
                      random);
  const BlockMask mask = trial.forward.shape.randomMask(random, 0.5, true);
  trial.forward.useLists(mask, random);
  ASSERT_TRUE(succeeded(trial.run()));
  const auto dk = trial.dk.bits();
  const auto dv = trial.dv.bits();
  trial.forward.config.lists = nullptr;
  trial.forward.useLists(mask, random, {.shuffled = true});
  // The same forward results: rounding there follows the order.
  ASSERT_TRUE(succeeded(trial.runBackward()));
  EXPECT_EQ(trial.dk.bits() == dk, true);
  EXPECT_EQ(trial.dv.bits() == dv, true);
}

// A NaN in a block of keys that a row does not select, and in a row of dO.
// cases: 35
TEST_P(GradientScenarios, NaNStaysWhereItIsRead) {
  Random random = randomForTest();
  GradientTrial trial(backend(), {.qLen = 256, .kvLen = 256}, random);
  BlockMask mask = trial.forward.shape.fullMask();
  for (std::int64_t j = 1; j < 4; ++j)
    mask.set(0, 0, 1, j, false); // rows 128 to 255 read keys 0 to 63
  mask.set(0, 0, 0, 0, false);   // rows 0 to 127 read the others
  trial.forward.useLists(mask, random);
  std::size_t at = 0;
  trial.dO.fill([&] {
    return at++ < 128 * 64 ? random.normal() : (at % 64 == 3 ? kNaN : 1);
  });
  ASSERT_TRUE(succeeded(trial.run()));
  for (const double value : rowsOf(trial.dq, 0, 128))
    ASSERT_TRUE(std::isfinite(value));
  for (const TestTensor *tensor : {&trial.dk, &trial.dv})
    for (const double value : rowsOf(*tensor, 64, 192))
      ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(std::isnan(rowsOf(trial.dq, 128, 1)[0]));
  EXPECT_TRUE(std::isnan(rowsOf(trial.dk, 0, 1)[0]));
}

// The product's gradients as slopes: a step along a random direction.
TEST_P(GradientScenarios, AreSlopesOfTheLoss) {
  Random random = randomForTest();
  GradientTrial trial(backend(),
                      {.batch = 2,
                       .qHeads = 2,
                       .kvHeads = 1,
                       .qLen = 70,
                       .kvLen = 90,
                       .headDim = 16,
                       .maskBlockQ = 64,
                       .maskBlockKv = 16},
                      random);
  trial.forward.useLists(trial.forward.shape.randomMask(random, 0.6), random);
  ASSERT_TRUE(succeeded(trial.run()));
  const auto loss = [&] {
    const reference::AttentionValues values = trial.forward.expected();
    const std::vector<double> dO = trial.dO.values();
    const std::vector<double> dLse = trial.dLse.values();
    double sum = 0;
    for (std::size_t i = 0; i < dO.size(); ++i)
      sum += dO[i] * values.o[i];
    for (std::size_t i = 0; i < dLse.size(); ++i)
      if (std::isfinite(values.lse[i]))
        sum += dLse[i] * values.lse[i];
    return sum;
  };
  for (auto [x, gradient] : {std::pair(&trial.forward.q, &trial.dq),
                             std::pair(&trial.forward.k, &trial.dk),
                             std::pair(&trial.forward.v, &trial.dv)}) {
    const std::vector<double> before = x->values();
    const std::vector<double> slopes = gradient->values();
    // Steps as the type holds them, so that the slope is along what was done.
    const auto move = [&](double size) {
      Random same(17);
      std::size_t at = 0;
      x->fill([&] { return before[at++] + size * same.normal(); });
      return x->values();
    };
    const double size =
        trial.forward.shape.dtype == DataType::Float32 ? 0x1p-9 : 0x1p-5;
    const std::vector<double> above = move(size);
    const double lossAbove = loss();
    const std::vector<double> below = move(-size);
    const double lossBelow = loss();
    double predicted = 0;
    double scale = 0;
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      const double term = slopes[i] * (above[i] - below[i]);
      predicted += term;
      scale += term * term;
    }
    EXPECT_NEAR(predicted, lossAbove - lossBelow, 2e-2 * std::sqrt(scale));
    std::size_t at = 0;
    x->fill([&] { return before[at++]; });
  }
}

} // namespace
} // namespace spargejit::numerics

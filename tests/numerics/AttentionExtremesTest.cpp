// SPDX-License-Identifier: Apache-2.0
//
// Numbers at the ends of their range: logits that overflow exp, ties, scales of
// either sign, values that float16 cannot hold, NaN in inputs.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace spargejit::numerics {
namespace {

class AttentionExtremes : public TypedBackendTest {};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionExtremes);

// Scores of +-60,025 from inputs of +-245 in one channel: exact in every data
// type, and far beyond what exp can take without the maximum. Rows where all
// scores are at the bottom, at the top, and mixed.
// cases: 35
TEST_P(AttentionExtremes, HugeLogits) {
  Random random = randomForTest();
  for (const bool causal : {false, true}) {
    AttentionTrial trial(backend(),
                         {.dtype = dtype(),
                          .qLen = 140,
                          .kvLen = 300,
                          .headDim = 64,
                          .causal = causal,
                          .softmaxScale = 1.0},
                         random);
    const auto onlyFirstChannel = [&](TestTensor &tensor, auto value) {
      std::int64_t at = 0;
      tensor.fill([&] { return at++ % 64 == 0 ? value(at / 64) : 0.0; });
    };
    onlyFirstChannel(trial.q, [&](std::int64_t n) {
      return n % 3 == 0 ? 0.0 : n % 3 == 1 ? 245.0 : -245.0;
    });
    for (const int sign : {0, 1, -1}) { // mixed, all at the top or the bottom
      onlyFirstChannel(trial.k, [&](std::int64_t) {
        return sign != 0 ? 245.0 * sign : random.chance(0.5) ? 245.0 : -245.0;
      });
      EXPECT_TRUE(trial.isRight(random));
      trial.useLists(trial.shape.randomMask(random, 0.5, true), random);
      EXPECT_TRUE(trial.isRight(random));
      trial.config.method = "dense";
      trial.config.lists = nullptr;
      trial.mask.reset();
    }
  }
}

// Rising and falling scores: the running maximum changes with every key tile,
// or never after the first.
TEST_P(AttentionExtremes, RunningMaximumMovesWithEveryTile) {
  Random random = randomForTest();
  for (const double slope : {0.03, -0.03, 0.25, -0.25, 2.0, -2.0}) {
    AttentionTrial trial(backend(),
                         {.dtype = dtype(),
                          .qLen = 100,
                          .kvLen = 500,
                          .headDim = 64,
                          .softmaxScale = 1.0,
                          .largestScore = 500 * std::fabs(slope)},
                         random);
    std::int64_t at = 0;
    trial.q.fill([&] { return at++ % 64 == 0 ? 1.0 : 0.0; });
    at = 0;
    trial.k.fill([&] {
      const auto n = static_cast<double>(at / 64);
      return at++ % 64 == 0 ? slope * n : 0.0;
    });
    EXPECT_TRUE(trial.isRight(random)) << "slope " << slope;
  }
}

TEST_P(AttentionExtremes, EqualScoresGiveTheMean) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), {.dtype = dtype(), .qLen = 65, .kvLen = 1000},
                       random);
  trial.k.fill([] { return 1.5; });
  ASSERT_TRUE(trial.isRight(random));
  trial.q.fill([] { return 0.0; });
  ASSERT_TRUE(trial.isRight(random));
  for (const double value : trial.lse.values())
    ASSERT_NEAR(value, std::log(1000.0), 1e-5);
}

// Negative scales turn the maximum into the minimum; with scale 0 every key
// weighs the same.
// cases: 48
TEST_P(AttentionExtremes, NegativeAndZeroScales) {
  Random random = randomForTest();
  for (const double scale : {-0.1, 0.0, -1.0, 1e-6, 0.7}) {
    for (const bool causal : {false, true}) {
      AttentionTrial trial(backend(),
                           {.dtype = dtype(),
                            .qLen = 100,
                            .kvLen = 230,
                            .headDim = 40,
                            .causal = causal,
                            .softmaxScale = scale},
                           random);
      trial.useLists(trial.shape.randomMask(random, 0.7), random);
      EXPECT_TRUE(trial.isRight(random));
    }
  }
}

// A few key channels fifty times larger than the rest.
// cases: 38
TEST_P(AttentionExtremes, DominantKeyChannels) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), {.dtype = dtype(), .qLen = 100, .kvLen = 300},
                       random);
  std::int64_t at = 0;
  trial.k.fill([&] {
    const bool isLarge = at++ % 64 < 2;
    return random.normal() * (isLarge ? 50 : 1);
  });
  std::int64_t atQuery = 0;
  // Scores of a few hundred: q small in those channels keeps float32's
  // rounding of the scores below the bound.
  trial.q.fill([&] {
    const bool isLarge = atQuery++ % 64 < 2;
    return random.normal() * (isLarge ? 0.05 : 1);
  });
  EXPECT_TRUE(trial.isRight(random));
}

// Values of 1e5: infinite in float16, so bfloat16 must not pass through it. The
// float16 run takes the largest that it has.
// cases: 36
TEST_P(AttentionExtremes, LargeValues) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), {.dtype = dtype(), .qLen = 70, .kvLen = 200},
                       random);
  const double largest = dtype() == DataType::Float16 ? 6e4 : 1e5;
  trial.v.fill([&] { return random.chance(0.5) ? largest : -largest; });
  ASSERT_TRUE(trial.isRight(random));
  for (const double value : trial.o.values())
    ASSERT_TRUE(std::isfinite(value));
  trial.v.fill([&] { return largest; });
  EXPECT_TRUE(trial.isRight(random));
}

// NaN in a row of q is in that row of the result and in no other.
TEST_P(AttentionExtremes, NotANumberInAQueryStaysInItsRow) {
  Random random = randomForTest();
  for (const std::int64_t row : {0, 17, 127, 128, 149}) {
    AttentionTrial trial(
        backend(), {.dtype = dtype(), .qHeads = 2, .qLen = 150, .kvLen = 200},
        random);
    reference::storeElement(
        reference::elementAddress(trial.q.host(), 0, 1, row, random.below(64)),
        dtype(), std::nan(""));
    ASSERT_TRUE(trial.isRight(random)) << "row " << row;
    const std::vector<double> lse = trial.lse.values();
    EXPECT_EQ(std::count_if(lse.begin(), lse.end(),
                            [](double value) { return std::isnan(value); }),
              1);
    EXPECT_TRUE(std::isnan(lse[static_cast<std::size_t>(150 + row)]));
  }
}

// NaN in a key is in the rows of its head that attend to it.
TEST_P(AttentionExtremes, NotANumberInAKeyStaysInItsHead) {
  Random random = randomForTest();
  AttentionTrial trial(backend(),
                       {.dtype = dtype(),
                        .batch = 2,
                        .qHeads = 2,
                        .kvHeads = 2,
                        .qLen = 70,
                        .kvLen = 100},
                       random);
  reference::storeElement(
      reference::elementAddress(trial.k.host(), 1, 0, 99, 3), dtype(),
      std::nan(""));
  EXPECT_TRUE(trial.isRight(random));
}

// NaN in one channel of a value is in that channel of the result.
TEST_P(AttentionExtremes, NotANumberInAValueStaysInItsChannel) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), {.dtype = dtype(), .qLen = 70, .kvLen = 100},
                       random);
  reference::storeElement(
      reference::elementAddress(trial.v.host(), 0, 0, 50, 7), dtype(),
      std::nan(""));
  ASSERT_TRUE(trial.isRight(random));
  for (std::size_t i = 0; i < 70; ++i)
    ASSERT_TRUE(std::isfinite(trial.o.values()[i * 64 + 8]));
}

// Scores that overflow float32 to -inf are keys without weight.
TEST_P(AttentionExtremes, InfinitelyLowScoresHaveNoWeight) {
  Random random = randomForTest();
  AttentionTrial trial(
      backend(),
      {.dtype = dtype(), .qLen = 70, .kvLen = 150, .softmaxScale = 1.0},
      random);
  trial.q.fill([] { return 1.0; });
  std::int64_t at = 0;
  trial.k.fill([&] {
    const std::int64_t n = at / 64;
    const bool isFirstChannel = at++ % 64 == 0;
    const bool isLow = n < 70 || n % 7 == 0; // whole tiles and single keys
    return !isFirstChannel ? 0.25 * random.normal()
           : isLow         ? -std::numeric_limits<double>::infinity()
                           : 0.0;
  });
  EXPECT_TRUE(trial.isRight(random));
}

// Small problems: five tokens under a mask block of 128, one token alone.
// cases: 29, 63
TEST_P(AttentionExtremes, LessThanOneBlock) {
  Random random = randomForTest();
  for (const auto &[qLen, kvLen] : {std::pair{5, 5}, std::pair{1, 1},
                                    std::pair{1, 1000}, std::pair{5, 1}}) {
    AttentionCase shape = {
        .dtype = dtype(), .qLen = qLen, .kvLen = kvLen, .maskBlockKv = 128};
    AttentionTrial trial(backend(), shape, random);
    EXPECT_TRUE(trial.isRight(random));
    if (!backend().abilities().selection)
      continue;
    // A selection keeps at least one block, even when asked for none.
    trial.config.method = "topk";
    trial.config.topK = 0;
    BlockLists lists;
    AttentionOutputs outputs;
    outputs.lists = &lists;
    trial.o.poison();
    trial.o.upload();
    ASSERT_TRUE(
        succeeded(attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                                trial.v.view(), trial.config, outputs)));
    trial.o.download();
    lists = listsOnHost(backend(), lists);
    EXPECT_EQ(lists.counts.data<std::int32_t>()[0], 1);
    for (const double value : trial.o.values())
      ASSERT_TRUE(std::isfinite(value));
  }
}

} // namespace
} // namespace spargejit::numerics

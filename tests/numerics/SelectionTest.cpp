// SPDX-License-Identifier: Apache-2.0
//
// Block selection against the float64 reference: a thousand rows and more of
// each kind, and shapes of every sort.
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace spargejit::numerics {
namespace {

using reference::Random;

const std::vector<SelectionRule> kRules = {
    {"topk", 0.1, 0},
    {"topk", 0.5, 0},
    {"topp", 0, 0.4},
    {"topp", 0, 0.9},
    {"spargeattention2", 0.03, 0.2},
    {"spargeattention2", 0.25, 0.5},
};

class Selection : public BackendTest {
protected:
  /// Every rule on rows that `prepare` fills in: at least 1000 rows a rule.
  /// Returns the tally over all rules.
  SelectionTally
  checkRows(const SelectionCase &shape,
            const std::function<void(SelectionTrial &, Random &)> &prepare) {
    SelectionTally total;
    const std::int64_t wanted = repetitions(1000, 100);
    for (const SelectionRule &rule : kRules) {
      SelectionTally tally;
      for (std::uint64_t draw = 0; tally.rows < wanted; ++draw) {
        Random random = randomForTest(draw);
        SelectionTrial trial(backend(), shape);
        prepare(trial, random);
        const auto result = trial.isRight(rule, tally);
        EXPECT_TRUE(result) << "draw " << draw;
        if (!result)
          return total;
      }
      total.rows += tally.rows;
      total.nearTies += tally.nearTies;
    }
    testing::Test::RecordProperty("near_ties",
                                  static_cast<int>(total.nearTies));
    return total;
  }
};
SPARGEJIT_ON_EVERY_BACKEND(Selection);

/// A direction for every block of `tensor` plus noise, so that the means of
/// blocks differ as those of real tokens do.
void fillBlockwise(TestTensor &tensor, std::int64_t block, double blockScale,
                   double noise, Random &random) {
  const std::int64_t headDim = tensor.host().sizes[3];
  const std::int64_t length = tensor.host().sizes[2];
  std::vector<double> direction;
  std::int64_t at = 0;
  tensor.fill([&] {
    const std::int64_t d = at % headDim;
    const std::int64_t n = at / headDim % length;
    if (n % block == 0 && d == 0) {
      direction.clear();
      for (std::int64_t i = 0; i < headDim; ++i)
        direction.push_back(blockScale * random.normal());
    }
    ++at;
    return direction[static_cast<std::size_t>(d)] + noise * random.normal();
  });
}

// Four heads of two batches, 33 rows of blocks each, the last ones ragged.
const SelectionCase kShape = {.batch = 2,
                              .qHeads = 4,
                              .kvHeads = 2,
                              .qLen = 32 * 64 + 17,
                              .kvLen = 57 * 32 + 5,
                              .headDim = 40,
                              .maskBlockQ = 64,
                              .maskBlockKv = 32};

TEST_P(Selection, TokenLikeRows) {
  const SelectionTally tally =
      checkRows(kShape, [](SelectionTrial &trial, Random &random) {
        fillBlockwise(trial.q, 64, 1, 1, random);
        fillBlockwise(trial.k, 32, 1, 1, random);
      });
  EXPECT_LT(tally.nearTies * 100, tally.rows); // below one per cent
}

// Keys almost alike: probabilities nearly flat, cuts between close scores.
TEST_P(Selection, UniformRows) {
  const SelectionTally tally =
      checkRows(kShape, [](SelectionTrial &trial, Random &random) {
        trial.q.fillNormal(random);
        trial.k.fill([&] { return 1 + 0.1 * random.normal(); });
      });
  EXPECT_LT(tally.nearTies * 20, tally.rows); // below five per cent
}

// One key block takes nearly all of the mass.
TEST_P(Selection, SkewedRows) {
  const SelectionTally tally =
      checkRows(kShape, [](SelectionTrial &trial, Random &random) {
        fillBlockwise(trial.q, 64, 1, 0.3, random);
        fillBlockwise(trial.k, 32, 3, 0.3, random);
      });
  EXPECT_LT(tally.nearTies * 100, tally.rows);
}

// Scores that are equal to the last bit, because they come from small integers:
// ties go to the lower index, always.
// cases: 39
TEST_P(Selection, TiedRows) {
  SelectionCase shape = kShape;
  shape.headDim = 64; // the default scale 1/8 is exact
  const SelectionTally tally =
      checkRows(shape, [](SelectionTrial &trial, Random &random) {
        std::int64_t at = 0;
        trial.q.fill([&] { return at++ % 64 < 2 ? 1.0 : 0.0; });
        std::vector<double> perBlock;
        for (int i = 0; i < 58; ++i)
          perBlock.push_back(static_cast<double>(random.below(4)));
        at = 0;
        trial.k.fill([&] {
          const std::int64_t n = at / 64 % trial.shape.kvLen;
          const bool isUsed = at++ % 64 < 2;
          return isUsed ? perBlock[static_cast<std::size_t>(n / 32)] : 0.0;
        });
      });
  // Only top-p can come near a tie here.
  EXPECT_LT(tally.nearTies * 20, tally.rows);
}

// Some tokens of k, and of q, are NaN: their blocks rank last, and nothing else
// changes.
TEST_P(Selection, RowsWithNotANumber) {
  const SelectionTally tally =
      checkRows(kShape, [](SelectionTrial &trial, Random &random) {
        fillBlockwise(trial.q, 64, 1, 1, random);
        fillBlockwise(trial.k, 32, 1, 1, random);
        for (TestTensor *tensor : {&trial.q, &trial.k}) {
          const std::vector<double> values = tensor->values();
          const bool isQuery = tensor == &trial.q;
          std::size_t at = 0;
          tensor->fill([&] {
            const double value = values[at++];
            // Every second block of k, every tenth of q, on average.
            return random.chance(isQuery ? 4e-5 : 5e-4) ? std::nan("") : value;
          });
        }
      });
  EXPECT_LT(tally.nearTies * 50, tally.rows);
}

// No key block has a score: NaN or -inf everywhere. There are no probabilities,
// and rank alone keeps the lowest indices.
TEST_P(Selection, RowsWithoutScores) {
  for (const double value :
       {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    checkRows(kShape, [&](SelectionTrial &trial, Random &) {
      trial.q.fill([] { return 1.0; });
      trial.k.fill([&] { return value; });
    });
  }
}

TEST_P(Selection, OneKeyBlock) {
  SelectionCase shape = kShape;
  shape.kvLen = 20;
  const SelectionTally tally =
      checkRows(shape, [](SelectionTrial &trial, Random &random) {
        trial.q.fillNormal(random);
        trial.k.fillNormal(random);
      });
  EXPECT_EQ(tally.nearTies, 0);
}

// Causality hides blocks; hidden ones are never selected, not even when nothing
// else is left.
TEST_P(Selection, CausalRows) {
  for (const std::int64_t kvLen : {57 * 32 + 5, 700, 3000}) {
    SelectionCase shape = kShape;
    shape.causal = true;
    shape.kvLen = kvLen;
    const SelectionTally tally =
        checkRows(shape, [](SelectionTrial &trial, Random &random) {
          fillBlockwise(trial.q, 64, 1, 1, random);
          fillBlockwise(trial.k, 32, 1, 1, random);
        });
    EXPECT_LT(tally.nearTies * 100, tally.rows);
  }
}

// More key blocks than any tile or register holds.
TEST_P(Selection, ThousandsOfKeyBlocks) {
  Random random = randomForTest();
  SelectionTally tally;
  for (const SelectionRule &rule : kRules) {
    SelectionTrial trial(backend(), {.qLen = 300,
                                     .kvLen = repetitions(4099, 1030) * 16 - 9,
                                     .headDim = 16,
                                     .maskBlockKv = 16});
    fillBlockwise(trial.q, 128, 1, 1, random);
    fillBlockwise(trial.k, 16, 1, 1, random);
    EXPECT_TRUE(trial.isRight(rule, tally));
  }
}

// Types, head dimensions, mask blocks, grouped heads, lengths, views, scales.
// cases: 8, 62, 63, 68
TEST_P(Selection, EveryKindOfShape) {
  SelectionTally tally;
  for (std::int64_t draw = repetitions(120, 24); draw > 0; --draw) {
    Random random = randomForTest(static_cast<std::uint64_t>(draw));
    SelectionCase shape;
    shape.dtype = random.pick(std::vector<DataType>{
        DataType::Float32, DataType::BFloat16, DataType::Float16});
    shape.headDim = random.pick(std::vector<std::int64_t>{8, 72, 128});
    shape.maskBlockQ = 64 << random.below(2);
    shape.maskBlockKv = 16 << random.below(4);
    shape.causal = random.chance(0.4);
    shape.batch = 1 + random.below(2);
    shape.kvHeads = 1 + random.below(2);
    shape.qHeads = shape.kvHeads * (1 + random.below(3));
    shape.qLen = 1 + random.below(700);
    shape.kvLen = 1 + random.below(900);
    shape.placement.layout = random.pick(std::vector<Layout>{
        Layout::HeadMajor, Layout::LengthMajor, Layout::PackedQkv,
        Layout::PaddedRows, Layout::Reversed, Layout::OddBase});
    if (backend().hasFences() && random.chance(0.5))
      shape.placement.surroundings = Surroundings::Fence;
    SelectionTrial trial(backend(), shape);
    fillBlockwise(trial.q, shape.maskBlockQ, 1, 1, random);
    fillBlockwise(trial.k, shape.maskBlockKv, 1, 1, random);
    if (random.chance(0.3))
      trial.softmaxScale = random.normal();
    if (!backend().abilities().anyScale && trial.softmaxScale)
      trial.softmaxScale = std::fabs(*trial.softmaxScale);
    EXPECT_TRUE(trial.isRight(random.pick(kRules), tally)) << "draw " << draw;
  }
  EXPECT_LT(tally.nearTies * 50, tally.rows);
}

} // namespace
} // namespace spargejit::numerics

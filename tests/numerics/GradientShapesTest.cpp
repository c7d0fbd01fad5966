// SPDX-License-Identifier: Apache-2.0
//
// The table of gradients against the float64 reference: data types, head
// dimensions, mask blocks, lengths and groupings of heads.
#include "tests/numerics/harness/GradientTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"

#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <vector>

namespace spargejit::numerics {
namespace {

enum class Mode { Lists, CausalLists, Dense, CausalDense };
const std::vector<Mode> kModes = {Mode::Lists, Mode::CausalLists, Mode::Dense,
                                  Mode::CausalDense};

/// Cases of a table, which are compiled together and then run.
class Trials {
public:
  explicit Trials(TestBackend &backend) : backend_(backend) {}
  void add(AttentionCase shape, Mode mode, Random &random) {
    shape.causal = mode == Mode::CausalLists || mode == Mode::CausalDense;
    trials_.push_back(std::make_unique<GradientTrial>(backend_, shape, random));
    GradientTrial &trial = *trials_.back();
    trial.wantsDLse = random.chance(0.5);
    if (mode == Mode::Lists || mode == Mode::CausalLists)
      trial.forward.useLists(
          trial.forward.shape.randomMask(random, 0.5, true), random,
          {.shuffled = true, .garbageSuffix = true, .spareSlots = 1});
  }
  void expectRight() const {
    prepareTogether(trials_);
    for (const auto &trial : trials_)
      EXPECT_TRUE(trial->isRight());
  }

private:
  TestBackend &backend_;
  std::vector<std::unique_ptr<GradientTrial>> trials_;
};

const DataType kTypes[] = {DataType::Float32, DataType::BFloat16,
                           DataType::Float16};

class GradientShapes : public TypedBackendTest {};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(GradientShapes);

TEST_P(GradientShapes, EveryHeadDimension) {
  Random random = randomForTest();
  Trials trials(backend());
  std::size_t turn = 0;
  // Types differ in how they are loaded and stored alone: one has all.
  std::vector<std::int64_t> headDims = {8, 40, 64, 96, 128, 256};
  if (dtype() == DataType::BFloat16)
    headDims = {8, 16, 24, 40, 64, 72, 80, 96, 104, 128, 160, 192, 248, 256};
  for (const std::int64_t headDim : headDims) {
    if (isReduced() && headDim % 64 != 0)
      continue;
    ++turn;
    trials.add({.dtype = dtype(),
                .qHeads = 2,
                .kvHeads = 1 + static_cast<std::int64_t>(turn % 2),
                .qLen = 1 + random.below(200),
                .kvLen = 1 + random.below(200),
                .headDim = headDim,
                .maskBlockQ = turn % 2 ? 64 : 128,
                .maskBlockKv = std::int64_t{16} << (turn / 2 % 4)},
               kModes[turn % 4], random);
  }
  trials.expectRight();
}

// Query heads that share a key head add up in its gradients.
// cases: 108
TEST_P(GradientShapes, BatchesAndGroupedHeads) {
  Random random = randomForTest();
  Trials trials(backend());
  for (const auto &[batch, qHeads, kvHeads] :
       {std::tuple{2, 1, 1}, std::tuple{2, 8, 2}, std::tuple{1, 6, 1},
        std::tuple{3, 3, 3}})
    for (const Mode mode : kModes)
      trials.add({.dtype = dtype(),
                  .batch = batch,
                  .qHeads = qHeads,
                  .kvHeads = kvHeads,
                  .qLen = 1 + random.below(150),
                  .kvLen = 1 + random.below(150),
                  .headDim = 40},
                 mode, random);
  trials.expectRight();
}

class GradientLengths : public BackendTest {};
SPARGEJIT_ON_EVERY_BACKEND(GradientLengths);

TEST_P(GradientLengths, EveryMaskBlock) {
  Random random = randomForTest();
  Trials trials(backend());
  std::size_t turn = 0;
  for (const std::int64_t maskBlockQ : {64, 128})
    for (const std::int64_t maskBlockKv : {16, 32, 64, 128})
      for (const Mode mode : {Mode::Lists, Mode::CausalLists})
        trials.add({.dtype = kTypes[turn++ % 3],
                    .qHeads = 2,
                    .qLen = 129 + random.below(200),
                    .kvLen = 129 + random.below(200),
                    .headDim = 32,
                    .maskBlockQ = maskBlockQ,
                    .maskBlockKv = maskBlockKv},
                   mode, random);
  trials.expectRight();
}

// One token, a block less one, a block, a block and one, primes, queries and
// keys of different lengths, in every pairing.
// cases: 8, 30, 44
TEST_P(GradientLengths, EveryPair) {
  std::vector<std::int64_t> lengths = {1, 31, 63, 64, 65, 127, 129, 257};
  if (isReduced())
    lengths = {1, 63, 129};
  Random random = randomForTest();
  Trials trials(backend());
  for (const std::int64_t qLen : lengths)
    for (const std::int64_t kvLen : lengths)
      trials.add({.qLen = qLen, .kvLen = kvLen, .headDim = 16},
                 random.pick(kModes), random);
  trials.expectRight();
}

// Longer than any tile, with more blocks than one panel of the inversion has.
// cases: 44
TEST_P(GradientLengths, Thousands) {
  if (isReduced())
    GTEST_SKIP() << "too long for a reduced run";
  Random random = randomForTest();
  Trials trials(backend());
  for (const auto &[qLen, kvLen] :
       {std::pair{1000, 1025}, std::pair{1025, 1000}, std::pair{97, 4096},
        std::pair{4097, 97}})
    for (const Mode mode : {Mode::Lists, Mode::CausalDense})
      trials.add(
          {.qLen = qLen, .kvLen = kvLen, .headDim = 8, .maskBlockKv = 16}, mode,
          random);
  trials.expectRight();
}

TEST_P(GradientLengths, NothingToAttendTo) {
  Random random = randomForTest();
  for (const auto &[batch, qLen, kvLen] :
       {std::tuple{1, 0, 100}, std::tuple{1, 100, 0},
        std::tuple{0, 100, 100}}) {
    GradientTrial trial(
        backend(),
        {.batch = batch, .qLen = qLen, .kvLen = kvLen, .headDim = 16}, random);
    ASSERT_TRUE(succeeded(trial.run()));
    EXPECT_TRUE(trial.memoryIsIntact());
    for (const TestTensor *tensor : {&trial.dq, &trial.dk, &trial.dv})
      for (const double value : tensor->values())
        ASSERT_EQ(value, 0);
  }
}

} // namespace
} // namespace spargejit::numerics

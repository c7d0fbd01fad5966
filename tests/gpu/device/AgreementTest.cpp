// SPDX-License-Identifier: Apache-2.0
//
// The same q and k on the CPU and on the card: lists that are equal to the last
// bit, but for rows that float64 calls near-ties, which are counted; and a
// hundred selections of each kind of rows that are the same.
#include "spargejit/spargejit.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/CudaTestBackend.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

namespace spargejit::gpu {
namespace {

using numerics::Random;
using numerics::randomForTest;
using numerics::SelectionCase;
using numerics::SelectionRule;
using numerics::SelectionTrial;
using numerics::succeeded;
using numerics::TestTensor;

/// 8 heads of 33 rows of blocks and 58 key blocks, the last of each ragged:
/// 264 rows, and a thousand with four draws.
constexpr SelectionCase kShape{.dtype = DataType::BFloat16,
                               .batch = 2,
                               .qHeads = 4,
                               .kvHeads = 2,
                               .qLen = 32 * 64 + 17,
                               .kvLen = 57 * 32 + 5,
                               .headDim = 128,
                               .maskBlockQ = 64,
                               .maskBlockKv = 32};

/// A kind of rows: the shape, and how q and k are filled.
struct Kind {
  const char *name;
  SelectionCase shape;
  std::function<void(TestTensor &q, TestTensor &k, Random &random)> fill;
};

/// Every block of rows has a direction of its own, and noise.
void fillBlocks(TestTensor &tensor, std::int64_t block, double scale,
                double noise, Random &random) {
  std::vector<double> direction(
      static_cast<std::size_t>(tensor.host().sizes[3]));
  std::size_t at = 0;
  tensor.fill([&] {
    const std::size_t d = at % direction.size();
    if (d == 0 && at / direction.size() % static_cast<std::size_t>(block) == 0)
      for (double &value : direction)
        value = scale * random.normal();
    ++at;
    return direction[d] + noise * random.normal();
  });
}

SelectionCase with(SelectionCase shape, std::int64_t kvLen, bool causal) {
  shape.kvLen = kvLen;
  shape.causal = causal;
  return shape;
}

std::vector<Kind> kinds() {
  auto tokens = [](TestTensor &q, TestTensor &k, Random &random) {
    fillBlocks(q, 64, 0.5, 1, random);
    fillBlocks(k, 32, 0.5, 1, random);
  };
  auto alike = [](TestTensor &q, TestTensor &k, Random &random) {
    q.fillNormal(random);
    k.fill([&] { return 1 + 0.1 * random.normal(); });
  };
  auto skewed = [](TestTensor &q, TestTensor &k, Random &random) {
    fillBlocks(q, 64, 1, 0.3, random);
    fillBlocks(k, 32, 3, 0.3, random);
  };
  // Small integers, so that scores are equal to the last bit.
  auto tied = [](TestTensor &q, TestTensor &k, Random &random) {
    std::size_t at = 0;
    double level = 0;
    q.fill([&] { return at++ % 128 < 2 ? 1.0 : 0.0; });
    at = 0;
    k.fill([&] {
      if (at % (32 * 128) == 0)
        level = static_cast<double>(random.below(4));
      return at++ % 128 < 2 ? level : 0.0;
    });
  };
  auto notNumbers = [tokens](TestTensor &q, TestTensor &k, Random &random) {
    tokens(q, k, random);
    for (TestTensor *tensor : {&q, &k}) {
      const std::vector<double> values = tensor->values();
      std::size_t at = 0;
      const double chance = tensor == &q ? 1e-5 : 1e-4;
      tensor->fill([&] {
        const double value = values[at++];
        return random.chance(chance) ? std::nan("") : value;
      });
    }
  };
  auto infinite = [](TestTensor &q, TestTensor &k, Random &) {
    q.fill([] { return 1.0; });
    k.fill([] { return -std::numeric_limits<double>::infinity(); });
  };
  return {{"tokens", kShape, tokens},
          {"uniform", kShape, alike},
          {"skewed", kShape, skewed},
          {"tied", kShape, tied},
          {"NaN", kShape, notNumbers},
          {"all -inf", kShape, infinite},
          {"one block", with(kShape, 20, false), tokens},
          {"ragged, causal", with(kShape, 1000, true), tokens}};
}

class Agreement : public GpuTest {
protected:
  numerics::TestBackend &card() { return *numerics::cudaTestBackend(); }
  numerics::TestBackend &cpu() {
    return *numerics::availableBackends().front();
  }
};

TEST_F(Agreement, CpuAndCardSelectTheSameBlocks) {
  const SelectionRule rules[] = {
      {"topk", 0.1, 0}, {"topp", 0, 0.4}, {"spargeattention2", 0.05, 0.3}};
  ASSERT_EQ(cpu().device().kind, DeviceKind::Cpu);
  for (const Kind &kind : kinds()) {
    std::int64_t rows = 0, nearTies = 0, different = 0;
    for (std::uint64_t draw = 0; rows < 1000; ++draw) {
      Random random = randomForTest(draw);
      SelectionTrial there(card(), kind.shape), here(cpu(), kind.shape);
      kind.fill(there.q, there.k, random);
      for (auto [to, from] :
           {std::pair{&here.q, &there.q}, std::pair{&here.k, &there.k}}) {
        const std::vector<double> values = from->values();
        std::size_t at = 0;
        to->fill([&] { return values[at++]; });
      }
      for (const SelectionRule &rule : rules) {
        const auto onCard = there.select(rule), onCpu = here.select(rule);
        ASSERT_TRUE(succeeded(onCard.status()));
        ASSERT_TRUE(succeeded(onCpu.status()));
        const auto expected = there.expected(rule);
        for (std::size_t row = 0; row < expected.size(); ++row) {
          const auto number = static_cast<std::int64_t>(row);
          const bool isEqual = numerics::listOf(*onCard, number) ==
                               numerics::listOf(*onCpu, number);
          ++rows;
          nearTies += expected[row].isNearTie();
          different += !isEqual;
          EXPECT_TRUE(isEqual || expected[row].isNearTie())
              << kind.name << ", " << rule.method << ", row " << row;
        }
      }
    }
    std::printf("%-15s %lld rows, %lld near-ties, of which %lld differ\n",
                kind.name, static_cast<long long>(rows),
                static_cast<long long>(nearTies),
                static_cast<long long>(different));
    EXPECT_LE(different, nearTies);
    EXPECT_LT(nearTies * 10, rows) << kind.name;
  }
}

TEST_F(Agreement, AHundredSelectionsOfEachKindAreTheSame) {
  for (const Kind &kind : kinds()) {
    Random random = randomForTest();
    SelectionTrial trial(card(), kind.shape);
    kind.fill(trial.q, trial.k, random);
    const SelectionRule rule{"spargeattention2", 0.05, 0.3};
    const auto first = trial.select(rule);
    ASSERT_TRUE(succeeded(first.status()));
    const auto entries = numerics::everyEntryOf(*first);
    for (int repeat = 0; repeat < 100; ++repeat) {
      auto again =
          selectBlocks(trial.q.view(), trial.k.view(), trial.configOf(rule));
      ASSERT_TRUE(succeeded(again.status()));
      ASSERT_EQ(numerics::everyEntryOf(numerics::listsOnHost(card(), *again)),
                entries)
          << kind.name << ", repeat " << repeat;
    }
  }
}

} // namespace
} // namespace spargejit::gpu

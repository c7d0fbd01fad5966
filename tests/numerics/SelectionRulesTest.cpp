// SPDX-License-Identifier: Apache-2.0
//
// The rules of selection among themselves: what hybrid is made of, how many
// blocks remain, ties, repetition, bounds of k and p.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace spargejit::numerics {
namespace {

using reference::Random;

class SelectionRules : public BackendTest {
protected:
  std::vector<std::vector<std::int32_t>> rowsOf(SelectionTrial &trial,
                                                const SelectionRule &rule) {
    const Result<BlockLists> lists = trial.select(rule);
    EXPECT_TRUE(succeeded(lists.status())) << trial.shape.describe(rule);
    std::vector<std::vector<std::int32_t>> rows;
    if (lists.ok())
      for (std::int64_t row = 0; row < lists->counts.view().elementCount();
           ++row)
        rows.push_back(listOf(*lists, row));
    return rows;
  }
};
SPARGEJIT_ON_EVERY_BACKEND(SelectionRules);

SelectionCase tokens(std::int64_t qLen, std::int64_t kvLen) {
  return {.qHeads = 2, .kvHeads = 2, .qLen = qLen, .kvLen = kvLen};
}

// Same ranking, same prefix rule: exact equality, row by row.
TEST_P(SelectionRules, HybridIsTheUnionOfBothRules) {
  Random random = randomForTest();
  for (const bool causal : {false, true}) {
    SelectionCase shape = tokens(1200, 2100);
    shape.causal = causal;
    SelectionTrial trial(backend(), shape);
    trial.q.fillNormal(random);
    trial.k.fillNormal(random);
    trial.softmaxScale = 8.0; // far from uniform
    for (const double topK : {0.0, 0.03, 0.2, 0.5, 1.0}) {
      for (const double topP : {0.0, 0.2, 0.6, 0.95}) {
        const auto byRank = rowsOf(trial, {"topk", topK, 0});
        const auto byMass = rowsOf(trial, {"topp", 0, topP});
        const auto hybrid = rowsOf(trial, {"spargeattention2", topK, topP});
        ASSERT_EQ(hybrid.size(), byRank.size());
        for (std::size_t row = 0; row < hybrid.size(); ++row) {
          std::vector<std::int32_t> both;
          std::set_union(byRank[row].begin(), byRank[row].end(),
                         byMass[row].begin(), byMass[row].end(),
                         std::back_inserter(both));
          ASSERT_EQ(hybrid[row], both) << "row " << row;
          ASSERT_EQ(hybrid[row].size(),
                    std::max(byRank[row].size(), byMass[row].size()));
        }
      }
    }
  }
}

TEST_P(SelectionRules, HybridWithoutOneHalfIsTheOther) {
  Random random = randomForTest();
  SelectionTrial trial(backend(), tokens(900, 3000));
  trial.q.fillNormal(random);
  trial.k.fillNormal(random);
  EXPECT_EQ(rowsOf(trial, {"spargeattention2", 0.1, 0}),
            rowsOf(trial, {"topk", 0.1, 0}));
  EXPECT_EQ(rowsOf(trial, {"spargeattention2", 0, 0.4}),
            rowsOf(trial, {"topp", 0, 0.4}));
}

// k = clamp(trunc(ratio · blocks), 1, blocks), from the blocks of real tokens:
// 130 tokens are 3 blocks, never 4; a share below one block keeps one.
// cases: 16, 17, 29
TEST_P(SelectionRules, CountsFollowTheRatio) {
  Random random = randomForTest();
  struct Row {
    std::int64_t kvLen;
    double ratio;
    std::size_t count;
  };
  for (const Row &row :
       {Row{130, 1.0, 3}, Row{130, 0.67, 2}, Row{1024, 0.05, 1},
        Row{1024, 0.0, 1}, Row{64 * 100, 0.29, 28}, Row{64 * 100, 0.5, 50},
        Row{5, 0.0, 1}, Row{5, 1.0, 1}, Row{32760, 0.03, 15},
        Row{64, 0.99, 1}}) {
    SelectionTrial trial(backend(), tokens(200, row.kvLen));
    trial.q.fillNormal(random);
    trial.k.fillNormal(random);
    for (const auto &list : rowsOf(trial, {"topk", row.ratio, 0}))
      ASSERT_EQ(list.size(), row.count)
          << row.kvLen << " tokens, ratio " << row.ratio;
  }
}

// A uniform row of 1024 blocks: p = 0.999 keeps 1023 (or a neighbour, by
// rounding of the sums), p = 1 all, p = 0 one, and never more than there are.
// cases: 40
TEST_P(SelectionRules, MassOfAUniformRow) {
  SelectionTrial trial(backend(),
                       {.qLen = 130, .kvLen = 1024 * 16, .maskBlockKv = 16});
  trial.q.fill([] { return 1.0; });
  trial.k.fill([] { return 0.5; });
  const auto countOf = [&](double p) {
    const auto rows = rowsOf(trial, {"topp", 0, p});
    EXPECT_EQ(rows.at(0).size(), rows.at(1).size());
    return static_cast<double>(rows.at(0).size());
  };
  EXPECT_NEAR(countOf(0.999), 1023, 1);
  EXPECT_EQ(countOf(1.0), 1024);
  EXPECT_EQ(countOf(0.0), 1);
  EXPECT_NEAR(countOf(0.25), 256, 1);
}

// p = 1 keeps every block, however little mass the last ones have.
// cases: 40
TEST_P(SelectionRules, AllMassIsAllBlocks) {
  Random random = randomForTest();
  for (const double scale : {0.1, 1.0, 30.0}) {
    SelectionTrial trial(backend(), tokens(300, 1000));
    trial.q.fillNormal(random);
    trial.k.fillNormal(random);
    trial.softmaxScale = scale;
    for (const auto &list : rowsOf(trial, {"topp", 0, 1.0}))
      ASSERT_EQ(list.size(), 16U) << "scale " << scale;
  }
}

// Pooled scores that bfloat16 could not tell apart are ranked by their float32
// values, and true ties by index: no preference for early blocks beyond that.
// cases: 39
TEST_P(SelectionRules, CloseScoresAreRankedInFloat32) {
  SPARGEJIT_NEEDS(float32); // as inputs, which no 16-bit type can tell apart
  SelectionTrial trial(backend(), {.qLen = 128, .kvLen = 64 * 64});
  trial.q.fill([] { return 1.0; });
  std::int64_t at = 0;
  // Score of block j is 8·(1 + j·2^-12): one bfloat16 value for all 64 blocks.
  trial.k.fill([&] {
    const std::int64_t block = at++ / 64 / 64;
    return 1 + static_cast<double>(block) * 0x1p-12;
  });
  std::vector<std::int32_t> last16;
  for (std::int32_t j = 48; j < 64; ++j)
    last16.push_back(j);
  EXPECT_EQ(rowsOf(trial, {"topk", 0.25, 0}).at(0), last16);
}

// A hundred selections with ties, on one thread and on several, alone and
// inside a call of attention: the same lists, slot by slot.
// cases: 41
TEST_P(SelectionRules, RepeatedSelectionsAreIdentical) {
  Random random = randomForTest();
  SelectionTrial trial(backend(), tokens(700, 1500));
  for (TestTensor *tensor : {&trial.q, &trial.k}) {
    tensor->fill([&] { return static_cast<double>(random.below(2)); });
    tensor->upload();
  }
  const SelectionRule rule = {"spargeattention2", 0.2, 0.4};
  const Result<BlockLists> first = trial.select(rule);
  ASSERT_TRUE(succeeded(first.status()));
  AttentionConfig config = trial.configOf(rule);
  for (std::int64_t run = repetitions(100, 20); run > 0; --run) {
    config.threads = static_cast<int>(run % 5);
    BlockLists lists;
    if (run % 2 == 0) {
      AttentionOutputs outputs;
      outputs.lists = &lists;
      ASSERT_TRUE(succeeded(attention(trial.q.view(), trial.k.view(),
                                      trial.k.view(), config, outputs)
                                .status()));
    } else {
      auto made = selectBlocks(trial.q.view(), trial.k.view(), config);
      ASSERT_TRUE(succeeded(made.status()));
      lists = *made;
    }
    lists = listsOnHost(backend(), lists);
    ASSERT_EQ(everyEntryOf(lists), everyEntryOf(*first)) << "run " << run;
  }
}

// Equal scores everywhere: the lowest indices, in every row.
// cases: 39, 41
TEST_P(SelectionRules, EqualScoresKeepTheFirstBlocks) {
  for (const DataType dtype :
       {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
    SelectionCase shape = tokens(300, 64 * 20);
    shape.dtype = dtype;
    SelectionTrial trial(backend(), shape);
    trial.q.fill([] { return 0.5; });
    trial.k.fill([] { return 1.5; });
    for (const auto &list : rowsOf(trial, {"topk", 0.2, 0}))
      ASSERT_EQ(list, (std::vector<std::int32_t>{0, 1, 2, 3}));
  }
}

// One mask for all: the type of q and k changes pooled values by rounding only
// where the inputs differ.
TEST_P(SelectionRules, TypesAgreeOnRepresentableInputs) {
  Random random = randomForTest();
  std::vector<std::vector<std::int32_t>> rows;
  std::vector<double> values;
  for (int i = 0; i < 2 * 1500 * 64; ++i)
    values.push_back(static_cast<double>(random.below(255) - 127) / 64);
  for (const DataType dtype :
       {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
    SelectionCase shape = tokens(1500, 1500);
    shape.dtype = dtype;
    SelectionTrial trial(backend(), shape);
    for (TestTensor *tensor : {&trial.q, &trial.k}) {
      std::size_t at = tensor == &trial.q ? 0 : 77;
      tensor->fill([&] { return values[at++ % values.size()]; });
    }
    const auto now = rowsOf(trial, {"spargeattention2", 0.1, 0.3});
    if (rows.empty())
      rows = now;
    EXPECT_EQ(now, rows) << dataTypeName(dtype);
  }
}

} // namespace
} // namespace spargejit::numerics

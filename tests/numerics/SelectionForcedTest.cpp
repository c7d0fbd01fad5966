// SPDX-License-Identifier: Apache-2.0
//
// Blocks that are kept whatever is selected: those that a method forces
// (keep_diagonal, keep_first), and those of a call's denseKeys and denseRows;
// against the float64 reference.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace spargejit::numerics {
namespace {

namespace fs = std::filesystem;
using reference::Random;

/// Top-k with `forced`, the attributes of sparge.select_blocks.
std::string methodText(const std::string &forced) {
  return "sparge.method @forced(%q: !sparge.tensor<query>, "
         "%k: !sparge.tensor<key>, %v: !sparge.tensor<value>) {\n"
         "  %top_k = sparge.parameter \"top_k\"\n"
         "  %pooled_q = sparge.pool %q : !sparge.tensor<query>\n"
         "  %pooled_k = sparge.pool %k : !sparge.tensor<key>\n"
         "  %scores = sparge.block_scores %pooled_q, %pooled_k\n"
         "    : !sparge.pooled<query>, !sparge.pooled<key>\n"
         "  %lists = sparge.select_blocks %scores top_k(%top_k) {" +
         forced +
         "}\n"
         "  %o, %lse = sparge.attention %q, %k, %v lists(%lists)\n"
         "    : !sparge.tensor<query>, !sparge.tensor<key>, "
         "!sparge.tensor<value>\n"
         "  sparge.return %o, %lse, %lists\n"
         "    : !sparge.tensor<output>, !sparge.lse, !sparge.lists\n"
         "}\n";
}

class SelectionForced : public BackendTest {
protected:
  SelectionForced()
      : folder_(fs::path(testing::TempDir()) /
                ("forced_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~SelectionForced() override { fs::remove_all(folder_); }

  std::string method(const std::string &name, const std::string &forced) {
    const fs::path path = folder_ / (name + ".mlir");
    std::ofstream(path) << methodText(forced);
    return path;
  }
  /// Random rows of a shape with ragged ends, causal or not.
  void expectRight(const SelectionRule &rule) {
    SelectionTally tally;
    for (const bool causal : {false, true}) {
      Random random = randomForTest(causal);
      SelectionCase shape{.batch = 2,
                          .qHeads = 2,
                          .kvHeads = 1,
                          .qLen = 1100,
                          .kvLen = 1490,
                          .maskBlockKv = 32};
      shape.causal = causal;
      SelectionTrial trial(backend(), shape);
      trial.q.fillNormal(random);
      trial.k.fillNormal(random);
      EXPECT_TRUE(trial.isRight(rule, tally)) << "causal " << causal;
    }
    EXPECT_LT(tally.nearTies * 10, tally.rows);
  }

private:
  const fs::path folder_;
};
SPARGEJIT_ON_EVERY_BACKEND(SelectionForced);

TEST_P(SelectionForced, AMethodsDiagonalAndFirstBlocks) {
  SelectionRule rule{method("both", "keep_diagonal, keep_first = 2"), 0.05, 0};
  rule.keepDiagonal = true;
  rule.keepFirst = 2;
  expectRight(rule);
  SelectionRule first{method("first", "keep_first = 3"), 0.05, 0};
  first.keepFirst = 3;
  expectRight(first);
}

TEST_P(SelectionForced, TheCallsKeysAreInEveryList) {
  for (const TokenRange &keys :
       {TokenRange{1200, 1490}, TokenRange{0, 77}, TokenRange{511, 513},
        TokenRange{64, 65}, TokenRange{0, 1490}}) {
    SelectionRule rule{"spargeattention2", 0.05, 0.1};
    rule.denseKeys = keys;
    expectRight(rule);
  }
}

TEST_P(SelectionForced, TheCallsRowsHaveEveryKey) {
  for (const TokenRange &rows : {TokenRange{1000, 1100}, TokenRange{0, 1},
                                 TokenRange{127, 129}, TokenRange{0, 1100}}) {
    SelectionRule rule{"topp", 0, 0.1};
    rule.denseRows = rows;
    expectRight(rule);
  }
}

// Text at the end of both, as in joint attention of video and text.
TEST_P(SelectionForced, BothRangesAndAMethodsOwn) {
  SelectionRule rule{method("with_first", "keep_first = 1"), 0.05, 0};
  rule.keepFirst = 1;
  rule.denseKeys = {1400, 1490};
  rule.denseRows = {1010, 1100};
  expectRight(rule);
}

TEST_P(SelectionForced, AttentionReadsTheseLists) {
  Random random = randomForTest();
  AttentionTrial trial(backend(),
                       {.dtype = DataType::BFloat16,
                        .qHeads = 2,
                        .kvHeads = 2,
                        .qLen = 500,
                        .kvLen = 700},
                       random);
  trial.config.method = "topk";
  trial.config.topK = 0.1;
  trial.config.denseKeys = {650, 700};
  trial.config.denseRows = {450, 500};
  ASSERT_TRUE(succeeded(trial.run()));
  auto made = selectBlocks(trial.q.view(), trial.k.view(), trial.config);
  ASSERT_TRUE(succeeded(made.status()));
  const BlockLists lists = listsOnHost(backend(), *made);
  for (std::int64_t row = 0; row < 2 * trial.shape.qBlocks(); ++row) {
    const auto list = listOf(lists, row);
    EXPECT_EQ(list.back(), 10); // which holds the last keys
    EXPECT_EQ(list.size() == 11, row % trial.shape.qBlocks() == 3);
  }
  trial.mask = reference::maskOfLists(lists.indices.view(), lists.counts.view(),
                                      trial.shape.kvBlocks());
  EXPECT_TRUE(trial.matchesReference(random));
}

} // namespace
} // namespace spargejit::numerics

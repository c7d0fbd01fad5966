// SPDX-License-Identifier: Apache-2.0
//
// What is timed beside a method: calls that take what it alone may be given
// would be refused.
#include "runtime/tools/spargejit/problem/MeasureMethod.h"

#include <gtest/gtest.h>

namespace spargejit::problem {
namespace {

AttentionConfig configOfEverything(const BlockLists &lists) {
  AttentionConfig config;
  config.method = "my_method.mlir";
  config.customSource = "float score(const spargejit::BlockPair &pair) {}";
  config.blockMask = TensorView();
  config.lists = &lists;
  config.maskBlockQ = 64;
  config.causal = true;
  config.softmaxScale = 0.5;
  config.precision = Precision::Fp8Fast;
  config.threads = 3;
  return config;
}

void expectTheSameProblem(const AttentionConfig &config) {
  EXPECT_EQ(config.maskBlockQ, 64);
  EXPECT_TRUE(config.causal);
  EXPECT_EQ(config.softmaxScale, 0.5);
  EXPECT_EQ(config.threads, 3);
}

TEST(MeasureMethod, AttendsOverTheListsInTheMethodsPrecision) {
  BlockLists given, selected;
  const AttentionConfig config =
      configOverLists(configOfEverything(given), selected);
  EXPECT_EQ(config.method, "block_sparse");
  EXPECT_EQ(config.customSource, "");
  EXPECT_FALSE(config.blockMask);
  EXPECT_EQ(config.lists, &selected);
  EXPECT_EQ(config.precision, Precision::Fp8Fast);
  expectTheSameProblem(config);
}

TEST(MeasureMethod, ComparesWithDenseAttentionOfTheInputs) {
  BlockLists given;
  const AttentionConfig config = configOfDense(configOfEverything(given));
  EXPECT_EQ(config.method, "dense");
  EXPECT_EQ(config.customSource, "");
  EXPECT_FALSE(config.blockMask);
  EXPECT_EQ(config.lists, nullptr);
  EXPECT_EQ(config.precision, Precision::Inputs);
  expectTheSameProblem(config);
}

} // namespace
} // namespace spargejit::problem

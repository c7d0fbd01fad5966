// SPDX-License-Identifier: Apache-2.0
//
// How many heads' score gradients a budget holds.
#include "runtime/plan/KeptGradients.h"

#include <gtest/gtest.h>

namespace spargejit::plan {
namespace {

AttentionProblem problemOf(std::int64_t qHeads, std::int64_t kvHeads,
                           std::int64_t length, std::int64_t batch = 1) {
  AttentionProblem problem;
  problem.kind = {DataType::BFloat16, 128, 128, 64, false};
  problem.batch = batch;
  problem.qHeads = qHeads;
  problem.kvHeads = kvHeads;
  problem.qLen = problem.kvLen = length;
  return problem;
}

constexpr std::int64_t kBlockBytes = 128 * 64 * 2;

// Wan 1.3B: 256 x 512 blocks a head, 6 % of which are 7864.32. As many bytes as
// q, k, v, o and the gradients of each.
TEST(KeptGradients, HeadsTakeTurnsInEqualShares) {
  AttentionProblem problem = problemOf(12, 12, 32760);
  constexpr std::int64_t kOwnBytes = 8LL * 12 * 32760 * 128 * 2;
  keepGradients(problem, kOwnBytes);
  EXPECT_EQ(problem.keptHeads, 6);
  EXPECT_EQ(problem.keptRoom, kOwnBytes / kBlockBytes / 6);
  EXPECT_GE(problem.keptRoom, 7865);
  EXPECT_EQ(keptHeadsOfQ(problem), 6);

  // Room for seven heads is given to six, twice.
  keepGradients(problem, 7 * 7865 * kBlockBytes);
  EXPECT_EQ(problem.keptHeads, 6);
  EXPECT_EQ(problem.keptRoom, 7 * 7865 / 6);
}

TEST(KeptGradients, NoHeadHasMoreRoomThanPairs) {
  AttentionProblem problem = problemOf(2, 2, 1000);
  keepGradients(problem, std::int64_t{1} << 40);
  EXPECT_EQ(problem.keptHeads, 2);
  EXPECT_EQ(problem.keptRoom, 8 * 16);
}

TEST(KeptGradients, HeadsOfAGroupAndBatchesGoTogether) {
  AttentionProblem problem = problemOf(8, 2, 4096, 3); // 32 x 64 blocks: 123
  keepGradients(problem, 2 * 12 * 123 * kBlockBytes - 1);
  EXPECT_EQ(problem.keptHeads, 1);
  EXPECT_EQ(keptHeadsOfQ(problem), 12);
  EXPECT_EQ(problem.keptRoom, 2 * 123 - 1);
}

TEST(KeptGradients, KeepsNothingWhereOneHeadHasNoRoom) {
  AttentionProblem problem = problemOf(8, 2, 4096, 3);
  for (const std::int64_t bytes :
       {std::int64_t{-1}, std::int64_t{0}, 12 * 123 * kBlockBytes - 1}) {
    keepGradients(problem, bytes);
    EXPECT_EQ(problem.keptHeads, 0) << bytes;
    EXPECT_EQ(problem.keptRoom, 0) << bytes;
    EXPECT_EQ(keptHeadsOfQ(problem), 0) << bytes;
  }
}

// Pieces of 2 KiB, eight to a block, are counted in 32 bits.
TEST(KeptGradients, CountsFitTheKernels) {
  AttentionProblem problem = problemOf(40, 40, 1 << 20);
  keepGradients(problem, INT64_MAX);
  ASSERT_GT(problem.keptHeads, 0);
  EXPECT_LE(problem.keptHeads * problem.keptRoom * 8, INT32_MAX);
}

} // namespace
} // namespace spargejit::plan

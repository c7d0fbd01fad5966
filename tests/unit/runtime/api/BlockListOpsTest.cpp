// SPDX-License-Identifier: Apache-2.0
//
// Lists from masks, of all blocks, checked.
#include "runtime/api/BlockListOps.h"

#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <vector>

namespace spargejit::api {
namespace {

plan::AttentionProblem problemOf(std::int64_t batch, std::int64_t heads,
                                 std::int64_t qBlocks, std::int64_t kvBlocks) {
  plan::AttentionProblem problem;
  problem.kind = {DataType::Float32, 16, 64, 16, false};
  problem.batch = batch;
  problem.qHeads = problem.kvHeads = heads;
  problem.qLen = qBlocks * 64 - 3;
  problem.kvLen = kvBlocks * 16 - 5;
  return problem;
}

Result<BlockLists> listsInMemory(const plan::AttentionProblem &problem) {
  return allocateLists(
      problem, [](DataType dtype, const std::vector<std::int64_t> &sizes) {
        return Tensor::allocate(dtype, sizes);
      });
}

/// New lists, every byte poisoned.
BlockLists poisonedLists(const plan::AttentionProblem &problem) {
  BlockLists lists = *listsInMemory(problem);
  for (const Tensor *tensor : {&lists.indices, &lists.counts})
    std::fill_n(tensor->data<std::int32_t>(), tensor->view().elementCount(),
                0x5a5a5a5a);
  return lists;
}

TEST(BlockListOps, ListsAMaskInAscendingOrder) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 30; ++repeat) {
    auto problem = problemOf(1 + random.below(3), 1 + random.below(3),
                             1 + random.below(9), 1 + random.below(200));
    const std::int64_t blocks = problem.kvBlocks();
    // Strides with gaps; now and then heads share one mask by a stride of 0.
    const std::int64_t step = 1 + random.below(2);
    const std::int64_t rowStride = blocks * step + 3;
    const std::int64_t headStride =
        random.chance(0.3) ? 0 : rowStride * problem.qBlocks();
    const std::int64_t batchStride =
        rowStride * problem.qBlocks() * problem.qHeads + 7;
    std::vector<std::uint8_t> bits(
        static_cast<std::size_t>(batchStride * problem.batch));
    const double share = random.uniform();
    for (auto &bit : bits)
      bit = random.chance(share)
                ? static_cast<std::uint8_t>(1 + random.below(255))
                : 0;
    TensorView mask = TensorView::strided(
        bits.data(), DataType::Bool,
        {problem.batch, problem.qHeads, problem.qBlocks(), blocks},
        {batchStride, headStride, rowStride, step});
    BlockLists lists = poisonedLists(problem);
    listsFromMask(mask, lists.indices.view(), lists.counts.view(), 0);

    const auto *entry = lists.indices.data<std::int32_t>();
    const auto *count = lists.counts.data<std::int32_t>();
    std::int64_t selected = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.qHeads; ++h)
        for (std::int64_t i = 0; i < problem.qBlocks(); ++i) {
          std::vector<std::int32_t> expected;
          for (std::int64_t j = 0; j < blocks; ++j)
            if (bits[static_cast<std::size_t>(b * batchStride + h * headStride +
                                              i * rowStride + j * step)])
              expected.push_back(static_cast<std::int32_t>(j));
          ASSERT_EQ(*count++, static_cast<std::int32_t>(expected.size()));
          selected += static_cast<std::int64_t>(expected.size());
          expected.resize(static_cast<std::size_t>(blocks), -1);
          ASSERT_EQ(std::vector(entry, entry + blocks), expected);
          entry += blocks;
        }
    EXPECT_DOUBLE_EQ(lists.density(),
                     static_cast<double>(selected) /
                         static_cast<double>(problem.batch * problem.qHeads *
                                             problem.qBlocks() * blocks));
    EXPECT_TRUE(validateEntries(lists, problem, 0).ok());
  }
}

TEST(BlockListOps, ListsAllBlocks) {
  auto problem = problemOf(2, 3, 5, 300);
  BlockLists lists = poisonedLists(problem);
  listAllBlocks(lists.indices.view(), lists.counts.view(), 0);
  for (std::int64_t row = 0; row < 2 * 3 * 5; ++row) {
    ASSERT_EQ(lists.counts.data<std::int32_t>()[row], 300);
    for (std::int64_t j = 0; j < 300; ++j)
      ASSERT_EQ(lists.indices.data<std::int32_t>()[row * 300 + j], j);
  }
  EXPECT_EQ(lists.density(), 1);
}

TEST(BlockListOps, NamesTheFirstRowAtFault) {
  auto problem = problemOf(2, 4, 50, 60);
  BlockLists lists = poisonedLists(problem);
  listAllBlocks(lists.indices.view(), lists.counts.view(), 0);
  ASSERT_TRUE(validateEntries(lists, problem, 0).ok());
  // Several faults, found by several threads in any order.
  for (std::int64_t row : {399, 251, 130, 302})
    lists.indices.data<std::int32_t>()[row * 60 + 9] = 60;
  for (int repeat = 0; repeat < 20; ++repeat)
    ASSERT_EQ(validateEntries(lists, problem, 0).message(),
              "config.lists.indices, batch 0, head 2, row 30, slot 9: expected "
              "a key block from 0 to 59, got 60");
}

TEST(BlockListOps, HaveNoDensityWithoutBlocks) {
  EXPECT_EQ(BlockLists().density(), 0);
  auto problem = problemOf(2, 3, 5, 300);
  problem.kvLen = 0;
  BlockLists lists = *listsInMemory(problem);
  listAllBlocks(lists.indices.view(), lists.counts.view(), 0);
  EXPECT_EQ(lists.indices.view().sizes[3], 0);
  EXPECT_EQ(lists.density(), 0);
}

TEST(BlockListOps, TellWhenListsAreTooLarge) {
  auto problem = problemOf(2, 3, 1, 1);
  problem.qLen = problem.kvLen = std::int64_t{1} << 40;
  auto lists = listsInMemory(problem);
  ASSERT_FALSE(lists.ok());
  EXPECT_EQ(lists.status().code(), ErrorCode::OutOfResources);
  EXPECT_EQ(lists.status().message().rfind("block lists: ", 0), 0u);
}

} // namespace
} // namespace spargejit::api

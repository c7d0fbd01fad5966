// SPDX-License-Identifier: Apache-2.0
//
// Masks and lists: short, empty and full rows, any order, what lies behind the
// count, and the two spellings of one mask.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace spargejit::numerics {
namespace {

class AttentionLists : public TypedBackendTest {
protected:
  AttentionCase shapeOf(std::int64_t qLen, std::int64_t kvLen) const {
    return {.dtype = dtype(),
            .qHeads = 2,
            .kvHeads = 2,
            .qLen = qLen,
            .kvLen = kvLen};
  }
};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionLists);

// A mask that a path cannot apply must not be ignored: the result is that of
// key block 0 alone, and not the dense one. No block of this mask is partial,
// which some libraries take for "nothing masked".
// cases: 2, 3
TEST_P(AttentionLists, OneBlockForEveryRowIsNotDense) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(512, 512), random);
  const OutputBits dense = runForBits(trial);
  BlockMask mask = trial.shape.emptyMask();
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < mask.qBlocks; ++i)
      mask.set(0, h, i, 0, true);
  trial.useMask(mask);
  EXPECT_TRUE(trial.isRight(random));
  EXPECT_NE(trial.o.bits(), dense.o);
  trial.useLists(mask, random);
  EXPECT_TRUE(trial.isRight(random));
}

// cases: 20, 21
TEST_P(AttentionLists, RowsWithoutBlocksAreZero) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(500, 300), random);
  BlockMask mask = trial.shape.randomMask(random, 0.5);
  for (std::int64_t j = 0; j < mask.kvBlocks; ++j) {
    mask.set(0, 0, 2, j, false);
    mask.set(0, 1, 3, j, false); // the partial last block of queries
  }
  for (const bool asLists : {false, true}) {
    if (asLists)
      trial.useLists(mask, random, {.garbageSuffix = true});
    else
      trial.useMask(mask);
    ASSERT_TRUE(trial.isRight(random));
    const std::vector<double> lse = trial.lse.values();
    const std::vector<double> o = trial.o.values();
    for (std::size_t i = 256; i < 384; ++i) {
      ASSERT_EQ(lse[i], -HUGE_VAL);
      ASSERT_EQ(o[i * 64 + 5], 0);
    }
    ASSERT_EQ(lse[500 + 499], -HUGE_VAL);
    ASSERT_EQ(o[(500 + 499) * 64 + 63], 0);
  }
}

TEST_P(AttentionLists, NoRowHasBlocks) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(200, 300), random);
  trial.useMask(trial.shape.emptyMask());
  EXPECT_TRUE(trial.isRight(random));
  trial.useLists(trial.shape.emptyMask(), random, {.garbageSuffix = true});
  EXPECT_TRUE(trial.isRight(random));
}

// Neighbouring rows of very different length, as Top-p gives.
// cases: 14
TEST_P(AttentionLists, NeighbouringRowsOfDifferentLength) {
  Random random = randomForTest();
  AttentionCase shape = shapeOf(512, 500);
  shape.qHeads = shape.kvHeads = 1;
  AttentionTrial trial(backend(), shape, random);
  BlockMask mask = shape.emptyMask();
  const std::vector<std::int64_t> counts = {1, 7, 2, 5};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::vector<std::int64_t> blocks = {0, 1, 2, 3, 4, 5, 6, 7};
    random.shuffle(blocks);
    for (std::int64_t t = 0; t < counts[i]; ++t)
      mask.set(0, 0, static_cast<std::int64_t>(i),
               blocks[static_cast<std::size_t>(t)], true);
  }
  trial.useLists(mask, random, {.shuffled = true});
  EXPECT_TRUE(trial.isRight(random));
}

// The ragged last block first, in the middle, last, or alone in its list.
// cases: 8, 12
TEST_P(AttentionLists, PartialLastBlockAnywhereInTheList) {
  Random random = randomForTest();
  for (const std::int64_t maskBlockKv : {16, 64, 128}) {
    AttentionCase shape = shapeOf(256, 5 * maskBlockKv + 7);
    shape.maskBlockQ = 64;
    shape.maskBlockKv = maskBlockKv;
    AttentionTrial trial(backend(), shape, random);
    const std::vector<std::vector<std::int32_t>> rows = {
        {5, 0, 3}, {2, 5, 4}, {1, 5}, {5}};
    BlockMask mask = shape.emptyMask();
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (const std::int32_t j : rows[i])
          mask.set(0, h, static_cast<std::int64_t>(i), j, true);
    BlockLists lists = makeLists(shape, mask, {}, random);
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t t = 0; t < rows[row % 4].size(); ++t)
        lists.indices.data<std::int32_t>()[row * 6 + t] = rows[row % 4][t];
    trial.useLists(lists);
    EXPECT_TRUE(trial.isRight(random));
  }
}

// What lies behind the count is never read; -1 and other entries outside the
// range are skipped where they are counted. Neither changes a bit.
// cases: 18
TEST_P(AttentionLists, EntriesBehindTheCountAndStrayEntriesChangeNothing) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(300, 700), random);
  const BlockMask mask = trial.shape.randomMask(random, 0.4, true);
  trial.useLists(mask, random);
  const OutputBits plain = runForBits(trial);
  EXPECT_TRUE(trial.matchesReference(random));
  trial.useLists(mask, random, {.garbageSuffix = true, .spareSlots = 5});
  EXPECT_EQ(runForBits(trial), plain);
  trial.useLists(mask, random, {.strayEntries = true});
  EXPECT_TRUE(trial.isRight(random));

  // A row [3, -1, -1, -1], counted as one entry and as four.
  BlockMask single = trial.shape.emptyMask();
  single.set(0, 0, 0, 3, true);
  BlockLists lists = makeLists(trial.shape, single, {}, random);
  trial.useLists(lists);
  const OutputBits counted = runForBits(trial);
  lists.counts.data<std::int32_t>()[0] = 4;
  trial.useLists(lists);
  EXPECT_EQ(runForBits(trial), counted);
  EXPECT_TRUE(trial.matchesReference(random));
}

// A count beyond the list's memory means all of the list, and a negative one
// none of it: what follows in memory is another row's.
// cases: 18
TEST_P(AttentionLists, CountsBeyondTheListAreCutOff) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(300, 700), random);
  BlockMask mask = trial.shape.randomMask(random, 0.5);
  for (std::int64_t j = 0; j < mask.kvBlocks; ++j) {
    mask.set(0, 0, 1, j, true);
    mask.set(0, 1, 2, j, false);
  }
  BlockLists lists = makeLists(trial.shape, mask, {.shuffled = true}, random);
  trial.useLists(lists);
  const OutputBits right = runForBits(trial);
  EXPECT_TRUE(trial.matchesReference(random));
  for (const std::int32_t beyond : {12, 13, 1 << 20, INT32_MAX}) {
    lists.counts.data<std::int32_t>()[1] = beyond; // of 11
    lists.counts.data<std::int32_t>()[5] = -beyond;
    trial.useLists(lists);
    EXPECT_EQ(runForBits(trial), right) << "count " << beyond;
  }
}

TEST_P(AttentionLists, OrderOfTheListChangesNothing) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(200, 900), random);
  const BlockMask mask = trial.shape.randomMask(random, 0.7);
  trial.useLists(mask, random);
  ASSERT_TRUE(trial.isRight(random));
  const std::vector<double> ascending = trial.o.values();
  for (std::int64_t draw = repetitions(4, 2); draw > 0; --draw) {
    trial.useLists(mask, random, {.shuffled = true});
    ASSERT_TRUE(trial.isRight(random));
    // Both lie within the bounds of what is right, so within twice these of
    // each other.
    const auto difference = reference::compare(trial.o.values(), ascending);
    EXPECT_TRUE(
        difference.isWithin(reference::attentionBounds(dtype()).twice()))
        << difference.describe({1, 2, 200, 64});
  }
}

TEST_P(AttentionLists, MapAndListsOfOneMaskGiveTheSameBits) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(333, 444), random);
  const BlockMask mask = trial.shape.randomMask(random, 0.5, true);
  trial.useMask(mask);
  const OutputBits fromMap = runForBits(trial);
  EXPECT_TRUE(trial.matchesReference(random));
  trial.useLists(mask, random);
  EXPECT_EQ(runForBits(trial), fromMap);
}

// One map for all heads and batches, by strides of 0.
TEST_P(AttentionLists, MapCanBeBroadcast) {
  SPARGEJIT_NEEDS(masks);
  Random random = randomForTest();
  AttentionCase shape = shapeOf(200, 300);
  shape.batch = 2;
  AttentionTrial trial(backend(), shape, random);
  AttentionCase one = shape;
  one.batch = one.qHeads = 1;
  const BlockMask small = one.randomMask(random, 0.5);
  BlockMask large = shape.emptyMask();
  for (std::size_t at = 0; at < large.bits.size(); ++at)
    large.bits[at] = small.bits[at % small.bits.size()];
  trial.useMask(large);
  const OutputBits whole = runForBits(trial);
  TestTensor map(backend(), DataType::Bool,
                 {1, 1, small.qBlocks, small.kvBlocks});
  std::size_t at = 0;
  map.fill([&] { return small.bits[at++]; });
  map.upload();
  TensorView broadcast = map.view();
  broadcast.sizes[0] = 2;
  broadcast.sizes[1] = 2;
  broadcast.strides[0] = broadcast.strides[1] = 0;
  trial.config.blockMask = broadcast;
  EXPECT_EQ(runForBits(trial), whole);
  EXPECT_TRUE(trial.matchesReference(random));
}

// NaN in blocks that nobody selects shows up nowhere; in a selected block it
// shows up in the rows that select it and in no other.
// cases: 11, 13
TEST_P(AttentionLists, NotANumberInUnselectedBlocksIsNotSeen) {
  Random random = randomForTest();
  AttentionCase shape = shapeOf(384, 512);
  shape.qHeads = shape.kvHeads = 1;
  shape.maskBlockKv = 16 << random.below(4);
  BlockMask mask = shape.randomMask(random, 0.5);
  const std::int64_t poisoned = mask.kvBlocks - 2;
  for (std::int64_t i = 0; i < mask.qBlocks; ++i)
    mask.set(0, 0, i, poisoned, i == 1);
  for (const bool inKeys : {true, false}) {
    AttentionTrial trial(backend(), shape, random);
    const TensorView &tensor = inKeys ? trial.k.host() : trial.v.host();
    for (std::int64_t n = 0; n < shape.maskBlockKv; ++n)
      for (std::int64_t d = 0; d < 64; ++d)
        reference::storeElement(
            reference::elementAddress(tensor, 0, 0,
                                      poisoned * shape.maskBlockKv + n, d),
            dtype(), std::nan(""));
    trial.useLists(mask, random, {.shuffled = true});
    ASSERT_TRUE(trial.isRight(random));
    const std::vector<double> o = trial.o.values();
    EXPECT_FALSE(std::isnan(o[127 * 64]));
    EXPECT_TRUE(std::isnan(o[128 * 64]));
    EXPECT_FALSE(std::isnan(o[256 * 64]));
  }
}

} // namespace
} // namespace spargejit::numerics

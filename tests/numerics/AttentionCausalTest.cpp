// SPDX-License-Identifier: Apache-2.0
//
// Causality: exact to the token, bottom-right aligned, together with any list.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace spargejit::numerics {
namespace {

class AttentionCausal : public TypedBackendTest {
protected:
  AttentionCase shapeOf(std::int64_t qLen, std::int64_t kvLen) const {
    return {.dtype = dtype(), .qLen = qLen, .kvLen = kvLen, .causal = true};
  }
};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionCausal);

// 64 queries at the end of 256 keys: query i sees keys up to i + 192.
// cases: 23
TEST_P(AttentionCausal, LastQueryMeetsTheLastKey) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(64, 256), random);
  // With equal scores o is the mean of the values seen, and v is the position.
  trial.q.fill([] { return 0.0; });
  std::int64_t at = 0;
  trial.v.fill([&] { return static_cast<double>(at++ / 64); });
  ASSERT_TRUE(succeeded(trial.run()));
  const std::vector<double> o = trial.o.values();
  const std::vector<double> lse = trial.lse.values();
  for (std::size_t i = 0; i < 64; ++i) {
    const double lastSeen = static_cast<double>(i) + 192;
    ASSERT_NEAR(o[i * 64], lastSeen / 2, lastSeen * 2.5e-3) << "query " << i;
    ASSERT_NEAR(lse[i], std::log(lastSeen + 1), 1e-5) << "query " << i;
  }
}

// Queries before the first key see nothing: zeros and -inf, next to rows of the
// same tile that see something.
// cases: 20, 21, 23
TEST_P(AttentionCausal, QueriesBeforeTheFirstKeySeeNothing) {
  Random random = randomForTest();
  for (const auto &[qLen, kvLen] : {std::pair{200, 90}, std::pair{129, 1},
                                    std::pair{300, 64}, std::pair{128, 127}}) {
    AttentionTrial trial(backend(), shapeOf(qLen, kvLen), random);
    ASSERT_TRUE(trial.isRight(random));
    const std::vector<double> o = trial.o.values();
    const std::vector<double> lse = trial.lse.values();
    for (std::size_t i = 0; i < static_cast<std::size_t>(qLen - kvLen); ++i) {
      ASSERT_EQ(lse[i], -HUGE_VAL) << "query " << i;
      for (std::size_t d = 0; d < 64; ++d)
        ASSERT_EQ(o[i * 64 + d], 0) << "query " << i;
    }
  }
}

// A token's value must not reach an earlier query, not even one of the same
// block of the mask.
// cases: 24
TEST_P(AttentionCausal, LaterTokensHaveNoInfluence) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(256, 256), random);
  trial.useLists(trial.shape.fullMask(), random);
  const OutputBits before = runForBits(trial);
  for (std::int64_t d = 0; d < 64; ++d) {
    reference::storeElement(
        reference::elementAddress(trial.k.host(), 0, 0, 100, d), dtype(), 9);
    reference::storeElement(
        reference::elementAddress(trial.v.host(), 0, 0, 100, d), dtype(), 99);
  }
  const OutputBits after = runForBits(trial);
  const std::size_t row = before.o.size() / 256;
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(std::equal(before.o.begin() + static_cast<long>(i * row),
                           before.o.begin() + static_cast<long>((i + 1) * row),
                           after.o.begin() + static_cast<long>(i * row)))
        << "query " << i << " sees token 100";
  EXPECT_NE(before.o, after.o);
  EXPECT_TRUE(trial.matchesReference(random));
}

// Lists may hold blocks that causality hides wholly or in part, in any order.
TEST_P(AttentionCausal, ListsMayHoldHiddenBlocks) {
  Random random = randomForTest();
  for (std::int64_t draw = repetitions(8, 2); draw > 0; --draw) {
    AttentionCase shape = shapeOf(1 + random.below(500), 1 + random.below(500));
    shape.maskBlockQ = 64 << random.below(2);
    shape.maskBlockKv = 16 << random.below(4);
    shape.headDim = 40;
    AttentionTrial trial(backend(), shape, random);
    trial.useLists(shape.randomMask(random, 0.6), random,
                   {.shuffled = true, .strayEntries = true});
    EXPECT_TRUE(trial.isRight(random));
  }
}

// A row whose every listed block lies in its future is a row without keys.
// cases: 21
TEST_P(AttentionCausal, RowsThatListOnlyTheFutureAreEmpty) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(256, 256), random);
  BlockMask mask = trial.shape.emptyMask();
  mask.set(0, 0, 0, 3, true); // keys 192…255 for queries 0…127
  mask.set(0, 0, 1, 3, true); // seen by queries 192…255 alone
  trial.useLists(mask, random);
  ASSERT_TRUE(trial.isRight(random));
  const std::vector<double> lse = trial.lse.values();
  for (std::size_t i = 0; i < 192; ++i)
    ASSERT_EQ(lse[i], -HUGE_VAL) << "query " << i;
  EXPECT_GT(lse[192], -100);
}

// A hidden key's score is NaN, its value is finite: no earlier query sees it.
TEST_P(AttentionCausal, NotANumberInAHiddenKeyIsNotSeen) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(190, 190), random);
  for (std::int64_t d = 0; d < 64; ++d)
    reference::storeElement(
        reference::elementAddress(trial.k.host(), 0, 0, 150, d), dtype(),
        std::nan(""));
  ASSERT_TRUE(succeeded(trial.run()));
  EXPECT_TRUE(trial.matchesReference(std::vector<std::int64_t>{}));
}

} // namespace
} // namespace spargejit::numerics

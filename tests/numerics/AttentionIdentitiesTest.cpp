// SPDX-License-Identifier: Apache-2.0
//
// Checks that need no reference: what must follow from the definition when a
// problem is cut up, permuted, scaled or asked for in another way.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace spargejit::numerics {
namespace {

/// Copies row `from` of one host image to row `to` of another.
void copyRow(const TestTensor &source, std::int64_t from,
             const TestTensor &target, std::int64_t to) {
  const TensorView &view = source.host();
  for (std::int64_t b = 0; b < view.sizes[0]; ++b)
    for (std::int64_t h = 0; h < view.sizes[1]; ++h)
      for (std::int64_t d = 0; d < view.sizes[3]; ++d)
        reference::storeElement(
            reference::elementAddress(target.host(), b, h, to, d), view.dtype,
            reference::elementAt(view, b, h, from, d));
}

class AttentionIdentities : public TypedBackendTest {
protected:
  AttentionCase shapeOf(std::int64_t qLen, std::int64_t kvLen) const {
    return {.dtype = dtype(),
            .batch = 2,
            .qHeads = 4,
            .kvHeads = 2,
            .qLen = qLen,
            .kvLen = kvLen};
  }
  /// Two results that may differ by rounding in both.
  testing::AssertionResult agree(const std::vector<double> &a,
                                 const std::vector<double> &b) const {
    const auto difference = reference::compare(a, b);
    if (difference.isWithin(reference::attentionBounds(dtype()).twice()))
      return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << difference.describe({static_cast<std::int64_t>(a.size())});
  }
};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionIdentities);

TEST_P(AttentionIdentities, FullMaskIsDense) {
  Random random = randomForTest();
  for (const bool causal : {false, true}) {
    AttentionCase shape = shapeOf(300, 515);
    shape.causal = causal;
    AttentionTrial trial(backend(), shape, random);
    ASSERT_TRUE(trial.isRight(random));
    const std::vector<double> dense = trial.o.values();
    trial.useMask(shape.fullMask());
    ASSERT_TRUE(trial.isRight(random));
    EXPECT_TRUE(agree(trial.o.values(), dense));
    trial.useLists(shape.fullMask(), random, {.shuffled = true});
    ASSERT_TRUE(trial.isRight(random));
    EXPECT_TRUE(agree(trial.o.values(), dense));
  }
}

TEST_P(AttentionIdentities, PermutingKeyBlocksWithTheMaskChangesNothing) {
  Random random = randomForTest();
  for (const std::int64_t maskBlockKv : {16, 32, 64, 128}) {
    AttentionCase shape = shapeOf(200, 9 * maskBlockKv + 5);
    shape.maskBlockKv = maskBlockKv;
    AttentionTrial trial(backend(), shape, random);
    const BlockMask mask = shape.randomMask(random, 0.5);
    trial.useMask(mask);
    ASSERT_TRUE(trial.isRight(random));

    std::vector<std::int64_t> order(9); // the partial block keeps its place
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    Random unused = random.split();
    AttentionTrial permuted(backend(), shape, unused);
    BlockMask permutedMask = mask;
    for (std::int64_t n = 0; n < shape.qLen; ++n)
      copyRow(trial.q, n, permuted.q, n);
    for (std::int64_t n = 0; n < shape.kvLen; ++n) {
      const std::int64_t block = n / maskBlockKv;
      const std::int64_t from =
          block < 9 ? order[static_cast<std::size_t>(block)] * maskBlockKv +
                          n % maskBlockKv
                    : n;
      copyRow(trial.k, from, permuted.k, n);
      copyRow(trial.v, from, permuted.v, n);
    }
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 4; ++h)
        for (std::int64_t i = 0; i < mask.qBlocks; ++i)
          for (std::int64_t j = 0; j < 9; ++j)
            permutedMask.set(
                b, h, i, j,
                mask.at(b, h, i, order[static_cast<std::size_t>(j)]));
    permuted.useMask(permutedMask);
    ASSERT_TRUE(permuted.isRight(random));
    EXPECT_TRUE(agree(permuted.o.values(), trial.o.values()));
  }
}

// A power of two is exact, so every bit can be foretold.
TEST_P(AttentionIdentities, ScalingValuesScalesTheResult) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(130, 260), random);
  trial.useMask(trial.shape.randomMask(random, 0.6));
  ASSERT_TRUE(succeeded(trial.run()));
  const std::vector<double> before = trial.o.values();
  const std::vector<double> lse = trial.lse.values();
  for (const double factor : {4.0, -0.5}) {
    AttentionTrial scaled(backend(), trial.shape, random);
    scaled.useMask(*trial.mask);
    for (std::int64_t n = 0; n < 130; ++n)
      copyRow(trial.q, n, scaled.q, n);
    for (std::int64_t n = 0; n < 260; ++n)
      copyRow(trial.k, n, scaled.k, n);
    const std::vector<double> values = trial.v.values();
    std::size_t at = 0;
    scaled.v.fill([&] { return factor * values[at++]; });
    ASSERT_TRUE(succeeded(scaled.run()));
    const std::vector<double> after = scaled.o.values();
    for (std::size_t i = 0; i < after.size(); ++i)
      // Subnormal float16 results lose their last bits.
      if (std::fabs(before[i]) > 1e-3)
        ASSERT_EQ(after[i], factor * before[i]) << "element " << i;
    EXPECT_EQ(scaled.lse.values(), lse);
  }
}

// Keys cut in two anywhere, each half attended to alone, merged with natural
// exponentials of lse: the whole. This is what ring attention does.
// cases: 46, 107
TEST_P(AttentionIdentities, HalvesMergeByLogSumExp) {
  Random random = randomForTest();
  for (const std::int64_t cut : {64, 100, 1, 299}) {
    AttentionTrial whole(backend(), shapeOf(90, 300), random);
    ASSERT_TRUE(whole.isRight(random));
    std::vector<std::vector<double>> outputs;
    std::vector<std::vector<double>> sums;
    for (const bool second : {false, true}) {
      AttentionCase shape = whole.shape;
      shape.kvLen = second ? 300 - cut : cut;
      AttentionTrial half(backend(), shape, random);
      for (std::int64_t n = 0; n < 90; ++n)
        copyRow(whole.q, n, half.q, n);
      for (std::int64_t n = 0; n < shape.kvLen; ++n) {
        copyRow(whole.k, n + (second ? cut : 0), half.k, n);
        copyRow(whole.v, n + (second ? cut : 0), half.v, n);
      }
      ASSERT_TRUE(half.isRight(random));
      outputs.push_back(half.o.values());
      sums.push_back(half.lse.values());
    }
    std::vector<double> merged(outputs[0].size());
    std::vector<double> mergedLse(sums[0].size());
    for (std::size_t row = 0; row < mergedLse.size(); ++row) {
      const double top = std::max(sums[0][row], sums[1][row]);
      const double first = std::exp(sums[0][row] - top);
      const double second = std::exp(sums[1][row] - top);
      mergedLse[row] = top + std::log(first + second);
      for (std::size_t d = 0; d < 64; ++d)
        merged[row * 64 + d] = (first * outputs[0][row * 64 + d] +
                                second * outputs[1][row * 64 + d]) /
                               (first + second);
    }
    // Three results with an error each, and two lse: twice the bound of one.
    reference::ErrorBounds bounds = reference::attentionBounds(dtype());
    bounds.relativeL2 *= 2;
    bounds.maxAbsolute *= 2;
    bounds.cosineDistance *= 4;
    const auto difference = reference::compare(whole.o.values(), merged);
    EXPECT_TRUE(difference.isWithin(bounds))
        << difference.describe({2, 4, 90, 64});
    EXPECT_TRUE(reference::compare(whole.lse.values(), mergedLse)
                    .isWithin(2 * reference::lseBound(dtype(), 10)));
  }
}

TEST_P(AttentionIdentities, GroupedHeadsAreRepeatedHeads) {
  Random random = randomForTest();
  AttentionCase shape = shapeOf(100, 150);
  AttentionTrial grouped(backend(), shape, random);
  const OutputBits bits = runForBits(grouped);
  shape.kvHeads = 4;
  AttentionTrial repeated(backend(), shape, random);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t n = 0; n < 150; ++n)
        for (std::int64_t d = 0; d < 64; ++d)
          for (const auto &[from, to] : {std::pair{&grouped.q, &repeated.q},
                                         std::pair{&grouped.k, &repeated.k},
                                         std::pair{&grouped.v, &repeated.v}}) {
            if (n >= to->host().sizes[2])
              continue;
            reference::storeElement(
                reference::elementAddress(to->host(), b, h, n, d), dtype(),
                reference::elementAt(from->host(), b,
                                     from == &grouped.q ? h : h / 2, n, d));
          }
  EXPECT_EQ(runForBits(repeated), bits);
}

TEST_P(AttentionIdentities, BatchesAreIndependent) {
  Random random = randomForTest();
  AttentionTrial both(backend(), shapeOf(100, 150), random);
  const OutputBits bits = runForBits(both);
  for (std::int64_t b = 0; b < 2; ++b) {
    TensorView views[] = {both.q.view(), both.k.view(), both.v.view()};
    for (TensorView &view : views) {
      view.data = reference::elementAddress(view, b);
      view.sizes[0] = 1;
    }
    AttentionCase shape = both.shape;
    shape.batch = 1;
    TestTensor o(backend(), dtype(), {1, 4, 100, 64});
    o.upload();
    ASSERT_TRUE(succeeded(
        attentionInto(o.view(), views[0], views[1], views[2], both.config)));
    o.download();
    const std::vector<std::byte> alone = o.bits();
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                           bits.o.begin() +
                               b * static_cast<std::int64_t>(alone.size())));
  }
}

// The same bits whatever the number of threads, with or without lse, into the
// caller's memory or into new memory, today and the hundredth time.
TEST_P(AttentionIdentities, EveryWayOfAskingGivesTheSameBits) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(300, 400), random);
  trial.useLists(trial.shape.randomMask(random, 0.5, true), random,
                 {.shuffled = true});
  const OutputBits bits = runForBits(trial);
  for (const int threads : {1, 2, 3, 16}) {
    trial.config.threads = threads;
    EXPECT_EQ(runForBits(trial), bits) << threads << " threads";
  }
  trial.config.threads = 0;
  trial.wantsLse = false;
  EXPECT_EQ(runForBits(trial).o, bits.o);
  trial.wantsLse = true;
  for (std::int64_t run = repetitions(100, 10); run > 0; --run)
    ASSERT_EQ(runForBits(trial), bits) << run;

  const Result<Tensor> fresh =
      attention(trial.q.view(), trial.k.view(), trial.v.view(), trial.config);
  ASSERT_TRUE(succeeded(fresh.status()));
  ASSERT_EQ(fresh->view().sizes, trial.o.view().sizes);
  ASSERT_EQ(fresh->view().dtype, dtype());
  ASSERT_EQ(fresh->view().strides[3], 1);
  std::vector<std::byte> bytes(bits.o.size());
  backend().read(bytes.data(), fresh->data<std::byte>(), bytes.size());
  EXPECT_EQ(bytes, bits.o);
}

// A method that selects and attends is its selection followed by
// "block_sparse" with the lists, handed back or made alone.
TEST_P(AttentionIdentities, SelectionHandedBackGivesTheSameBits) {
  SPARGEJIT_NEEDS(selection);
  Random random = randomForTest();
  for (const std::string method : {"topk", "topp", "spargeattention2"}) {
    for (const bool causal : {false, true}) {
      AttentionCase shape = shapeOf(400, 700);
      shape.causal = causal;
      AttentionTrial trial(backend(), shape, random);
      trial.config.method = method;
      trial.config.topK = 0.3;
      trial.config.topP = 0.4;
      trial.o.poison();
      for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v, &trial.o})
        tensor->upload();
      BlockLists handedBack;
      AttentionOutputs outputs;
      outputs.lists = &handedBack;
      ASSERT_TRUE(succeeded(attentionInto(trial.o.view(), trial.q.view(),
                                          trial.k.view(), trial.v.view(),
                                          trial.config, outputs)))
          << method;
      trial.o.download();
      const std::vector<std::byte> fused = trial.o.bits();
      const Result<BlockLists> alone =
          selectBlocks(trial.q.view(), trial.k.view(), trial.config);
      ASSERT_TRUE(succeeded(alone.status())) << method;
      for (const BlockLists &lists : {handedBack, *alone}) {
        trial.useLists(lists);
        trial.config.validateLists = true;
        EXPECT_EQ(runForBits(trial).o, fused) << method;
        EXPECT_TRUE(trial.matchesReference(random)) << method;
      }
    }
  }
}

// For "dense" the lists handed back are all blocks.
TEST_P(AttentionIdentities, DenseHandsBackAllBlocks) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), shapeOf(200, 300), random);
  const OutputBits dense = runForBits(trial);
  BlockLists lists;
  AttentionOutputs outputs;
  outputs.lists = &lists;
  ASSERT_TRUE(
      succeeded(attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                              trial.v.view(), trial.config, outputs)));
  EXPECT_EQ(lists.density(), 1);
  const BlockLists host = listsOnHost(backend(), lists);
  EXPECT_EQ(reference::maskOfLists(host.indices.view(), host.counts.view(),
                                   trial.shape.kvBlocks()),
            trial.shape.fullMask());
  trial.useLists(lists);
  EXPECT_TRUE(trial.isRight(random));
}

} // namespace
} // namespace spargejit::numerics

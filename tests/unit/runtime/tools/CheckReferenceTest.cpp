// SPDX-License-Identifier: Apache-2.0
//
// `spargejit check` must pass what is right and find what is wrong. Right is
// the tests' own reference, which shares no code with the command's.
#include "runtime/tools/spargejit/CheckReference.h"

#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/ReferenceAttention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace spargejit::tool {
namespace {

constexpr std::int64_t kDim = 24;

/// A random problem with its right answer: grouped heads, ragged blocks, one
/// query block without keys.
struct Trial {
  Tensor q, k, v, o, lse;
  BlockLists lists;
  ReferenceProblem problem;

  explicit Trial(bool causal) {
    reference::Random random = numerics::randomForTest(causal ? 1 : 0);
    auto filled = [&](std::int64_t heads, std::int64_t length) {
      Tensor tensor =
          Tensor::allocate(DataType::Float32, {2, heads, length, kDim}).value();
      for (std::int64_t i = 0; i < tensor.view().elementCount(); ++i)
        tensor.data<float>()[i] = static_cast<float>(random.normal());
      return tensor;
    };
    std::int64_t qLen = 130 + random.below(100);
    std::int64_t kvLen = 100 + random.below(200);
    q = filled(4, qLen);
    k = filled(2, kvLen);
    v = filled(2, kvLen);
    makeLists(qLen, kvLen, random);
    problem.q = q.view();
    problem.k = k.view();
    problem.v = v.view();
    problem.lists = &lists;
    problem.softmaxScale = 0.3;
    problem.causal = causal;
    answer(qLen);
    problem.o = o.view();
    problem.lse = lse.view();
  }

  CheckReport compare() const {
    report::Progress progress;
    return compareWithReference(problem, chooseRows(problem.q, 1 << 30, 1), 3,
                                progress);
  }

private:
  void makeLists(std::int64_t qLen, std::int64_t kvLen,
                 reference::Random &random) {
    lists.maskBlockQ = 64;
    lists.maskBlockKv = 32;
    lists.qLen = qLen;
    lists.kvLen = kvLen;
    std::int64_t qBlocks = (qLen + 63) / 64;
    std::int64_t kvBlocks = (kvLen + 31) / 32;
    lists.indices =
        Tensor::allocate(DataType::Int32, {2, 4, qBlocks, kvBlocks}).value();
    lists.counts = Tensor::allocate(DataType::Int32, {2, 4, qBlocks}).value();
    for (std::int64_t row = 0; row < 2 * 4 * qBlocks; ++row) {
      auto *list = lists.indices.data<std::int32_t>() + row * kvBlocks;
      std::int32_t count = 0;
      for (std::int32_t block = 0; block < kvBlocks; ++block)
        if (row != 1 && random.chance(0.5))
          list[count++] = block;
      lists.counts.data<std::int32_t>()[row] = count;
      std::fill(list + count, list + kvBlocks, -1);
    }
  }

  /// o and lse as the tests' reference has them, rounded to float32.
  void answer(std::int64_t qLen) {
    reference::BlockMask mask =
        reference::maskOfLists(lists.indices.view(), lists.counts.view(),
                               lists.indices.view().sizes[3]);
    reference::AttentionArguments arguments;
    arguments.q = problem.q;
    arguments.k = problem.k;
    arguments.v = problem.v;
    arguments.mask = &mask;
    arguments.maskBlockQ = lists.maskBlockQ;
    arguments.maskBlockKv = lists.maskBlockKv;
    arguments.causal = problem.causal;
    arguments.softmaxScale = problem.softmaxScale;
    reference::AttentionValues values =
        reference::referenceAttention(arguments);
    o = Tensor::allocate(DataType::Float32, {2, 4, qLen, kDim}).value();
    lse = Tensor::allocate(DataType::Float32, {2, 4, qLen}).value();
    for (std::size_t i = 0; i < values.o.size(); ++i)
      o.data<float>()[i] = static_cast<float>(values.o[i]);
    for (std::size_t i = 0; i < values.lse.size(); ++i)
      lse.data<float>()[i] = static_cast<float>(values.lse[i]);
  }
};

class CheckReference : public testing::TestWithParam<bool> {};

TEST_P(CheckReference, AgreesWithTheTestsReference) {
  Trial trial(GetParam());
  CheckReport report = trial.compare();
  EXPECT_EQ(report.rowsChecked, trial.lse.view().elementCount());
  EXPECT_EQ(report.rowsTotal, report.rowsChecked);
  // What is left is the rounding of the answer to float32.
  EXPECT_LT(report.o.relL2, 6e-8);
  EXPECT_GT(report.o.relL2, 0);
  EXPECT_LT(report.lse.relL2, 6e-8);
  EXPECT_EQ(report.o.notFiniteAlike, 0);
  EXPECT_EQ(report.lse.notFiniteAlike, 0);
}

TEST_P(CheckReference, FindsOneWrongElement) {
  Trial trial(GetParam());
  reference::Random random = numerics::randomForTest(2);
  std::int64_t at = random.below(trial.o.view().elementCount());
  trial.o.data<float>()[at] += 0.5f;
  CheckReport report = trial.compare();
  std::int64_t qLen = trial.problem.q.sizes[2];
  EXPECT_GT(report.o.relL2, 2e-6);
  EXPECT_NEAR(report.o.maxError, 0.5, 1e-6);
  EXPECT_EQ(report.o.maxChannel, at % kDim);
  EXPECT_EQ(report.o.maxRow.row, at / kDim % qLen);
  EXPECT_EQ(report.o.maxRow.head, at / kDim / qLen % 4);
  EXPECT_EQ(report.o.maxRow.batch, at / kDim / qLen / 4);
  EXPECT_LT(report.lse.relL2, 6e-8);
}

TEST_P(CheckReference, FindsUnwrittenAndInfiniteElements) {
  Trial trial(GetParam());
  trial.o.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  trial.lse.data<float>()[3] = std::numeric_limits<float>::infinity();
  CheckReport report = trial.compare();
  EXPECT_EQ(report.o.notFiniteAlike, 1);
  EXPECT_EQ(report.lse.notFiniteAlike, 1);
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "batch 0, head 0, row 3, channel 0: inf instead of ",
                      report.lse.firstNotFinite);
}

INSTANTIATE_TEST_SUITE_P(Causality, CheckReference, testing::Bool());

TEST(ChooseRows, TakesAllRowsWhenItCan) {
  TensorView q =
      TensorView::contiguous(nullptr, DataType::Float32, {2, 3, 37, 8});
  std::vector<QueryRow> rows = chooseRows(q, 2 * 3 * 37, 5);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  for (const QueryRow &row : rows)
    seen.emplace(row.batch, row.head, row.row);
  EXPECT_EQ(rows.size(), 2u * 3 * 37);
  EXPECT_EQ(seen.size(), rows.size());
}

TEST(ChooseRows, SpreadsASampleOverHeadsWithTheirEnds) {
  std::uint64_t seed = numerics::randomForTest().next();
  TensorView q =
      TensorView::contiguous(nullptr, DataType::Float32, {1, 2, 1000, 8});
  std::vector<QueryRow> rows = chooseRows(q, 100, seed);
  ASSERT_EQ(rows.size(), 100u);
  for (std::size_t head = 0; head < 2; ++head) {
    EXPECT_EQ(rows[head * 50].row, 0);
    EXPECT_EQ(rows[head * 50 + 49].row, 999);
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(rows[head * 50 + i].head, static_cast<std::int64_t>(head));
      EXPECT_EQ(rows[head * 50 + i].row / 20, static_cast<std::int64_t>(i));
    }
  }
  EXPECT_EQ(chooseRows(q, 0, seed).size(), 4u);
}

TEST(CheckLists, RefusesWhatTheLibraryDoesNotPromise) {
  Trial trial(false);
  EXPECT_TRUE(checkLists(trial.lists).ok());
  auto *indices = trial.lists.indices.data<std::int32_t>();
  auto *counts = trial.lists.counts.data<std::int32_t>();
  std::int64_t capacity = trial.lists.indices.view().sizes[3];
  auto message = [&] { return checkLists(trial.lists).message(); };

  std::int32_t before = indices[capacity];
  indices[capacity] = 0; // list 1 is empty, so this slot is unused
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "expected -1 in unused slot 0",
                      message());
  indices[capacity] = before;
  counts[1] = static_cast<std::int32_t>(capacity) + 1;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "expected a count", message());
  counts[1] = 2;
  indices[capacity] = 1;
  indices[capacity + 1] = 1;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "ascending", message());
  indices[capacity + 1] = static_cast<std::int32_t>(capacity);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "ascending", message());
  indices[capacity + 1] = 2;
  EXPECT_EQ(message(), "");
}

} // namespace
} // namespace spargejit::tool

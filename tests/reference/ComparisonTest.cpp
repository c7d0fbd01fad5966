// SPDX-License-Identifier: Apache-2.0
//
// The comparison must fail on every kind of error it is there to find: wrong
// results are injected and none may pass.
#include "tests/reference/Comparison.h"

#include "tests/reference/HostArray.h"
#include "tests/reference/ReferenceAttention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace spargejit::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kRows = 192;
constexpr std::int64_t kKeys = 200;
constexpr std::int64_t kHeadDim = 32;

using Values = std::vector<double>;

/// A right result, and everything needed to make wrong ones.
class InjectedErrors : public testing::Test {
protected:
  InjectedErrors()
      : q(DataType::Float32, {1, 2, kRows, kHeadDim}),
        k(DataType::Float32, {1, 2, kKeys, kHeadDim}),
        v(DataType::Float32, {1, 2, kKeys, kHeadDim}) {
    Random random(20240229);
    q.fillNormal(random);
    k.fillNormal(random);
    v.fillNormal(random);
    arguments.q = q.view();
    arguments.k = k.view();
    arguments.v = v.view();
    arguments.softmaxScale = 1 / std::sqrt(static_cast<double>(kHeadDim));
    right = referenceAttention(arguments);
  }

  /// True when `wrong` is let through for any data type.
  static bool isAccepted(const Values &wrong, const Values &expected) {
    const Comparison comparison = compare(wrong, expected);
    return comparison.isWithin(attentionBounds(DataType::Float32)) ||
           comparison.isWithin(attentionBounds(DataType::BFloat16)) ||
           comparison.isWithin(attentionBounds(DataType::Float16));
  }

  HostArray q;
  HostArray k;
  HostArray v;
  AttentionArguments arguments;
  AttentionValues right;
};

TEST_F(InjectedErrors, RoundedResultsAreAccepted) {
  for (const DataType type :
       {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
    Values rounded = right.o;
    for (double &value : rounded)
      value = roundedTo(type, value);
    EXPECT_TRUE(compare(rounded, right.o).isWithin(attentionBounds(type)));
  }
  EXPECT_FALSE(isAccepted({}, right.o));
  Values brain = right.o;
  for (double &value : brain)
    value = roundedTo(DataType::BFloat16, value);
  EXPECT_FALSE(
      compare(brain, right.o).isWithin(attentionBounds(DataType::Float32)));
}

TEST_F(InjectedErrors, SingleElementsAreFound) {
  for (const double wrong : {kNan, kInfinity, -kInfinity, 1.0}) {
    Values values = right.o;
    values[1234] = std::isfinite(wrong) ? values[1234] + 0.02 : wrong;
    EXPECT_FALSE(isAccepted(values, right.o)) << wrong;
  }
}

TEST_F(InjectedErrors, WrongRowsAreFound) {
  const auto row = static_cast<std::size_t>(kHeadDim);
  const std::vector<std::pair<std::string, std::function<void(Values &)>>>
      mutations = {
          {"one row unwritten",
           [&](Values &o) { std::fill_n(o.end() - kHeadDim, kHeadDim, kNan); }},
          {"one row zero",
           [&](Values &o) {
             std::fill_n(o.begin() + 40 * kHeadDim, row, 0.0);
           }},
          {"one row negated",
           [&](Values &o) {
             for (std::size_t d = 0; d < row; ++d)
               o[d] = -o[d];
           }},
          {"two neighbouring rows exchanged",
           [&](Values &o) {
             std::swap_ranges(o.begin(), o.begin() + kHeadDim,
                              o.begin() + kHeadDim);
           }},
          {"heads exchanged",
           [&](Values &o) {
             std::swap_ranges(o.begin(), o.begin() + kRows * kHeadDim,
                              o.begin() + kRows * kHeadDim);
           }},
          {"one per cent too large",
           [](Values &o) {
             for (double &value : o)
               value *= 1.01;
           }},
          {"one element short", [](Values &o) { o.pop_back(); }},
      };
  for (const auto &[name, mutate] : mutations) {
    Values values = right.o;
    mutate(values);
    EXPECT_FALSE(isAccepted(values, right.o)) << name;
  }
}

TEST_F(InjectedErrors, WrongAttentionIsFound) {
  AttentionArguments wrong = arguments;
  wrong.softmaxScale *= 1.02;
  EXPECT_FALSE(isAccepted(referenceAttention(wrong).o, right.o));

  wrong = arguments; // the last key forgotten
  wrong.k.sizes[2] = wrong.v.sizes[2] = kKeys - 1;
  EXPECT_FALSE(isAccepted(referenceAttention(wrong).o, right.o));

  wrong = arguments; // heads of k read in the wrong order
  wrong.k.data = elementAddress(k.view(), 0, 1, 0, 0);
  wrong.k.strides[1] = -wrong.k.strides[1];
  EXPECT_FALSE(isAccepted(referenceAttention(wrong).o, right.o));

  // A ragged tail taken for keys of zeros: weight e^0 each.
  HostArray paddedK(DataType::Float32, {1, 2, 256, kHeadDim});
  HostArray paddedV(DataType::Float32, {1, 2, 256, kHeadDim});
  const auto copyOf = [](const HostArray &from) {
    return [&from](auto b, auto h, auto n, auto d) {
      return n < kKeys ? from.get(b, h, n, d) : 0.0;
    };
  };
  paddedK.fill(copyOf(k));
  paddedV.fill(copyOf(v));
  wrong.k = paddedK.view();
  wrong.v = paddedV.view();
  EXPECT_FALSE(isAccepted(referenceAttention(wrong).o, right.o));
}

TEST_F(InjectedErrors, WrongMasksAreFound) {
  AttentionArguments masked = arguments;
  BlockMask mask(1, 2, 3, 4, true);
  mask.set(0, 1, 2, 3, false);
  masked.mask = &mask;
  masked.maskBlockQ = 64;
  masked.maskBlockKv = 64;
  // One block pair of 24, of 8 keys, silently attended to.
  EXPECT_FALSE(isAccepted(right.o, referenceAttention(masked).o));

  // Causality aligned at the top left in place of the bottom right.
  masked = arguments;
  masked.causal = true;
  const Values bottomRight = referenceAttention(masked).o;
  masked.k.sizes[2] = masked.v.sizes[2] = kRows;
  EXPECT_FALSE(isAccepted(referenceAttention(masked).o, bottomRight));
}

TEST_F(InjectedErrors, WrongLogSumExpIsFound) {
  const double bound = lseBound(DataType::BFloat16, 10);
  EXPECT_TRUE(compare(right.lse, right.lse).isWithin(bound));
  Values base2 = right.lse;
  for (double &value : base2)
    value *= 1.4426950408889634;
  EXPECT_FALSE(compare(base2, right.lse).isWithin(bound));
  Values withoutSum = right.lse;
  withoutSum[3] -= 0.01;
  EXPECT_FALSE(compare(withoutSum, right.lse).isWithin(bound));
  Values wrongSign = right.lse;
  wrongSign[0] = kInfinity;
  Values emptyRow = right.lse;
  emptyRow[0] = -kInfinity;
  EXPECT_FALSE(compare(wrongSign, emptyRow).isWithin(bound));
  EXPECT_FALSE(compare(right.lse, emptyRow).isWithin(bound));
  EXPECT_TRUE(compare(emptyRow, emptyRow).isWithin(bound));
}

TEST(Comparison, SamePlacesOfNonFiniteValuesAgree) {
  const Values expected = {1, kNan, kInfinity, -kInfinity, 0};
  EXPECT_TRUE(compare(expected, expected).isWithin(0.0));
  EXPECT_EQ(compare({kNan, 1, kInfinity, -kInfinity, 0}, expected)
                .nonFiniteMismatches,
            2);
  EXPECT_EQ(compare({1, kNan, -kInfinity, -kInfinity, 0}, expected)
                .nonFiniteMismatches,
            1);
}

TEST(Comparison, AnythingButZeroIsWrongWhereZeroIsExpected) {
  const ErrorBounds bounds = attentionBounds(DataType::BFloat16);
  EXPECT_TRUE(compare({0, 0}, {0, 0}).isWithin(bounds));
  EXPECT_FALSE(compare({0, 1e-30}, {0, 0}).isWithin(bounds));
}

TEST(Comparison, ReportNamesTheWorstCoordinates) {
  Values expected(24, 1.0);
  Values actual = expected;
  actual[17] = 3; // [1, 1, 1] of [2, 3, 4] is 12 + 4 + 1
  actual[23] = kNan;
  const std::string text = compare(actual, expected).describe({2, 3, 4});
  EXPECT_NE(text.find("[1, 1, 1]: actual 3, expected 1"), std::string::npos)
      << text;
  EXPECT_LT(text.find("[1, 2, 3]: actual nan"), text.find("[1, 1, 1]")) << text;
}

} // namespace
} // namespace spargejit::reference

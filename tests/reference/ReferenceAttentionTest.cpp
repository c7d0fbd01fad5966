// SPDX-License-Identifier: Apache-2.0
//
// The float64 attention against closed forms.
#include "tests/reference/ReferenceAttention.h"

#include "tests/reference/HostArray.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace spargejit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

AttentionArguments argumentsOf(const HostArray &q, const HostArray &k,
                               const HostArray &v) {
  AttentionArguments arguments;
  arguments.q = q.view();
  arguments.k = k.view();
  arguments.v = v.view();
  return arguments;
}

TEST(ReferenceAttention, OneKeyGivesItsValueAndItsScore) {
  HostArray q(DataType::Float32, {1, 1, 1, 2});
  HostArray k(DataType::Float32, {1, 1, 1, 2});
  HostArray v(DataType::Float32, {1, 1, 1, 2});
  q.fill([](auto, auto, auto, auto d) { return d + 1.0; }); // 1, 2
  k.fill([](auto, auto, auto, auto d) { return d + 3.0; }); // 3, 4
  v.fill([](auto, auto, auto, auto d) { return d + 5.0; }); // 5, 6
  AttentionArguments arguments = argumentsOf(q, k, v);
  arguments.softmaxScale = 0.5;
  const AttentionValues values = referenceAttention(arguments);
  EXPECT_EQ(values.o, (std::vector<double>{5, 6}));
  EXPECT_DOUBLE_EQ(values.lse[0], 5.5); // (1·3 + 2·4) / 2
}

TEST(ReferenceAttention, EqualScoresAverageTheValues) {
  HostArray q(DataType::Float32, {1, 1, 2, 4});
  HostArray k(DataType::Float32, {1, 1, 10, 4});
  HostArray v(DataType::Float32, {1, 1, 10, 4});
  q.fill([](auto, auto, auto, auto) { return 0.0; });
  v.fill([](auto, auto, auto n, auto d) { return n + 10.0 * d; });
  const AttentionValues values = referenceAttention(argumentsOf(q, k, v));
  for (std::size_t d = 0; d < 4; ++d)
    EXPECT_DOUBLE_EQ(values.o[4 + d], 4.5 + 10.0 * static_cast<double>(d));
  EXPECT_DOUBLE_EQ(values.lse[1], std::log(10.0));
}

TEST(ReferenceAttention, TwoKeysWeighByTheLogisticFunction) {
  HostArray q(DataType::Float32, {1, 1, 1, 1});
  HostArray k(DataType::Float32, {1, 1, 2, 1});
  HostArray v(DataType::Float32, {1, 1, 2, 1});
  q.set(0, 0, 0, 0, 1);
  k.set(0, 0, 0, 0, 0.75);
  k.set(0, 0, 1, 0, -1.25);
  v.set(0, 0, 0, 0, 1);
  AttentionArguments arguments = argumentsOf(q, k, v);
  for (const double scale : {1.0, -1.0, 0.0}) {
    arguments.softmaxScale = scale;
    const AttentionValues values = referenceAttention(arguments);
    EXPECT_NEAR(values.o[0], 1 / (1 + std::exp(-2 * scale)), 1e-15);
    EXPECT_NEAR(values.lse[0],
                std::log(std::exp(0.75 * scale) + std::exp(-1.25 * scale)),
                1e-15);
  }
}

TEST(ReferenceAttention, CausalityIsBottomRightAligned) {
  HostArray q(DataType::Float32, {1, 1, 3, 1});
  HostArray k(DataType::Float32, {1, 1, 5, 1});
  HostArray v(DataType::Float32, {1, 1, 5, 1});
  v.fill([](auto, auto, auto n, auto) { return static_cast<double>(n); });
  AttentionArguments arguments = argumentsOf(q, k, v);
  arguments.causal = true;
  EXPECT_EQ(referenceAttention(arguments).o,
            (std::vector<double>{1, 1.5, 2})); // means of 0…2, 0…3, 0…4
  arguments.q = k.view();                      // five rows of zeros
  arguments.k = q.view();
  arguments.v.sizes[2] = 3;
  const AttentionValues values = referenceAttention(arguments);
  EXPECT_EQ(values.o, (std::vector<double>{0, 0, 0, 0.5, 1}));
  EXPECT_EQ(values.lse[1], -kInfinity);
  EXPECT_EQ(values.lse[2], 0);
}

TEST(ReferenceAttention, MaskSelectsBlocksAndEmptyRowsAreZero) {
  HostArray q(DataType::Float32, {1, 2, 5, 1});
  HostArray k(DataType::Float32, {1, 1, 7, 1});
  HostArray v(DataType::Float32, {1, 1, 7, 1});
  v.fill([](auto, auto, auto n, auto) { return static_cast<double>(n); });
  BlockMask mask(1, 2, 3, 3, false); // q blocks of 2, key blocks of 3
  mask.set(0, 0, 0, 2, true);        // key 6 alone
  mask.set(0, 0, 1, 0, true);        // keys 0…2
  mask.set(0, 1, 2, 1, true);        // keys 3…5
  AttentionArguments arguments = argumentsOf(q, k, v);
  arguments.mask = &mask;
  arguments.maskBlockQ = 2;
  arguments.maskBlockKv = 3;
  const AttentionValues values = referenceAttention(arguments);
  EXPECT_EQ(values.o, (std::vector<double>{6, 6, 1, 1, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(values.lse[4], -kInfinity);
  EXPECT_EQ(values.lse[0], 0);
}

TEST(ReferenceAttention, RowsCanBeChosen) {
  Random random(7);
  HostArray q(DataType::BFloat16, {2, 2, 6, 8});
  HostArray k(DataType::BFloat16, {2, 1, 9, 8});
  HostArray v(DataType::BFloat16, {2, 1, 9, 8});
  q.fillNormal(random);
  k.fillNormal(random);
  v.fillNormal(random);
  AttentionArguments arguments = argumentsOf(q, k, v);
  const AttentionValues all = referenceAttention(arguments);
  arguments.rows = {4, 1};
  const AttentionValues some = referenceAttention(arguments);
  EXPECT_EQ(some.lse, (std::vector<double>{all.lse[4], all.lse[1], all.lse[10],
                                           all.lse[7], all.lse[16], all.lse[13],
                                           all.lse[22], all.lse[19]}));
  EXPECT_EQ(some.o[3 * 8 + 5], all.o[7 * 8 + 5]);
}

TEST(ReferenceAttention, EqualsTheFormulaWithoutMaximum) {
  Random random(11);
  HostArray q(DataType::Float16, {1, 4, 5, 8});
  HostArray k(DataType::Float16, {1, 2, 6, 8});
  HostArray v(DataType::Float16, {1, 2, 6, 8});
  q.fillNormal(random);
  k.fillNormal(random);
  v.fillNormal(random);
  AttentionArguments arguments = argumentsOf(q, k, v);
  arguments.softmaxScale = 0.3;
  const AttentionValues values = referenceAttention(arguments);
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t i = 0; i < 5; ++i) {
      double sum = 0;
      double weighted = 0;
      for (std::int64_t j = 0; j < 6; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < 8; ++d)
          score += q.get(0, h, i, d) * k.get(0, h / 2, j, d);
        sum += std::exp(0.3 * score);
        weighted += std::exp(0.3 * score) * v.get(0, h / 2, j, 3);
      }
      const auto row = static_cast<std::size_t>(h * 5 + i);
      EXPECT_NEAR(values.lse[row], std::log(sum), 1e-13);
      EXPECT_NEAR(values.o[row * 8 + 3], weighted / sum, 1e-13);
    }
}

TEST(ReferenceAttention, HugeLogitsStayFinite) {
  HostArray q(DataType::Float32, {1, 1, 1, 1});
  HostArray k(DataType::Float32, {1, 1, 3, 1});
  HostArray v(DataType::Float32, {1, 1, 3, 1});
  q.set(0, 0, 0, 0, 6e4);
  k.fill([](auto, auto, auto n, auto) { return n == 1 ? 1.0 : -1.0; });
  v.fill([](auto, auto, auto n, auto) { return static_cast<double>(n); });
  const AttentionValues values = referenceAttention(argumentsOf(q, k, v));
  EXPECT_EQ(values.o[0], 1);
  EXPECT_EQ(values.lse[0], 6e4);
}

TEST(ReferenceAttention, NotANumberStaysInItsRow) {
  HostArray q(DataType::Float32, {1, 1, 3, 2});
  HostArray k(DataType::Float32, {1, 1, 4, 2});
  HostArray v(DataType::Float32, {1, 1, 4, 2});
  q.set(0, 0, 1, 0, std::nan(""));
  const AttentionValues values = referenceAttention(argumentsOf(q, k, v));
  EXPECT_TRUE(std::isnan(values.lse[1]));
  EXPECT_TRUE(std::isnan(values.o[2]) && std::isnan(values.o[3]));
  EXPECT_EQ(values.o[0], 0);
  EXPECT_EQ(values.o[4], 0);
}

} // namespace
} // namespace spargejit::reference

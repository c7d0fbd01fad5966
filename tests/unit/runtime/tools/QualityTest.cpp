// SPDX-License-Identifier: Apache-2.0
//
// The figures of `spargejit run`, on values whose answers are known.
#include "runtime/tools/spargejit/problem/Quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace spargejit::problem {
namespace {

Tensor tensorOf(const std::vector<float> &values) {
  Tensor tensor =
      Tensor::allocate(DataType::Float32,
                       {1, 1, static_cast<std::int64_t>(values.size())})
          .value();
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

TEST(Quality, IsPerfectForEqualResults) {
  Tensor o = tensorOf({1, -2, 3, 0});
  Tensor lse = tensorOf({0.5, -4});
  Quality quality = compareWithDense(o, lse, o, lse);
  EXPECT_EQ(quality.relL1, 0);
  EXPECT_EQ(quality.relL2, 0);
  EXPECT_DOUBLE_EQ(quality.cosine, 1);
  EXPECT_DOUBLE_EQ(quality.recall, 1);
}

TEST(Quality, FollowsItsFormulas) {
  Tensor dense = tensorOf({3, -4, 0, 0});
  Tensor sparse = tensorOf({3, -4, 12, 0});
  Tensor denseLse = tensorOf({1, 2, 3});
  Tensor sparseLse =
      tensorOf({1 + std::log(0.5f), 2 + std::log(0.25f), kEmpty});
  Quality quality = compareWithDense(dense, denseLse, sparse, sparseLse);
  EXPECT_DOUBLE_EQ(quality.relL1, 12.0 / 7);
  EXPECT_DOUBLE_EQ(quality.relL2, 12.0 / 5);
  EXPECT_DOUBLE_EQ(quality.cosine, 25.0 / (5 * 13));
  EXPECT_NEAR(quality.recall, (0.5 + 0.25 + 0) / 3, 1e-7);
}

TEST(Quality, LeavesRowsThatSeeNothingOutOfTheRecall) {
  Tensor o = tensorOf({0, 1});
  Tensor lse = tensorOf({kEmpty, 2});
  Tensor half = tensorOf({kEmpty, 2 + std::log(0.5f)});
  EXPECT_NEAR(compareWithDense(o, lse, o, half).recall, 0.5, 1e-7);
}

TEST(Quality, ShowsNotANumber) {
  Tensor lse = tensorOf({1});
  Tensor good = tensorOf({1, 2});
  Tensor bad = tensorOf({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(compareWithDense(good, lse, bad, lse).relL1));
  EXPECT_TRUE(std::isnan(compareWithDense(bad, lse, good, lse).relL2));
}

} // namespace
} // namespace spargejit::problem

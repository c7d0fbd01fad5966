// SPDX-License-Identifier: Apache-2.0
//
// The made-up inputs: repeatable, of the promised size, and local.
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"

#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace spargejit::problem {
namespace {

constexpr SyntheticShape kShape{2, 2, 700, 48};

bool sameBytes(const Tensor &a, const Tensor &b) {
  return std::memcmp(a.data<void>(), b.data<void>(),
                     static_cast<std::size_t>(a.view().elementCount()) *
                         dataTypeSize(a.view().dtype)) == 0;
}

TEST(SyntheticInputs, DependOnTheSeedAlone) {
  std::uint64_t seed = numerics::randomForTest().next();
  auto make = [&](std::uint64_t from, int threads) {
    return makeSyntheticInputs(kShape, DataType::Float32, from, threads)
        .value();
  };
  SyntheticTensors one = make(seed, 1);
  SyntheticTensors three = make(seed, 3);
  SyntheticTensors other = make(seed + 1, 1);
  EXPECT_TRUE(sameBytes(one.q, three.q));
  EXPECT_TRUE(sameBytes(one.k, three.k));
  EXPECT_TRUE(sameBytes(one.v, three.v));
  EXPECT_FALSE(sameBytes(one.q, other.q));
  EXPECT_FALSE(sameBytes(one.q, one.k));
}

TEST(SyntheticInputs, AreRoundedToTheType) {
  std::uint64_t seed = numerics::randomForTest().next();
  SyntheticTensors wide =
      makeSyntheticInputs(kShape, DataType::Float32, seed, 2).value();
  for (DataType dtype : {DataType::BFloat16, DataType::Float16}) {
    SyntheticTensors narrow =
        makeSyntheticInputs(kShape, dtype, seed, 2).value();
    EXPECT_TRUE(sameBytes(narrow.v, convertTensor(wide.v, dtype).value()));
  }
}

/// Mean scaled score q_t·k_(t+distance)/sqrt(D) over tokens, batches and heads.
double meanScore(const SyntheticTensors &tensors, const SyntheticShape &shape,
                 std::int64_t distance) {
  double sum = 0;
  std::int64_t count = 0;
  const float *q = tensors.q.data<float>();
  const float *k = tensors.k.data<float>();
  for (std::int64_t plane = 0; plane < shape.batch * shape.heads; ++plane)
    for (std::int64_t t = 0; t + distance < shape.length; ++t, ++count) {
      std::int64_t row = (plane * shape.length + t) * shape.headDim;
      for (std::int64_t d = 0; d < shape.headDim; ++d)
        sum +=
            double{q[row + d]} * double{k[row + distance * shape.headDim + d]};
    }
  return sum / static_cast<double>(count) /
         std::sqrt(static_cast<double>(shape.headDim));
}

TEST(SyntheticInputs, AttendToTheirNeighbourhood) {
  std::uint64_t seed = numerics::randomForTest().next();
  for (std::int64_t dim : {64, 128}) {
    SyntheticShape shape{1, 8, 3000, dim};
    SyntheticTensors tensors =
        makeSyntheticInputs(shape, DataType::Float32, seed, 2).value();
    // 11.3·(0.64 + 0.56) for the token itself, next to nothing far away; the
    // sampling error at D = 64 with 8 heads is below 1.
    EXPECT_NEAR(meanScore(tensors, shape, 0), 13.6, 2.0) << "seed " << seed;
    EXPECT_LT(meanScore(tensors, shape, 2000), 4.0) << "seed " << seed;
    EXPECT_GT(meanScore(tensors, shape, 20), 9.0) << "seed " << seed;
  }
}

} // namespace
} // namespace spargejit::problem

// SPDX-License-Identifier: Apache-2.0
//
// Quality.h: two passes over memory.
#include "runtime/tools/spargejit/problem/Quality.h"

#include <cmath>
#include <limits>

namespace spargejit::problem {

namespace {

/// 0/0 is 0: two results that are both zero do not differ.
double ratio(double error, double size) {
  return error == 0 ? 0 : error / size;
}

double meanRecall(const Tensor &denseLse, const Tensor &sparseLse) {
  const auto *dense = denseLse.data<const float>();
  const auto *sparse = sparseLse.data<const float>();
  constexpr float kEmptyRow = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::int64_t rows = 0;
  std::int64_t count = denseLse.view().elementCount();
  for (std::int64_t i = 0; i < count; ++i) {
    if (dense[i] == kEmptyRow)
      continue;
    sum += std::exp(double{sparse[i]} - double{dense[i]});
    ++rows;
  }
  return sum / static_cast<double>(rows);
}

} // namespace

Quality compareWithDense(const Tensor &dense, const Tensor &denseLse,
                         const Tensor &sparse, const Tensor &sparseLse) {
  double absoluteError = 0;
  double absolute = 0;
  double squaredError = 0;
  double squaredDense = 0;
  double squaredSparse = 0;
  double product = 0;
  const auto *expected = dense.data<const float>();
  const auto *found = sparse.data<const float>();
  std::int64_t count = dense.view().elementCount();
  for (std::int64_t i = 0; i < count; ++i) {
    double a = expected[i];
    double b = found[i];
    absoluteError += std::abs(a - b);
    absolute += std::abs(a);
    squaredError += (a - b) * (a - b);
    squaredDense += a * a;
    squaredSparse += b * b;
    product += a * b;
  }
  Quality quality;
  quality.relL1 = ratio(absoluteError, absolute);
  quality.relL2 = ratio(std::sqrt(squaredError), std::sqrt(squaredDense));
  quality.cosine = product / std::sqrt(squaredDense * squaredSparse);
  quality.recall = meanRecall(denseLse, sparseLse);
  return quality;
}

} // namespace spargejit::problem

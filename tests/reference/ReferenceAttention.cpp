// SPDX-License-Identifier: Apache-2.0
//
// For row i of head h: s_j = scale · q_i·k_j over the keys j that the row
// sees; m = max s_j; l = sum exp(s_j - m); o = sum exp(s_j - m) v_j / l;
// lse = m + ln l. NaN propagates as the formulas say.
#include "tests/reference/ReferenceAttention.h"

#include "tests/reference/Elements.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace spargejit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Head (b, h) of a rank-4 tensor as float64 [length, headDim], row-major.
std::vector<double> loadHead(const TensorView &x, std::int64_t b,
                             std::int64_t h) {
  std::vector<double> values;
  for (std::int64_t n = 0; n < x.sizes[2]; ++n)
    for (std::int64_t d = 0; d < x.sizes[3]; ++d)
      values.push_back(elementAt(x, b, h, n, d));
  return values;
}

bool seesKey(const AttentionArguments &a, std::int64_t b, std::int64_t h,
             std::int64_t row, std::int64_t key) {
  if (a.causal && key > row + a.k.sizes[2] - a.q.sizes[2])
    return false;
  return a.mask == nullptr ||
         a.mask->at(b, h, row / a.maskBlockQ, key / a.maskBlockKv);
}

double dot(const double *x, const double *y, std::int64_t count) {
  double sum = 0;
  for (std::int64_t d = 0; d < count; ++d)
    sum += x[d] * y[d];
  return sum;
}

void attendRow(const AttentionArguments &a, std::int64_t b, std::int64_t h,
               std::int64_t row, const std::vector<double> &keys,
               const std::vector<double> &values, double *o, double &lse) {
  const std::int64_t headDim = a.q.sizes[3];
  std::vector<double> q;
  for (std::int64_t d = 0; d < headDim; ++d)
    q.push_back(elementAt(a.q, b, h, row, d));

  std::vector<std::int64_t> seen;
  std::vector<double> scores;
  double rowMax = -kInfinity;
  for (std::int64_t j = 0; j < a.k.sizes[2]; ++j) {
    if (!seesKey(a, b, h, row, j))
      continue;
    seen.push_back(j);
    scores.push_back(
        a.softmaxScale *
        dot(q.data(), &keys[static_cast<std::size_t>(j * headDim)], headDim));
    if (scores.back() > rowMax)
      rowMax = scores.back();
  }

  double rowSum = 0;
  for (std::int64_t d = 0; d < headDim; ++d)
    o[d] = 0;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    const double p = std::exp(scores[t] - rowMax);
    const double *v = &values[static_cast<std::size_t>(seen[t] * headDim)];
    rowSum += p;
    for (std::int64_t d = 0; d < headDim; ++d)
      o[d] += p * v[d];
  }
  lse = seen.empty() ? -kInfinity : rowMax + std::log(rowSum);
  if (!seen.empty())
    for (std::int64_t d = 0; d < headDim; ++d)
      o[d] /= rowSum;
}

} // namespace

AttentionValues referenceAttention(const AttentionArguments &a) {
  AttentionValues result;
  result.rows = a.rows;
  if (result.rows.empty()) {
    result.rows.resize(static_cast<std::size_t>(a.q.sizes[2]));
    std::iota(result.rows.begin(), result.rows.end(), 0);
  }
  const std::int64_t batch = a.q.sizes[0];
  const std::int64_t qHeads = a.q.sizes[1];
  const auto headDim = static_cast<std::size_t>(a.q.sizes[3]);
  const std::size_t rowCount =
      static_cast<std::size_t>(batch * qHeads) * result.rows.size();
  result.o.resize(rowCount * headDim);
  result.lse.resize(rowCount);

  std::size_t out = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < qHeads; ++h) {
      const std::int64_t kvHead = h / (qHeads / a.k.sizes[1]);
      const std::vector<double> keys = loadHead(a.k, b, kvHead);
      const std::vector<double> values = loadHead(a.v, b, kvHead);
      for (const std::int64_t row : result.rows) {
        attendRow(a, b, h, row, keys, values, &result.o[out * headDim],
                  result.lse[out]);
        ++out;
      }
    }
  }
  return result;
}

} // namespace spargejit::reference

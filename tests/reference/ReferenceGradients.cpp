// SPDX-License-Identifier: Apache-2.0
//
// With p_j = exp(s_j - lse) of one row: d_s_j = p_j (d_o · v_j - d_o · o +
// d_lse), then d_q = scale sum_j d_s_j k_j, d_k_j += scale d_s_j q, d_v_j +=
// p_j d_o.
#include "tests/reference/ReferenceGradients.h"

#include "tests/reference/Elements.h"

#include <cmath>
#include <limits>

namespace spargejit::reference {
namespace {

/// Row n of head (b, h).
std::vector<double> loadRow(const TensorView &x, std::int64_t b, std::int64_t h,
                            std::int64_t n) {
  std::vector<double> row;
  for (std::int64_t d = 0; d < x.sizes[3]; ++d)
    row.push_back(elementAt(x, b, h, n, d));
  return row;
}

double dot(const std::vector<double> &x, const std::vector<double> &y) {
  double sum = 0;
  for (std::size_t d = 0; d < x.size(); ++d)
    sum += x[d] * y[d];
  return sum;
}

/// y[row] += factor x, for row number `row` of a dense array.
void addToRow(std::vector<double> &y, std::int64_t row, double factor,
              const std::vector<double> &x) {
  const std::size_t first = static_cast<std::size_t>(row) * x.size();
  for (std::size_t d = 0; d < x.size(); ++d)
    y[first + d] += factor * x[d];
}

bool seesKey(const AttentionArguments &a, std::int64_t b, std::int64_t h,
             std::int64_t row, std::int64_t key) {
  if (a.causal && key > row + a.k.sizes[2] - a.q.sizes[2])
    return false;
  return a.mask == nullptr ||
         a.mask->at(b, h, row / a.maskBlockQ, key / a.maskBlockKv);
}

using Rows = std::vector<std::vector<double>>;

struct HeadRows {
  Rows keys;
  Rows values;
};

void addRow(const AttentionArguments &a, std::int64_t b, std::int64_t h,
            std::int64_t row, const HeadRows &head, const TensorView &dO,
            double dLse, Gradients &result) {
  const std::vector<double> q = loadRow(a.q, b, h, row);
  const std::vector<double> dOut = loadRow(dO, b, h, row);
  std::vector<std::int64_t> seen;
  std::vector<double> weights;
  double rowMax = -std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < a.k.sizes[2]; ++j)
    if (seesKey(a, b, h, row, j)) {
      seen.push_back(j);
      weights.push_back(a.softmaxScale *
                        dot(q, head.keys[static_cast<std::size_t>(j)]));
      rowMax = std::max(rowMax, weights.back());
    }
  double sum = 0;
  for (double &weight : weights)
    sum += weight = std::exp(weight - rowMax);

  // d_o · o = sum_j p_j (d_o · v_j), so o itself is not needed.
  std::vector<double> slopes;
  double mean = 0;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    weights[t] /= sum;
    slopes.push_back(dot(dOut, head.values[static_cast<std::size_t>(seen[t])]));
    mean += weights[t] * slopes[t];
  }
  const std::int64_t kvHeads = a.k.sizes[1];
  const std::int64_t kvHead = h / (a.q.sizes[1] / kvHeads);
  const std::int64_t qRow = (b * a.q.sizes[1] + h) * a.q.sizes[2] + row;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    const double dScore = weights[t] * (slopes[t] - mean + dLse);
    const double term = a.softmaxScale * weights[t] *
                        (std::fabs(slopes[t]) + std::fabs(mean - dLse));
    const std::int64_t kvRow = (b * kvHeads + kvHead) * a.k.sizes[2] + seen[t];
    const auto &key = head.keys[static_cast<std::size_t>(seen[t])];
    result.dqTerms += term * term * dot(key, key);
    result.dkTerms += term * term * dot(q, q);
    result.dvTerms += weights[t] * weights[t] * dot(dOut, dOut);
    addToRow(result.dq, qRow, a.softmaxScale * dScore, key);
    addToRow(result.dk, kvRow, a.softmaxScale * dScore, q);
    addToRow(result.dv, kvRow, weights[t], dOut);
  }
}

} // namespace

Gradients referenceGradients(const AttentionArguments &a, const TensorView &dO,
                             const std::optional<TensorView> &dLse) {
  const std::int64_t qHeads = a.q.sizes[1];
  const std::int64_t kvLen = a.k.sizes[2];
  auto zeros = [](const TensorView &like) {
    return std::vector<double>(static_cast<std::size_t>(
        like.sizes[0] * like.sizes[1] * like.sizes[2] * like.sizes[3]));
  };
  Gradients result;
  result.dq = zeros(a.q);
  result.dk = zeros(a.k);
  result.dv = zeros(a.v);
  for (std::int64_t b = 0; b < a.q.sizes[0]; ++b)
    for (std::int64_t h = 0; h < qHeads; ++h) {
      HeadRows head;
      for (std::int64_t j = 0; j < kvLen; ++j) {
        const std::int64_t kvHead = h / (qHeads / a.k.sizes[1]);
        head.keys.push_back(loadRow(a.k, b, kvHead, j));
        head.values.push_back(loadRow(a.v, b, kvHead, j));
      }
      for (std::int64_t row = 0; row < a.q.sizes[2]; ++row)
        addRow(a, b, h, row, head, dO, dLse ? elementAt(*dLse, b, h, row) : 0,
               result);
    }
  for (double *terms : {&result.dqTerms, &result.dkTerms, &result.dvTerms})
    *terms = std::sqrt(*terms);
  return result;
}

} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// For query block i: z_j = scale · mean(q block i) · mean(k block j) over the
// allowed key blocks, NaN ranks as -inf; w = softmax(z); blocks sorted by
// (z descending, j ascending); n = the shortest prefix with at least
// max(k, 1) blocks and a mass of at least p; p = 1 asks for every block.
#include "tests/reference/ReferenceSelection.h"

#include "tests/reference/Elements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace spargejit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Vector = std::vector<double>;

/// Means over the real tokens of each block of head (b, h).
std::vector<Vector> poolHead(const TensorView &x, std::int64_t b,
                             std::int64_t h, std::int64_t block) {
  std::vector<Vector> means;
  const std::int64_t length = x.sizes[2];
  for (std::int64_t first = 0; first < length; first += block) {
    const std::int64_t last = std::min(first + block, length);
    Vector sum(static_cast<std::size_t>(x.sizes[3]), 0.0);
    for (std::int64_t n = first; n < last; ++n)
      for (std::size_t d = 0; d < sum.size(); ++d)
        sum[d] += elementAt(x, b, h, n, static_cast<std::int64_t>(d));
    for (double &value : sum)
      value /= static_cast<double>(last - first);
    means.push_back(std::move(sum));
  }
  return means;
}

struct RowScores {
  Vector scores; ///< of the allowed blocks 0 … size - 1, NaN replaced
  double error = 0;
};

/// Scores against the first `allowed` key blocks. Their float32 rounding error
/// is at most a few units in the last place of the sum of the magnitudes.
RowScores scoreRow(const Vector &q, const std::vector<Vector> &k,
                   std::size_t allowed, double scale) {
  RowScores row;
  for (std::size_t j = 0; j < allowed; ++j) {
    double sum = 0;
    double magnitude = 0;
    for (std::size_t d = 0; d < q.size(); ++d) {
      sum += q[d] * k[j][d];
      magnitude += std::fabs(q[d] * k[j][d]);
    }
    const double score = scale * sum;
    row.scores.push_back(std::isnan(score) ? -kInfinity : score);
    if (std::isfinite(magnitude))
      row.error =
          std::max(row.error, 32 * 0x1p-24 * std::fabs(scale) * magnitude);
  }
  return row;
}

/// Sums of the first 1, 2, … probabilities in ranked order. Without a finite
/// score there are no probabilities; every prefix then has all of the mass, and
/// the rank alone decides.
Vector prefixMass(const Vector &scores, const std::vector<std::size_t> &order) {
  const double top = order.empty() ? -kInfinity : scores[order[0]];
  if (!std::isfinite(top))
    return Vector(scores.size(), kInfinity);
  Vector sums;
  double sum = 0;
  for (const std::size_t j : order) {
    sum += std::exp(scores[j] - top);
    sums.push_back(sum);
  }
  for (double &value : sums)
    value /= sum;
  return sums;
}

/// The ranked prefix: fills `prefix`, `massMargin`.
void choosePrefix(const Vector &mass, std::int64_t k, const SelectionRules &r,
                  SelectedRow &row) {
  const auto allowed = static_cast<std::int64_t>(mass.size());
  std::int64_t n = std::min(std::max<std::int64_t>(k, 1), allowed);
  row.massMargin = kInfinity;
  if (r.topP && *r.topP >= 1) {
    n = allowed;
  } else if (r.topP && *r.topP > 0 && n > 0) {
    const std::int64_t least = n;
    while (n < allowed && mass[static_cast<std::size_t>(n - 1)] < *r.topP)
      ++n;
    // The sum that stopped the prefix, and the one that did not yet.
    if (n < allowed)
      row.massMargin = mass[static_cast<std::size_t>(n - 1)] - *r.topP;
    if (n > least)
      row.massMargin = std::min(
          row.massMargin, *r.topP - mass[static_cast<std::size_t>(n - 2)]);
  }
  row.prefix = n;
}

void addForcedBlocks(const SelectionRules &r, std::int64_t lastRow,
                     std::int64_t qLen, std::int64_t kvLen,
                     std::vector<bool> &kept) {
  const std::int64_t block = lastRow / r.maskBlockQ;
  const bool isDense = block >= r.denseRowFirst && block < r.denseRowEnd;
  for (std::size_t at = 0; at < kept.size(); ++at) {
    const auto j = static_cast<std::int64_t>(at);
    if (j < r.keepFirstBlocks || (j >= r.denseFirst && j < r.denseEnd) ||
        isDense)
      kept[at] = true;
  }
  const std::int64_t lastKey =
      std::clamp<std::int64_t>(lastRow + kvLen - qLen, 0, kvLen - 1);
  const auto diagonal = static_cast<std::size_t>(lastKey / r.maskBlockKv);
  if (r.keepDiagonal && diagonal < kept.size())
    kept[diagonal] = true;
}

SelectedRow selectRow(const RowScores &scored, std::int64_t k,
                      const SelectionRules &r, std::int64_t lastRow,
                      std::int64_t qLen, std::int64_t kvLen) {
  const Vector &scores = scored.scores;
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });

  SelectedRow row;
  choosePrefix(prefixMass(scores, order), k, r, row);
  const auto n = static_cast<std::size_t>(row.prefix);
  row.scoreError = scored.error;
  row.scoreMargin = kInfinity;
  if (n > 0 && n < order.size()) {
    const double inside = scores[order[n - 1]];
    const double outside = scores[order[n]];
    row.scoreMargin = inside == outside ? 0 : inside - outside;
  }

  std::vector<bool> kept(scores.size(), false);
  for (std::size_t t = 0; t < n; ++t)
    kept[order[t]] = true;
  addForcedBlocks(r, lastRow, qLen, kvLen, kept);
  for (std::size_t j = 0; j < kept.size(); ++j)
    if (kept[j])
      row.blocks.push_back(static_cast<std::int32_t>(j));
  return row;
}

} // namespace

std::vector<SelectedRow> referenceSelection(const TensorView &q,
                                            const TensorView &k,
                                            const SelectionRules &r) {
  const std::int64_t qLen = q.sizes[2];
  const std::int64_t kvLen = k.sizes[2];
  const std::int64_t kvBlocks = ceilDiv(kvLen, r.maskBlockKv);
  std::int64_t keep = 0;
  if (r.topK)
    keep = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(*r.topK * static_cast<double>(kvBlocks)), 1,
        kvBlocks);

  std::vector<SelectedRow> rows;
  for (std::int64_t b = 0; b < q.sizes[0]; ++b) {
    for (std::int64_t h = 0; h < q.sizes[1]; ++h) {
      const auto pooledQ = poolHead(q, b, h, r.maskBlockQ);
      const auto pooledK =
          poolHead(k, b, h / (q.sizes[1] / k.sizes[1]), r.maskBlockKv);
      for (std::size_t i = 0; i < pooledQ.size(); ++i) {
        const std::int64_t lastRow =
            std::min((static_cast<std::int64_t>(i) + 1) * r.maskBlockQ, qLen) -
            1;
        const std::int64_t lastKey = lastRow + kvLen - qLen;
        std::int64_t allowed = kvBlocks;
        if (r.causal)
          allowed =
              lastKey < 0 ? 0 : std::min(kvBlocks, lastKey / r.maskBlockKv + 1);
        rows.push_back(selectRow(scoreRow(pooledQ[i], pooledK,
                                          static_cast<std::size_t>(allowed),
                                          r.softmaxScale),
                                 keep, r, lastRow, qLen, kvLen));
      }
    }
  }
  return rows;
}

BlockMask maskOfLists(const TensorView &indices, const TensorView &counts,
                      std::int64_t kvBlocks) {
  BlockMask mask(indices.sizes[0], indices.sizes[1], indices.sizes[2], kvBlocks,
                 false);
  for (std::int64_t b = 0; b < mask.batch; ++b)
    for (std::int64_t h = 0; h < mask.heads; ++h)
      for (std::int64_t i = 0; i < mask.qBlocks; ++i) {
        const auto count =
            std::min(static_cast<std::int64_t>(elementAt(counts, b, h, i)),
                     indices.sizes[3]);
        for (std::int64_t t = 0; t < count; ++t) {
          const auto j =
              static_cast<std::int64_t>(elementAt(indices, b, h, i, t));
          if (j >= 0 && j < kvBlocks)
            mask.set(b, h, i, j, true);
        }
      }
  return mask;
}

BlockMask maskOfRows(const std::vector<SelectedRow> &rows, std::int64_t batch,
                     std::int64_t qHeads, std::int64_t qBlocks,
                     std::int64_t kvBlocks) {
  BlockMask mask(batch, qHeads, qBlocks, kvBlocks, false);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const std::int32_t j : rows[row].blocks)
      mask.bits[row * static_cast<std::size_t>(kvBlocks) +
                static_cast<std::size_t>(j)] = 1;
  return mask;
}

} // namespace spargejit::reference

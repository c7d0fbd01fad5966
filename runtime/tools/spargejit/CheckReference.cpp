// SPDX-License-Identifier: Apache-2.0
//
// CheckReference.h. For query row i with keys J = {keys of the listed blocks,
// less those that causality hides}:
//   s_j = softmaxScale · q_i·k_j,  m = max s_j,  l = sum exp(s_j - m)
//   o_i = sum exp(s_j - m) v_j / l,  lse_i = m + ln l;  J empty: 0 and -inf
#include "runtime/tools/spargejit/CheckReference.h"

#include "runtime/tools/spargejit/problem/ParallelFor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace spargejit::tool {

namespace {

// A key costs a dependent chain of headDim additions, some 0.17 µs at 128, and
// a core does five seconds of them here.
constexpr double kAffordableMultiplyAdds = 8e9;
constexpr std::int64_t kLeastRows = 64;

const float *rowOf(const TensorView &view, std::int64_t batch,
                   std::int64_t head, std::int64_t row) {
  return static_cast<const float *>(view.data) + batch * view.strides[0] +
         head * view.strides[1] + row * view.strides[2];
}

struct RowResult {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
};

/// Numbers of the keys that the row sees.
std::vector<std::int64_t> visibleKeys(const ReferenceProblem &problem,
                                      const QueryRow &at) {
  const BlockLists &lists = *problem.lists;
  const TensorView &indices = lists.indices.view();
  std::int64_t list =
      (at.batch * indices.sizes[1] + at.head) * indices.sizes[2] +
      at.row / lists.maskBlockQ;
  const std::int32_t *blocks =
      lists.indices.data<const std::int32_t>() + list * indices.sizes[3];
  std::int32_t count = lists.counts.data<const std::int32_t>()[list];
  std::int64_t end = lists.kvLen;
  if (problem.causal)
    end = std::min(end, at.row + lists.kvLen - lists.qLen + 1);
  std::vector<std::int64_t> keys;
  for (std::int32_t slot = 0; slot < count; ++slot) {
    std::int64_t first = blocks[slot] * lists.maskBlockKv;
    for (std::int64_t key = first;
         key < std::min(first + lists.maskBlockKv, end); ++key)
      keys.push_back(key);
  }
  return keys;
}

RowResult referenceRow(const ReferenceProblem &problem, const QueryRow &at) {
  const std::int64_t dim = problem.q.sizes[3];
  const std::int64_t kvHead =
      at.head / (problem.q.sizes[1] / problem.k.sizes[1]);
  const float *q = rowOf(problem.q, at.batch, at.head, at.row);
  RowResult result;
  result.o.assign(static_cast<std::size_t>(dim), 0.0);
  std::vector<std::int64_t> keys = visibleKeys(problem, at);
  if (keys.empty())
    return result;

  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t key : keys) {
    const float *k = rowOf(problem.k, at.batch, kvHead, key);
    double dot = 0;
    for (std::int64_t d = 0; d < dim; ++d)
      dot += double{q[d]} * double{k[d]};
    scores.push_back(problem.softmaxScale * dot);
    largest = std::max(largest, scores.back());
  }
  double sum = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const float *v = rowOf(problem.v, at.batch, kvHead, keys[i]);
    double weight = std::exp(scores[i] - largest);
    sum += weight;
    for (std::int64_t d = 0; d < dim; ++d)
      result.o[static_cast<std::size_t>(d)] += weight * double{v[d]};
  }
  for (double &value : result.o)
    value /= sum;
  result.lse = largest + std::log(sum);
  return result;
}

/// An ErrorSummary in the making.
struct ErrorSums {
  ErrorSummary summary;
  double squaredError = 0;
  double squaredSize = 0;

  /// `size` is what errors are relative to.
  void add(double expected, double found, double size, const QueryRow &row,
           std::int64_t channel) {
    if (!std::isfinite(expected) || !std::isfinite(found)) {
      bool alike =
          expected == found || (std::isnan(expected) && std::isnan(found));
      if (!alike && summary.notFiniteAlike++ == 0)
        summary.firstNotFinite = fmt::format(
            "batch {}, head {}, row {}, channel {}: {} instead of {}",
            row.batch, row.head, row.row, channel, found, expected);
      return;
    }
    double error = std::abs(found - expected);
    squaredError += error * error;
    squaredSize += size * size;
    summary.largest = std::max(summary.largest, size);
    if (error > summary.maxError) {
      summary.maxError = error;
      summary.maxRow = row;
      summary.maxChannel = channel;
      summary.maxFound = found;
      summary.maxExpected = expected;
    }
  }

  void add(const ErrorSums &other) {
    squaredError += other.squaredError;
    squaredSize += other.squaredSize;
    double largest = std::max(summary.largest, other.summary.largest);
    std::int64_t notFinite =
        summary.notFiniteAlike + other.summary.notFiniteAlike;
    std::string first = summary.firstNotFinite.empty()
                            ? other.summary.firstNotFinite
                            : summary.firstNotFinite;
    if (other.summary.maxError > summary.maxError)
      summary = other.summary;
    summary.largest = largest;
    summary.notFiniteAlike = notFinite;
    summary.firstNotFinite = first;
  }

  ErrorSummary finished() const {
    ErrorSummary result = summary;
    result.relL2 =
        squaredError == 0 ? 0 : std::sqrt(squaredError / squaredSize);
    return result;
  }
};

} // namespace

std::vector<QueryRow> chooseRows(const TensorView &q, std::int64_t wanted,
                                 std::uint64_t seed) {
  std::vector<QueryRow> rows;
  std::int64_t planes = q.sizes[0] * q.sizes[1];
  std::int64_t length = q.sizes[2];
  std::int64_t each = length;
  if (wanted < planes * length)
    each = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(planes, 1),
                                    std::min<std::int64_t>(2, length), length);
  std::mt19937_64 random(seed);
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = 0; i < each; ++i) {
      std::int64_t first = i * length / each;
      std::int64_t width = (i + 1) * length / each - first;
      std::int64_t offset = static_cast<std::int64_t>(
          random() % static_cast<std::uint64_t>(width));
      if (i == 0)
        offset = 0;
      if (i == each - 1)
        offset = width - 1;
      rows.push_back({plane / q.sizes[1], plane % q.sizes[1], first + offset});
    }
  return rows;
}

std::int64_t affordableRows(const ReferenceProblem &problem) {
  const BlockLists &lists = *problem.lists;
  double keysPerRow = lists.density() * static_cast<double>(lists.kvLen);
  double costPerRow =
      std::max(1.0, 2 * keysPerRow * static_cast<double>(problem.q.sizes[3]));
  double affordable = kAffordableMultiplyAdds / costPerRow;
  return std::max(kLeastRows,
                  static_cast<std::int64_t>(std::min(affordable, 0x1p60)));
}

Status checkLists(const BlockLists &lists) {
  const TensorView &indices = lists.indices.view();
  std::int64_t capacity = indices.sizes[3];
  std::int64_t kvBlocks =
      (lists.kvLen + lists.maskBlockKv - 1) / lists.maskBlockKv;
  const auto *blocks = lists.indices.data<const std::int32_t>();
  const auto *counts = lists.counts.data<const std::int32_t>();
  for (std::int64_t list = 0; list < lists.counts.view().elementCount();
       ++list) {
    auto bad = [&](const std::string &what) {
      return Status(ErrorCode::InvalidArgument,
                    fmt::format("block list of batch {}, head {}, query block "
                                "{}: {}",
                                list / (indices.sizes[1] * indices.sizes[2]),
                                list / indices.sizes[2] % indices.sizes[1],
                                list % indices.sizes[2], what));
    };
    if (counts[list] < 0 || counts[list] > capacity)
      return bad(fmt::format("expected a count from 0 to {}, got {}", capacity,
                             counts[list]));
    std::int64_t before = -1;
    for (std::int64_t slot = 0; slot < capacity; ++slot) {
      std::int64_t block = blocks[list * capacity + slot];
      if (slot >= counts[list] && block != -1)
        return bad(
            fmt::format("expected -1 in unused slot {}, got {}", slot, block));
      if (slot < counts[list] && (block <= before || block >= kvBlocks))
        return bad(fmt::format("expected ascending blocks below {}, got {} "
                               "after {}",
                               kvBlocks, block, before));
      before = block;
    }
  }
  return Status();
}

CheckReport compareWithReference(const ReferenceProblem &problem,
                                 const std::vector<QueryRow> &rows, int threads,
                                 report::Progress &progress) {
  struct WorkerSums {
    ErrorSums o, lse;
  };
  threads = problem::threadCount(threads);
  std::vector<WorkerSums> workers(static_cast<std::size_t>(threads));
  problem::parallelFor(
      static_cast<std::int64_t>(rows.size()), threads,
      [&](int worker, std::int64_t item) {
        const QueryRow &at = rows[static_cast<std::size_t>(item)];
        WorkerSums &sums = workers[static_cast<std::size_t>(worker)];
        RowResult expected = referenceRow(problem, at);
        const float *o = rowOf(problem.o, at.batch, at.head, at.row);
        for (std::size_t d = 0; d < expected.o.size(); ++d)
          sums.o.add(expected.o[d], o[d], std::abs(expected.o[d]), at,
                     static_cast<std::int64_t>(d));
        double lse = *rowOf(problem.lse, at.batch, at.head, at.row);
        sums.lse.add(expected.lse, lse, std::max(1.0, std::abs(expected.lse)),
                     at, 0);
        progress.advance(1);
      });

  WorkerSums total;
  for (const WorkerSums &sums : workers) {
    total.o.add(sums.o);
    total.lse.add(sums.lse);
  }
  CheckReport report;
  report.rowsChecked = static_cast<std::int64_t>(rows.size());
  report.rowsTotal =
      problem.q.sizes[0] * problem.q.sizes[1] * problem.q.sizes[2];
  report.o = total.o.finished();
  report.lse = total.lse.finished();
  return report;
}

} // namespace spargejit::tool

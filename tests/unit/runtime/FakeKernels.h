// SPDX-License-Identifier: Apache-2.0
//
// Host kernels in C++ behind the interface of compiled ones: argument slots and
// a program number. float32; the argument order is that of ExamplePlans.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace spargejit::unit {

/// A tensor argument at its slots.
template <typename T, int Rank>
struct SlotTensor {
  const std::int64_t *slots;

  std::int64_t size(int i) const { return slots[1 + i]; }
  bool present() const { return slots[0] != 0; }
  T &at(std::initializer_list<std::int64_t> indices) const {
    std::int64_t offset = 0;
    int i = 0;
    for (std::int64_t index : indices)
      offset += index * slots[1 + Rank + i++];
    return std::bit_cast<T *>(slots[0])[offset];
  }
};

inline float floatAt(const std::int64_t *slot) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(*slot));
}

/// Where a program works; batch is slowest, the tile fastest.
struct Place {
  std::int64_t batch, head, tile;
  Place(std::int64_t program, std::int64_t heads, std::int64_t tiles)
      : batch(program / (heads * tiles)), head(program / tiles % heads),
        tile(program % tiles) {}
};

/// The mean of block `block` of `x`, with `size` rows where it is whole.
inline void fakeMean(const SlotTensor<const float, 4> &x,
                     const SlotTensor<float, 4> &pooled, std::int64_t batch,
                     std::int64_t head, std::int64_t block, std::int64_t size) {
  std::int64_t first = block * size;
  std::int64_t last = std::min(first + size, x.size(2));
  for (std::int64_t d = 0; d < x.size(3); ++d) {
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i)
      sum += x.at({batch, head, i, d});
    pooled.at({batch, head, block, d}) =
        static_cast<float>(sum / static_cast<double>(last - first));
  }
}

template <int BlockQ, int BlockKv>
void fakePool(const std::int64_t *args, std::int64_t program, void *) {
  SlotTensor<const float, 4> q{args}, k{args + 9};
  SlotTensor<float, 4> pooledQ{args + 18}, pooledK{args + 27};
  Place at(program, q.size(1), pooledQ.size(2));
  fakeMean(q, pooledQ, at.batch, at.head, at.tile, BlockQ);
  // A batch's first program pools its k.
  if (at.head == 0 && at.tile == 0)
    for (std::int64_t head = 0; head < k.size(1); ++head)
      for (std::int64_t block = 0; block < pooledK.size(2); ++block)
        fakeMean(k, pooledK, at.batch, head, block, BlockKv);
}

inline void fakeSelect(const std::int64_t *args, std::int64_t program, void *) {
  constexpr std::int64_t kRows = 16;
  SlotTensor<const float, 4> q{args}, k{args + 9};
  SlotTensor<std::int32_t, 4> indices{args + 18};
  SlotTensor<std::int32_t, 3> counts{args + 27};
  const std::int64_t kept = args[35], blocks = k.size(2);
  Place at(program, q.size(1), (q.size(2) + kRows - 1) / kRows);
  const std::int64_t kvHead = at.head / (q.size(1) / k.size(1));
  for (std::int64_t row = at.tile * kRows;
       row < std::min((at.tile + 1) * kRows, q.size(2)); ++row) {
    std::vector<double> scores(static_cast<std::size_t>(blocks), 0.0);
    for (std::size_t j = 0; j < scores.size(); ++j)
      for (std::int64_t d = 0; d < q.size(3); ++d)
        scores[j] += static_cast<double>(q.at({at.batch, at.head, row, d})) *
                     k.at({at.batch, kvHead, static_cast<std::int64_t>(j), d});
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      double scoreA = scores[static_cast<std::size_t>(a)];
      double scoreB = scores[static_cast<std::size_t>(b)];
      return scoreA != scoreB ? scoreA > scoreB : a < b;
    });
    std::sort(order.begin(), order.begin() + kept);
    for (std::int64_t j = 0; j < blocks; ++j)
      indices.at({at.batch, at.head, row, j}) =
          j < kept ? order[static_cast<std::size_t>(j)] : -1;
    counts.at({at.batch, at.head, row}) = static_cast<std::int32_t>(kept);
  }
}

/// The keys that block row `row` attends to.
template <int BlockKv>
std::vector<std::int64_t> fakeKeys(const std::int64_t *args, const Place &at,
                                   std::int64_t row, std::int64_t kvLen) {
  SlotTensor<const std::int32_t, 4> indices{args + 27};
  SlotTensor<const std::int32_t, 3> counts{args + 36};
  std::vector<std::int64_t> keys;
  if (!indices.present()) {
    keys.resize(static_cast<std::size_t>(kvLen));
    std::iota(keys.begin(), keys.end(), 0);
    return keys;
  }
  for (int slot = 0; slot < counts.at({at.batch, at.head, row}); ++slot) {
    std::int64_t block = indices.at({at.batch, at.head, row, slot});
    for (std::int64_t j = block * BlockKv;
         j < std::min((block + 1) * BlockKv, kvLen); ++j)
      keys.push_back(j);
  }
  return keys;
}

template <int BlockQ, int BlockKv>
void fakeAttention(const std::int64_t *args, std::int64_t program, void *) {
  SlotTensor<const float, 4> q{args}, k{args + 9}, v{args + 18};
  SlotTensor<float, 4> o{args + 43};
  SlotTensor<float, 3> lse{args + 52};
  const double scale = floatAt(args + 59);
  Place at(program, q.size(1), (q.size(2) + BlockQ - 1) / BlockQ);
  const std::int64_t kvHead = at.head / (q.size(1) / k.size(1));
  const auto keys = fakeKeys<BlockKv>(args, at, at.tile, k.size(2));
  for (std::int64_t i = at.tile * BlockQ;
       i < std::min((at.tile + 1) * BlockQ, q.size(2)); ++i) {
    std::vector<double> sums(static_cast<std::size_t>(q.size(3)), 0.0);
    double total = 0;
    for (std::int64_t j : keys) {
      double score = 0;
      for (std::int64_t d = 0; d < q.size(3); ++d)
        score += static_cast<double>(q.at({at.batch, at.head, i, d})) *
                 k.at({at.batch, kvHead, j, d});
      // Without a maximum: test inputs are small.
      double weight = std::exp(scale * score);
      total += weight;
      for (std::size_t d = 0; d < sums.size(); ++d)
        sums[d] +=
            weight * v.at({at.batch, kvHead, j, static_cast<std::int64_t>(d)});
    }
    for (std::size_t d = 0; d < sums.size(); ++d)
      o.at({at.batch, at.head, i, static_cast<std::int64_t>(d)}) =
          static_cast<float>(total > 0 ? sums[d] / total : 0);
    if (lse.present())
      lse.at({at.batch, at.head, i}) = static_cast<float>(std::log(total));
  }
}

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// Inputs, inverted lists and reference rows of a backward trial.
#include "tests/gpu/kernels/BackwardTrial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace spargejit::gpu_trial {

namespace {

using Row = std::vector<double>;

Row readRow(const HostTensor &tensor, std::int64_t b, std::int64_t h,
            std::int64_t r, bool isBfloat16) {
  Row row;
  for (std::int64_t c = 0; c < tensor.dim; ++c)
    row.push_back(
        toFloat(tensor.buffer[static_cast<std::size_t>(tensor.at(b, h, r) + c)],
                isBfloat16));
  return row;
}

double dot(const Row &a, const Row &b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

void addScaled(Row &sum, double factor, const Row &row) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] += factor * row[i];
}

void drawStatistics(BackwardTrial &trial, std::uint64_t seed, bool hasDLse) {
  const Trial &forward = trial.forward;
  std::int64_t length = forward.q.length, heads = forward.q.heads;
  std::int64_t rows = forward.q.batch * heads * length;
  for (auto *values : {&trial.lse, &trial.delta, &trial.dLse})
    values->resize(static_cast<std::size_t>(rows));
  forAll(forward.q.batch * heads, [&](std::int64_t head) {
    std::mt19937_64 engine(seed + 613 * static_cast<std::uint64_t>(head));
    std::uniform_real_distribution<float> uniform(-0.25f, 0.25f);
    for (std::int64_t row = 0; row < length; ++row) {
      auto at = static_cast<std::size_t>(head * length + row);
      auto keys = visibleKeys(forward, head / heads, head % heads, row).size();
      trial.lse[at] = keys == 0 ? -std::numeric_limits<float>::infinity()
                                : std::log(static_cast<float>(keys)) + 0.5f +
                                      uniform(engine);
      trial.dLse[at] = uniform(engine);
      trial.delta[at] = static_cast<float>(
          referenceDelta(trial, head / heads, head % heads, row).first);
      if (!hasDLse)
        trial.delta[at] += trial.dLse[at];
    }
  });
}

void invertLists(BackwardTrial &trial, std::uint64_t seed) {
  const Trial &forward = trial.forward;
  std::int64_t heads = forward.q.batch * forward.q.heads;
  std::int64_t blocks = forward.kvBlocks();
  trial.keyCapacity = forward.qBlocks + 1;
  trial.keyIndices.assign(
      static_cast<std::size_t>(heads * blocks * trial.keyCapacity), -1);
  trial.keyCounts.assign(static_cast<std::size_t>(heads * blocks), 0);
  std::mt19937_64 engine(seed);
  for (auto &entry : trial.keyIndices) // behind the counts: anything
    entry = static_cast<std::int32_t>(engine());
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t row = 0; row < forward.qBlocks; ++row) {
      auto list = static_cast<std::size_t>(head * forward.qBlocks + row);
      std::set<std::int32_t> listed;
      for (std::int64_t i = 0; i < forward.counts[list]; ++i)
        listed.insert(
            forward.indices[list * static_cast<std::size_t>(forward.capacity) +
                            static_cast<std::size_t>(i)]);
      for (std::int32_t block : listed) {
        if (block < 0 || block >= blocks)
          continue;
        auto key = static_cast<std::size_t>(head * blocks + block);
        trial.keyIndices[key * static_cast<std::size_t>(trial.keyCapacity) +
                         static_cast<std::size_t>(trial.keyCounts[key]++)] =
            static_cast<std::int32_t>(row);
      }
    }
}

/// Row blocks take as many places as their lists have entries, in order, until
/// no more fit; one whose list names what is no block takes none.
void givePlaces(BackwardTrial &trial, double share) {
  const Trial &forward = trial.forward;
  const std::int64_t heads = forward.q.batch * forward.q.heads;
  const std::int64_t blocks = forward.kvBlocks();
  auto listOf = [&](std::int64_t list) {
    const auto first = forward.indices.begin() +
                       static_cast<std::ptrdiff_t>(list * forward.capacity);
    return std::pair(first,
                     first + forward.counts[static_cast<std::size_t>(list)]);
  };
  auto takes = [&](std::int64_t list) {
    const auto [first, end] = listOf(list);
    const bool isKnown = std::all_of(first, end, [&](std::int32_t block) {
      return block >= 0 && block < blocks;
    });
    return std::pair(isKnown ? end - first : 0, isKnown);
  };
  std::int64_t most = 1;
  for (std::int64_t head = 0; head < heads; ++head) {
    std::int64_t sum = 0;
    for (std::int64_t row = 0; row < forward.qBlocks; ++row)
      sum += takes(head * forward.qBlocks + row).first;
    most = std::max(most, sum);
  }
  trial.keptBlocks = std::max<std::int64_t>(
      1, std::llround(share * static_cast<double>(most)));
  trial.rowPlaces.assign(static_cast<std::size_t>(heads * forward.qBlocks), -1);
  trial.unkept.assign(static_cast<std::size_t>(heads), 0);
  for (std::int64_t head = 0; head < heads; ++head) {
    std::int64_t before = 0;
    for (std::int64_t row = 0; row < forward.qBlocks; ++row) {
      const std::int64_t list = head * forward.qBlocks + row;
      const auto [count, isKnown] = takes(list);
      const bool fits = isKnown && before + count <= trial.keptBlocks;
      const bool isEmpty = forward.counts[static_cast<std::size_t>(list)] == 0;
      trial.rowPlaces[static_cast<std::size_t>(list)] =
          isEmpty ? 0
          : fits  ? static_cast<std::int32_t>(before)
                  : -1;
      trial.unkept[static_cast<std::size_t>(head)] += !isEmpty && !fits;
      before += count;
    }
  }
  trial.places.assign(trial.keyIndices.size(), -1);
  for (std::int64_t key = 0; key < heads * blocks; ++key)
    for (std::int64_t n = 0; n < trial.keyCounts[static_cast<std::size_t>(key)];
         ++n) {
      const auto at = static_cast<std::size_t>(key * trial.keyCapacity + n);
      const std::int64_t list =
          key / blocks * forward.qBlocks + trial.keyIndices[at];
      const std::int32_t place =
          trial.rowPlaces[static_cast<std::size_t>(list)];
      const auto [first, end] = listOf(list);
      const auto p =
          std::find(first, end, static_cast<std::int32_t>(key % blocks)) -
          first;
      trial.places[at] = place < 0 ? -1 : place + static_cast<std::int32_t>(p);
    }
}

} // namespace

BackwardTrial makeBackwardTrial(const Settings &settings,
                                const Settings &parameters,
                                std::uint64_t seed) {
  BackwardTrial trial;
  trial.forward = makeTrial(settings, parameters, seed);
  const Trial &forward = trial.forward;
  std::string layout = settings.text("layout", "bhld");
  auto like = [&](const HostTensor &tensor) {
    return makeTensor(tensor.batch, tensor.heads, tensor.length, tensor.dim,
                      layout);
  };
  trial.dO = like(forward.q), trial.dQ = like(forward.q);
  trial.dK = like(forward.k), trial.dV = like(forward.k);
  randomise(trial.dO, seed + 11, 1.0f, 0.125f, forward.isBfloat16);
  randomise(trial.forward.o, seed + 12, 1.0f, 0.0f, forward.isBfloat16);
  drawStatistics(trial, seed + 13, settings.number("dlse", 1) != 0);
  if (forward.hasLists) {
    invertLists(trial, seed + 14);
    givePlaces(trial, settings.real("kept", 1));
  } else
    trial.keyCapacity = 1, trial.keyIndices = {0}, trial.keyCounts = {0};
  return trial;
}

std::vector<double> referenceDq(const BackwardTrial &trial, std::int64_t batch,
                                std::int64_t head, std::int64_t row) {
  const Trial &t = trial.forward;
  std::int64_t kvHead = head / (t.q.heads / t.k.heads);
  Row q = readRow(t.q, batch, head, row, t.isBfloat16);
  Row dO = readRow(trial.dO, batch, head, row, t.isBfloat16);
  auto at = trial.statistic(batch, head, row);
  auto scale = static_cast<double>(t.softmaxScale);
  Row sum(q.size(), 0.0);
  for (std::int64_t key : visibleKeys(t, batch, head, row)) {
    Row k = readRow(t.k, batch, kvHead, key, t.isBfloat16);
    Row v = readRow(t.v, batch, kvHead, key, t.isBfloat16);
    double p = std::exp(scale * dot(q, k) - static_cast<double>(trial.lse[at]));
    addScaled(sum,
              scale * p * (dot(dO, v) - static_cast<double>(trial.delta[at])),
              k);
  }
  return sum;
}

ReferenceKey referenceKey(const BackwardTrial &trial, std::int64_t batch,
                          std::int64_t kvHead, std::int64_t key) {
  const Trial &t = trial.forward;
  std::int64_t group = t.q.heads / t.k.heads;
  Row k = readRow(t.k, batch, kvHead, key, t.isBfloat16);
  Row v = readRow(t.v, batch, kvHead, key, t.isBfloat16);
  auto scale = static_cast<double>(t.softmaxScale);
  auto block = static_cast<std::int32_t>(key / t.maskBlockKv);
  ReferenceKey result{Row(k.size(), 0.0), Row(k.size(), 0.0)};
  for (std::int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (std::int64_t row = 0; row < t.q.length; ++row) {
      if (t.causal && key > row + t.k.length - t.q.length)
        continue;
      if (t.hasLists) {
        auto list = static_cast<std::size_t>(
            (batch * t.q.heads + head) * t.qBlocks + row / t.maskBlockQ);
        auto first = t.indices.begin() +
                     static_cast<std::ptrdiff_t>(
                         list * static_cast<std::size_t>(t.capacity));
        auto end = first + t.counts[list];
        if (std::find(first, end, block) == end) {
          row = (row / t.maskBlockQ + 1) * t.maskBlockQ - 1;
          continue;
        }
      }
      Row q = readRow(t.q, batch, head, row, t.isBfloat16);
      Row dO = readRow(trial.dO, batch, head, row, t.isBfloat16);
      auto at = trial.statistic(batch, head, row);
      double p =
          std::exp(scale * dot(q, k) - static_cast<double>(trial.lse[at]));
      addScaled(result.dv, p, dO);
      addScaled(result.dk,
                scale * p * (dot(dO, v) - static_cast<double>(trial.delta[at])),
                q);
    }
  return result;
}

std::pair<double, double> referenceDelta(const BackwardTrial &trial,
                                         std::int64_t batch, std::int64_t head,
                                         std::int64_t row) {
  const Trial &t = trial.forward;
  Row o = readRow(t.o, batch, head, row, t.isBfloat16);
  Row dO = readRow(trial.dO, batch, head, row, t.isBfloat16);
  auto dLse =
      static_cast<double>(trial.dLse[trial.statistic(batch, head, row)]);
  double sum = -dLse, magnitude = std::fabs(dLse);
  for (std::size_t c = 0; c < o.size(); ++c)
    sum += o[c] * dO[c], magnitude += std::fabs(o[c] * dO[c]);
  return {sum, magnitude};
}

} // namespace spargejit::gpu_trial

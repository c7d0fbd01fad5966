// SPDX-License-Identifier: Apache-2.0
//
// Inputs, inverted lists and reference rows of a backward trial.
#include "tests/gpu/kernels/BackwardTrial.h"

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

void drawStatistics(BackwardTrial &trial, std::uint64_t seed) {
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
      trial.delta[at] = uniform(engine);
      trial.dLse[at] = uniform(engine);
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
  drawStatistics(trial, seed + 13);
  if (forward.hasLists)
    invertLists(trial, seed + 14);
  else
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

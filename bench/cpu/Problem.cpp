// SPDX-License-Identifier: Apache-2.0
//
// Problem.h.
#include "bench/cpu/Problem.h"

#include "runtime/base/DataTypeConversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace spargejit::bench {

namespace {

constexpr std::int64_t kStretchTokens = 96;
constexpr std::size_t kNoiseNumbers = 1 << 16;

/// A table of normal numbers, read from places that a counter hash gives: fast
/// enough that inputs of 100 MB are made in a fraction of a second.
class Noise {
public:
  explicit Noise(std::uint64_t seed) : table_(kNoiseNumbers) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<float> normal;
    for (float &value : table_)
      value = normal(generator);
  }
  float next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return table_[state_ >> 48];
  }
  void restart(std::uint64_t at) { state_ = at; }

private:
  std::vector<float> table_;
  std::uint64_t state_ = 1;
};

void fill(const Tensor &tensor, float ofCentre, float ofNoise, Noise &noise,
          std::uint64_t centreSeed) {
  const TensorView &view = tensor.view();
  const std::int64_t headDim = view.sizes[3];
  const std::int64_t rows = view.elementCount() / headDim;
  std::vector<float> centre(static_cast<std::size_t>(headDim));
  std::vector<float> row(centre.size());
  Noise centres(centreSeed);
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % kStretchTokens == 0) {
      // Only 16 different ones, so that far stretches resemble each other.
      centres.restart(static_cast<std::uint64_t>(i / kStretchTokens % 16) + 1);
      for (float &value : centre)
        value = centres.next();
    }
    for (std::size_t d = 0; d < row.size(); ++d)
      row[d] = ofCentre * centre[d] + ofNoise * noise.next();
    convertFromFloat(
        row, view.dtype,
        tensor.data<char>() +
            i * headDim * static_cast<std::int64_t>(dataTypeSize(view.dtype)));
  }
}

} // namespace

Problem::Problem(DataType dtype, std::int64_t heads, std::int64_t length,
                 std::int64_t headDim, int threads, std::uint64_t seed)
    : heads_(heads), length_(length), headDim_(headDim), threads_(threads) {
  for (Tensor *tensor : {&q_, &k_, &v_, &o_})
    *tensor = Tensor::allocate(dtype, {1, heads, length, headDim}).value();
  Noise noise(seed);
  fill(q_, 0.7F, 0.7F, noise, seed);
  fill(k_, 0.7F, 0.7F, noise, seed);
  fill(v_, 0.0F, 1.0F, noise, seed);
  // Touches the memory, so that no measured run does so first.
  std::memset(o_.data<char>(), 0,
              static_cast<std::size_t>(o_.view().elementCount()) *
                  dataTypeSize(dtype));
}

AttentionConfig Problem::config(const std::string &method) const {
  AttentionConfig config;
  config.method = method;
  config.threads = threads_;
  return config;
}

void Problem::attend(const AttentionConfig &config,
                     const AttentionOutputs &outputs) const {
  attentionInto(o_.view(), q_.view(), k_.view(), v_.view(), config, outputs)
      .throwIfFailed();
}

BlockLists Problem::select(const AttentionConfig &config) const {
  return selectBlocks(q_.view(), k_.view(), config).value();
}

AttentionForward Problem::forward(const AttentionConfig &config) const {
  return attentionForward(q_.view(), k_.view(), v_.view(), config).value();
}

void Problem::backward(const AttentionConfig &config,
                       const AttentionForward &forward) {
  if (gradients_.dq.empty())
    gradients_ = attentionBackward(q_.view(), k_.view(), v_.view(),
                                   forward.saved(), v_.view(), config)
                     .value();
  attentionBackwardInto(
      {gradients_.dq.view(), gradients_.dk.view(), gradients_.dv.view()},
      q_.view(), k_.view(), v_.view(), forward.saved(), v_.view(), config)
      .throwIfFailed();
}

void Problem::prepare(const AttentionConfig &config) const {
  spargejit::prepare(q_.view(), k_.view(), v_.view(), config).throwIfFailed();
}

double Problem::denseFlops() const {
  return 4.0 * static_cast<double>(heads_) * static_cast<double>(length_) *
         static_cast<double>(length_) * static_cast<double>(headDim_);
}

AttentionConfig withLists(AttentionConfig config, const BlockLists &lists) {
  config.method = "block_sparse";
  config.lists = &lists;
  return config;
}

double topKForDensity(double density, std::int64_t length,
                      std::int64_t maskBlockKv) {
  auto blocks = static_cast<double>((length + maskBlockKv - 1) / maskBlockKv);
  double kept = std::max(1.0, std::round(density * blocks));
  // The half keeps trunc(topK · blocks) away from rounding errors.
  return std::min(1.0, (kept + 0.5) / blocks);
}

double visitedPairs(const BlockLists &lists) {
  const auto *counts = lists.counts.data<std::int32_t>();
  return std::accumulate(counts, counts + lists.counts.view().elementCount(),
                         0.0);
}

int coreCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

DataType dataTypeFromName(const std::string &name) {
  for (DataType type :
       {DataType::Float32, DataType::BFloat16, DataType::Float16})
    if (name == dataTypeName(type))
      return type;
  throw std::invalid_argument(fmt::format(
      "--dtype: expected float32, bfloat16 or float16, got {}", name));
}

} // namespace spargejit::bench

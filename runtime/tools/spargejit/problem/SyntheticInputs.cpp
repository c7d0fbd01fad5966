// SPDX-License-Identifier: Apache-2.0
//
// SyntheticInputs.h: the formula there, one token at a time.
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"

#include "runtime/base/DataTypeConversion.h"
#include "runtime/tools/spargejit/problem/ParallelFor.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace spargejit::problem {

namespace {

constexpr std::int64_t kClusters = 12;
constexpr std::uint64_t kShortestStretch = 64;
constexpr std::uint64_t kStretchSpread = 385; // 64 … 448 tokens
constexpr double kDriftTokens = 192;

/// splitmix64's finaliser: each counter gives an independent number.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

/// A stream of numbers addressed by position.
class Stream {
public:
  Stream(std::uint64_t seed, std::uint64_t purpose)
      : base_(scramble(scramble(seed) ^ purpose)) {}
  std::uint64_t bits(std::uint64_t index) const {
    return scramble(base_ + index);
  }
  /// In [0, 1).
  double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  /// Mean 0, variance 1: four 16-bit uniform numbers, each of variance 1/12.
  float normal(std::uint64_t index) const {
    std::uint64_t raw = bits(index);
    std::uint64_t sum = (raw & 0xffff) + (raw >> 16 & 0xffff) +
                        (raw >> 32 & 0xffff) + (raw >> 48);
    return (static_cast<float>(sum) * 0x1p-16F - 2.0F + 0x1p-15F) *
           std::numbers::sqrt3_v<float>;
  }

private:
  std::uint64_t base_;
};

/// Which number of `Stream` serves what.
enum Purpose : std::uint64_t {
  kDriftQk,
  kCentreQk,
  kDriftV,
  kCentreV,
  kStretches,
  kNoiseQ,
  kNoiseK,
  kNoiseV,
  kPurposes,
};

/// Everything about one (batch, head) that is not noise.
struct Scene {
  std::vector<double> frequencyQk, phaseQk, frequencyV, phaseV; // [headDim]
  std::vector<float> centreQk, centreV; // [kClusters, headDim]
  std::vector<std::int32_t> cluster;    // [length]
};

Scene makeScene(const SyntheticShape &shape, std::uint64_t seed,
                std::uint64_t head) {
  Scene scene;
  auto stream = [&](Purpose purpose) {
    return Stream(seed, head * kPurposes + purpose);
  };
  auto drift = [&](Purpose purpose, std::vector<double> &frequency,
                   std::vector<double> &phase) {
    Stream numbers = stream(purpose);
    for (std::int64_t d = 0; d < shape.headDim; ++d) {
      auto index = static_cast<std::uint64_t>(d) * 2;
      frequency.push_back(numbers.normal(index) / kDriftTokens);
      phase.push_back(numbers.uniform(index + 1) * 2 * std::numbers::pi);
    }
  };
  auto centres = [&](Purpose purpose, std::vector<float> &centre) {
    Stream numbers = stream(purpose);
    for (std::int64_t i = 0; i < kClusters * shape.headDim; ++i)
      centre.push_back(numbers.normal(static_cast<std::uint64_t>(i)));
  };
  drift(kDriftQk, scene.frequencyQk, scene.phaseQk);
  drift(kDriftV, scene.frequencyV, scene.phaseV);
  centres(kCentreQk, scene.centreQk);
  centres(kCentreV, scene.centreV);

  Stream stretches = stream(kStretches);
  std::uint64_t drawn = 0;
  while (static_cast<std::int64_t>(scene.cluster.size()) < shape.length) {
    std::uint64_t tokens =
        kShortestStretch + stretches.bits(drawn) % kStretchSpread;
    auto id = static_cast<std::int32_t>(stretches.bits(drawn + 1) % kClusters);
    drawn += 2;
    for (; tokens > 0 &&
           static_cast<std::int64_t>(scene.cluster.size()) < shape.length;
         --tokens)
      scene.cluster.push_back(id);
  }
  return scene;
}

float wave(double frequency, double phase, std::int64_t token) {
  // The angle in double: float would lose the phase of late tokens.
  return std::numbers::sqrt2_v<float> *
         static_cast<float>(
             std::cos(frequency * static_cast<double>(token) + phase));
}

} // namespace

Result<SyntheticTensors> makeSyntheticInputs(const SyntheticShape &shape,
                                             DataType dtype, std::uint64_t seed,
                                             int threads) {
  SyntheticTensors tensors;
  for (Tensor *tensor : {&tensors.q, &tensors.k, &tensors.v}) {
    Result<Tensor> memory = Tensor::allocate(
        dtype, {shape.batch, shape.heads, shape.length, shape.headDim});
    if (!memory)
      return memory.status();
    *tensor = *std::move(memory);
  }

  const std::int64_t dim = shape.headDim;
  const auto scale =
      static_cast<float>(std::pow(128.0 / static_cast<double>(dim), 0.25));
  for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
    const auto headKey = static_cast<std::uint64_t>(head);
    const Scene scene = makeScene(shape, seed, headKey);
    const Stream noiseQ(seed, headKey * kPurposes + kNoiseQ);
    const Stream noiseK(seed, headKey * kPurposes + kNoiseK);
    const Stream noiseV(seed, headKey * kPurposes + kNoiseV);
    parallelFor(shape.length, threadCount(threads), [&](int, std::int64_t t) {
      std::vector<float> rows(static_cast<std::size_t>(3 * dim));
      float *q = rows.data();
      float *k = q + dim;
      float *v = k + dim;
      const std::int64_t centre =
          scene.cluster[static_cast<std::size_t>(t)] * dim;
      for (std::int64_t d = 0; d < dim; ++d) {
        const auto channel = static_cast<std::size_t>(d);
        const auto ofCentre = static_cast<std::size_t>(centre + d);
        const auto index = static_cast<std::uint64_t>(t * dim + d);
        float shared =
            0.8F * wave(scene.frequencyQk[channel], scene.phaseQk[channel], t) +
            0.75F * scene.centreQk[ofCentre];
        q[d] = scale * (shared + 0.6F * noiseQ.normal(index));
        k[d] = scale * (shared + 0.6F * noiseK.normal(index));
        v[d] =
            0.7F * wave(scene.frequencyV[channel], scene.phaseV[channel], t) +
            0.5F * scene.centreV[ofCentre] + 0.5F * noiseV.normal(index);
      }
      const std::size_t first =
          static_cast<std::size_t>((head * shape.length + t) * dim) *
          dataTypeSize(dtype);
      const auto elements = static_cast<std::size_t>(dim);
      convertFromFloat({q, elements}, dtype, tensors.q.data<char>() + first);
      convertFromFloat({k, elements}, dtype, tensors.k.data<char>() + first);
      convertFromFloat({v, elements}, dtype, tensors.v.data<char>() + first);
    });
  }
  return tensors;
}

} // namespace spargejit::problem

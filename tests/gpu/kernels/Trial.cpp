// SPDX-License-Identifier: Apache-2.0
//
// Inputs, lists and reference rows of a kernel trial.
#include "tests/gpu/kernels/Trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

namespace spargejit::gpu_trial {

namespace {

constexpr std::uint16_t kGuard = 0xFFFF; // NaN in bfloat16 and in float16
constexpr std::int64_t kGuardElements = 4096;

/// The list of one row of blocks; `kind` as in makeTrial.
std::vector<std::int32_t> makeList(const std::string &kind, std::int64_t blocks,
                                   double density, double spread,
                                   std::mt19937_64 &engine) {
  double wanted = density * static_cast<double>(blocks);
  if (kind == "unequal") // log-normal with this coefficient of variation
    wanted *= std::lognormal_distribution<double>(
        -0.5 * std::log1p(spread * spread),
        std::sqrt(std::log1p(spread * spread)))(engine);
  auto count = std::clamp<std::int64_t>(std::llround(wanted), 1, blocks);
  if (kind == "all")
    count = blocks;
  if (kind == "empty" && engine() % 3 == 0)
    count = 0;
  std::vector<std::int32_t> list(static_cast<std::size_t>(blocks));
  std::iota(list.begin(), list.end(), 0);
  std::shuffle(list.begin(), list.end(), engine);
  if (kind == "ragged" && count > 0) // the last block, anywhere in the list
    std::iter_swap(std::find(list.begin(), list.end(),
                             static_cast<std::int32_t>(blocks - 1)),
                   list.begin() +
                       static_cast<std::ptrdiff_t>(
                           engine() % static_cast<std::uint64_t>(count)));
  list.resize(static_cast<std::size_t>(count));
  if (kind == "random" || kind == "unequal")
    std::sort(list.begin(), list.end());
  return list;
}

void makeLists(Trial &trial, const Settings &settings, std::uint64_t seed) {
  std::string kind = settings.text("lists", "random");
  std::int64_t blocks = trial.kvBlocks();
  bool garbage = kind == "garbage";
  trial.qBlocks = (trial.q.length + trial.maskBlockQ - 1) / trial.maskBlockQ;
  trial.capacity = blocks + (garbage ? 3 : 0);
  std::int64_t rows = trial.q.batch * trial.q.heads * trial.qBlocks;
  trial.indices.assign(static_cast<std::size_t>(rows * trial.capacity), -1);
  trial.counts.assign(static_cast<std::size_t>(rows), 0);
  forAll(rows, [&](std::int64_t row) {
    std::mt19937_64 engine(seed + 31 * static_cast<std::uint64_t>(row) + 7);
    std::vector<std::int32_t> list =
        makeList(kind, blocks, settings.real("density", 0.05),
                 settings.real("spread", 0.5), engine);
    if (garbage) { // entries that are no blocks, to be skipped
      list.push_back(-5);
      list.push_back(static_cast<std::int32_t>(blocks));
      list.push_back(std::numeric_limits<std::int32_t>::max());
      std::shuffle(list.begin(), list.end(), engine);
    }
    trial.counts[static_cast<std::size_t>(row)] =
        static_cast<std::int32_t>(list.size());
    auto *out = &trial.indices[static_cast<std::size_t>(row * trial.capacity)];
    std::copy(list.begin(), list.end(), out);
    // Whatever stands behind the count is nobody's business.
    for (std::int64_t i = static_cast<std::int64_t>(list.size());
         i < trial.capacity; ++i)
      out[i] = static_cast<std::int32_t>(engine());
  });
}

} // namespace

HostTensor makeTensor(std::int64_t batch, std::int64_t heads,
                      std::int64_t length, std::int64_t dim,
                      const std::string &layout) {
  HostTensor tensor;
  tensor.batch = batch, tensor.heads = heads;
  tensor.length = length, tensor.dim = dim;
  tensor.first = kGuardElements;
  if (layout == "blhd") {
    // One unused head between the rows.
    tensor.strideHead = dim;
    tensor.strideRow = (heads + 1) * dim;
    tensor.strideBatch = length * tensor.strideRow;
  } else {
    tensor.strideRow = dim;
    tensor.strideHead = length * dim;
    tensor.strideBatch = heads * tensor.strideHead;
  }
  std::int64_t elements = batch * tensor.strideBatch;
  tensor.buffer.assign(static_cast<std::size_t>(elements + 2 * kGuardElements),
                       kGuard);
  return tensor;
}

/// Normal numbers of mean `mean`.
Written writtenOf(const HostTensor &tensor,
                  const std::vector<std::uint16_t> &got) {
  std::vector<bool> isOutput(got.size(), false);
  for (std::int64_t b = 0; b < tensor.batch; ++b)
    for (std::int64_t h = 0; h < tensor.heads; ++h)
      for (std::int64_t row = 0; row < tensor.length; ++row)
        std::fill_n(isOutput.begin() +
                        static_cast<std::ptrdiff_t>(tensor.at(b, h, row)),
                    tensor.dim, true);
  Written written;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool isPoison = got[i] == 0xFFFF;
    written.unwritten += isOutput[i] && isPoison;
    written.outside += !isOutput[i] && !isPoison;
  }
  return written;
}

void randomise(HostTensor &tensor, std::uint64_t seed, float deviation,
               float mean, bool isBfloat16) {
  forAll(tensor.batch * tensor.heads, [&](std::int64_t head) {
    std::mt19937_64 engine(seed + 977 * static_cast<std::uint64_t>(head));
    std::normal_distribution<float> normal(mean, deviation);
    for (std::int64_t row = 0; row < tensor.length; ++row) {
      std::int64_t first =
          tensor.at(head / tensor.heads, head % tensor.heads, row);
      for (std::int64_t c = 0; c < tensor.dim; ++c)
        tensor.buffer[static_cast<std::size_t>(first + c)] =
            fromFloat(normal(engine), isBfloat16);
    }
  });
}

Settings Settings::parse(const std::string &line) {
  Settings settings;
  std::istringstream stream(line);
  for (std::string word; stream >> word;)
    if (std::size_t equals = word.find('='); equals != std::string::npos)
      settings.words[word.substr(0, equals)] = word.substr(equals + 1);
  return settings;
}

std::string Settings::text(const std::string &key,
                           const std::string &otherwise) const {
  auto found = words.find(key);
  return found == words.end() ? otherwise : found->second;
}
std::int64_t Settings::number(const std::string &key,
                              std::int64_t otherwise) const {
  auto found = words.find(key);
  return found == words.end() ? otherwise : std::stoll(found->second);
}
double Settings::real(const std::string &key, double otherwise) const {
  auto found = words.find(key);
  return found == words.end() ? otherwise : std::stod(found->second);
}

float toFloat(std::uint16_t bits, bool isBfloat16) {
  if (isBfloat16) {
    std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float magnitude = exponent == 31 ? (mantissa ? std::nanf("") : INFINITY)
                    : exponent ? std::ldexp(static_cast<float>(1024 + mantissa),
                                            exponent - 25)
                               : std::ldexp(static_cast<float>(mantissa), -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::uint16_t fromFloat(float value, bool isBfloat16) {
  if (isBfloat16) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  // Through the nearest multiple of the float16 spacing at this magnitude.
  float magnitude = std::fabs(value);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  int step = std::max(exponent - 11, -24);
  auto units =
      static_cast<std::int64_t>(std::nearbyint(std::ldexp(magnitude, -step)));
  if (units == 2048)
    units = 1024, ++step;
  std::uint16_t bits =
      units < 1024
          ? static_cast<std::uint16_t>(units)
          : static_cast<std::uint16_t>((step + 25) << 10 | (units - 1024));
  return value < 0 ? bits | 0x8000 : bits;
}

double Trial::visitedPairs() const {
  double pairs = 0;
  for (std::int64_t head = 0; head < q.batch * q.heads; ++head)
    for (std::int64_t row = 0; row < qBlocks; ++row) {
      auto rows = std::min(maskBlockQ, q.length - row * maskBlockQ);
      std::int64_t keys = k.length;
      if (hasLists)
        keys = maskBlockKv *
               counts[static_cast<std::size_t>(head * qBlocks + row)];
      pairs += static_cast<double>(rows) * static_cast<double>(keys);
    }
  return pairs;
}

Trial makeTrial(const Settings &settings, const Settings &parameters,
                std::uint64_t seed) {
  Trial trial;
  trial.isBfloat16 = parameters.text("elem", "bfloat16") == "bfloat16";
  trial.causal = parameters.number("causal", 0) != 0;
  trial.hasLists = parameters.number("has_lists", 1) != 0;
  trial.maskBlockQ = parameters.number("mask_block_q", 128);
  trial.maskBlockKv = parameters.number("mask_block_kv", 64);
  std::int64_t dim = parameters.number("head_dim", 128);
  std::int64_t batch = settings.number("batch", 1);
  std::int64_t qHeads = settings.number("q_heads", 2);
  std::int64_t kvHeads = settings.number("kv_heads", qHeads);
  std::int64_t qLen = settings.number("q_len", 1024);
  std::int64_t kvLen = settings.number("kv_len", qLen);
  std::string layout = settings.text("layout", "bhld");
  trial.softmaxScale = 1.0f / std::sqrt(static_cast<float>(dim));
  trial.q = makeTensor(batch, qHeads, qLen, dim, layout);
  trial.k = makeTensor(batch, kvHeads, kvLen, dim, layout);
  trial.v = makeTensor(batch, kvHeads, kvLen, dim, layout);
  trial.o = makeTensor(batch, qHeads, qLen, dim, layout);
  auto deviation = static_cast<float>(settings.real("scale", 1.0));
  randomise(trial.q, seed + 1, deviation, 0.0f, trial.isBfloat16);
  randomise(trial.k, seed + 2, 1.0f, 0.0f, trial.isBfloat16);
  // A mean other than 0 shows errors of the sum that 0 would hide.
  randomise(trial.v, seed + 3, 1.0f,
            static_cast<float>(settings.real("mean", 0.25)), trial.isBfloat16);
  makeLists(trial, settings, seed + 4);
  return trial;
}

std::vector<std::int64_t> visibleKeys(const Trial &trial, std::int64_t batch,
                                      std::int64_t head, std::int64_t row) {
  std::int64_t limit = trial.k.length;
  if (trial.causal)
    limit = std::min(limit, row + trial.k.length - trial.q.length + 1);
  std::vector<std::int64_t> keys;
  if (!trial.hasLists) {
    for (std::int64_t key = 0; key < limit; ++key)
      keys.push_back(key);
  } else {
    std::int64_t list =
        (batch * trial.q.heads + head) * trial.qBlocks + row / trial.maskBlockQ;
    for (std::int64_t i = 0; i < trial.counts[static_cast<std::size_t>(list)];
         ++i) {
      std::int64_t block =
          trial.indices[static_cast<std::size_t>(list * trial.capacity + i)];
      if (block < 0 || block >= trial.kvBlocks())
        continue;
      for (std::int64_t j = 0; j < trial.maskBlockKv; ++j)
        if (block * trial.maskBlockKv + j < limit)
          keys.push_back(block * trial.maskBlockKv + j);
    }
  }
  return keys;
}

ReferenceRow referenceRow(const Trial &trial, std::int64_t batch,
                          std::int64_t head, std::int64_t row) {
  std::int64_t kvHead = head / (trial.q.heads / trial.k.heads);
  std::vector<std::int64_t> keys = visibleKeys(trial, batch, head, row);
  auto value = [&](const HostTensor &tensor, std::int64_t b, std::int64_t h,
                   std::int64_t r, std::int64_t c) {
    return static_cast<double>(
        toFloat(tensor.buffer[static_cast<std::size_t>(tensor.at(b, h, r) + c)],
                trial.isBfloat16));
  };
  std::int64_t dim = trial.q.dim;
  ReferenceRow result;
  result.o.assign(static_cast<std::size_t>(dim), 0.0);
  std::vector<double> scores;
  double most = -std::numeric_limits<double>::infinity();
  for (std::int64_t key : keys) {
    double sum = 0;
    for (std::int64_t c = 0; c < dim; ++c)
      sum += value(trial.q, batch, head, row, c) *
             value(trial.k, batch, kvHead, key, c);
    scores.push_back(sum * static_cast<double>(trial.softmaxScale));
    most = std::max(most, scores.back());
  }
  double total = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    double weight = std::exp(scores[i] - most);
    total += weight;
    for (std::int64_t c = 0; c < dim; ++c)
      result.o[static_cast<std::size_t>(c)] +=
          weight * value(trial.v, batch, kvHead, keys[i], c);
  }
  if (!keys.empty())
    for (double &element : result.o)
      element /= total;
  result.lse = keys.empty() ? -std::numeric_limits<double>::infinity()
                            : most + std::log(total);
  return result;
}

} // namespace spargejit::gpu_trial

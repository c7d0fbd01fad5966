// SPDX-License-Identifier: Apache-2.0
//
// Inputs of 8 bits and their image, element by element.
#include "tests/gpu/kernels/QuantisedTrial.h"

#include <array>
#include <cmath>

namespace spargejit::gpu_trial {

namespace {

constexpr double kUnitsPerScore = 8 * 1.4426950408889634;
/// The key in place p of sixteen (PTX ISA, wgmma: fragments of D and of 8-bit
/// A), and the bytes of a core matrix.
constexpr std::array<std::int64_t, 16> kKeyInPlace = {
    0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
constexpr std::int64_t kCoreBytes = 128, kSumRows = 8;

float elementOf(const Trial &trial, const HostTensor &tensor, std::int64_t head,
                std::int64_t row, std::int64_t column) {
  std::int64_t place =
      tensor.at(head / tensor.heads, head % tensor.heads, row) + column;
  return toFloat(tensor.buffer[static_cast<std::size_t>(place)],
                 trial.isBfloat16);
}

/// The largest absolute element of a head, or of one of its columns.
float largest(const Trial &trial, const HostTensor &tensor, std::int64_t head,
              std::int64_t firstColumn, std::int64_t columns) {
  float most = 0;
  for (std::int64_t row = 0; row < tensor.length; ++row)
    for (std::int64_t c = firstColumn; c < firstColumn + columns; ++c)
      most = std::max(most, std::fabs(elementOf(trial, tensor, head, row, c)));
  return most;
}

/// The head's elements times `factor`, to `bytes` and, as they are then, into
/// `rounded`.
void quantiseHead(const Trial &trial, const HostTensor &tensor,
                  std::int64_t head, float factor,
                  std::vector<std::uint8_t> &bytes, HostTensor &rounded) {
  for (std::int64_t row = 0; row < tensor.length; ++row)
    for (std::int64_t c = 0; c < tensor.dim; ++c) {
      std::uint8_t bits =
          toEightBits(elementOf(trial, tensor, head, row, c) * factor);
      bytes[static_cast<std::size_t>((head * tensor.length + row) * tensor.dim +
                                     c)] = bits;
      std::int64_t place =
          tensor.at(head / tensor.heads, head % tensor.heads, row) + c;
      rounded.buffer[static_cast<std::size_t>(place)] =
          fromFloat(fromEightBits(bits), trial.isBfloat16);
    }
}

void quantiseValues(const Trial &trial, std::int64_t head,
                    QuantisedTrial &result) {
  const HostTensor &v = trial.v;
  std::int64_t dim = v.dim, cores = result.valueDim / 8 + 1;
  auto imageOf = [&](std::int64_t part) {
    return &result.v[static_cast<std::size_t>(
        (part * v.batch * v.heads + head) * result.imageRows * kCoreBytes)];
  };
  float *factors = &result.vFactor[static_cast<std::size_t>(head * dim)];
  for (std::int64_t c = 0; c < dim; ++c) {
    float most = largest(trial, v, head, c, 1);
    factors[c] = most > 0 ? 448.0f / most : 1.0f;
    result.vScale[static_cast<std::size_t>(head * dim + c)] = 1 / factors[c];
  }
  for (std::int64_t key = 0; key < v.length; ++key) {
    std::int64_t place = 0;
    while (kKeyInPlace[static_cast<std::size_t>(place)] != key % 16)
      ++place;
    const std::int64_t group = key / 16 * cores * kCoreBytes + place;
    for (std::int64_t c = 0; c < dim; ++c) {
      std::uint8_t bits =
          toEightBits(elementOf(trial, v, head, key, c) * factors[c]);
      imageOf(c / result.valueDim)[group + c % result.valueDim * 16] = bits;
      std::int64_t at = v.at(head / v.heads, head % v.heads, key) + c;
      result.rounded.v.buffer[static_cast<std::size_t>(at)] =
          fromFloat(fromEightBits(bits), trial.isBfloat16);
    }
    for (std::int64_t part = 0; part < dim / result.valueDim; ++part)
      for (std::int64_t c = 0; c < kSumRows; ++c)
        imageOf(part)[group + (result.valueDim + c) * 16] = toEightBits(1.0f);
  }
}

} // namespace

float fromEightBits(std::uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float magnitude =
      exponent == 15 && mantissa == 7 ? std::nanf("")
      : exponent ? std::ldexp(static_cast<float>(8 + mantissa), exponent - 10)
                 : std::ldexp(static_cast<float>(mantissa), -9);
  return bits & 0x80 ? -magnitude : magnitude;
}

std::uint8_t toEightBits(float value) {
  std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  float magnitude = std::fabs(value);
  if (std::isnan(value))
    return 0x7F;
  if (magnitude >= 448)
    return sign | 0x7E;
  // In units of the spacing at this magnitude.
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  int step = std::max(exponent - 4, -9);
  auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));
  if (units == 16)
    units = 8, ++step;
  int code = units < 8 ? units : (step + 10) << 3 | (units - 8);
  return sign | static_cast<std::uint8_t>(code);
}

QuantisedTrial quantise(const Trial &trial, std::int64_t valueDim) {
  QuantisedTrial result;
  result.valueDim = valueDim;
  result.rounded = trial;
  result.rounded.softmaxScale = static_cast<float>(1 / kUnitsPerScore);
  const HostTensor &q = trial.q, &k = trial.k, &v = trial.v;
  auto elements = [](const HostTensor &tensor) {
    return static_cast<std::size_t>(tensor.batch * tensor.heads *
                                    tensor.length * tensor.dim);
  };
  result.q.resize(elements(q));
  result.k.resize(elements(k));
  result.imageRows = (v.length + 15) / 16 * (valueDim / 8 + 1);
  result.v.assign(static_cast<std::size_t>(v.dim / valueDim * v.batch *
                                           v.heads * result.imageRows *
                                           kCoreBytes),
                  0);
  result.qFactor.resize(static_cast<std::size_t>(q.batch * q.heads));
  result.kFactor.resize(static_cast<std::size_t>(k.batch * k.heads));
  result.vFactor.resize(static_cast<std::size_t>(v.batch * v.heads * v.dim));
  result.vScale.resize(result.vFactor.size());
  double scale = kUnitsPerScore * static_cast<double>(trial.softmaxScale);
  std::int64_t perKv = q.heads / k.heads;
  forAll(k.batch * k.heads, [&](std::int64_t kvHead) {
    std::int64_t firstQ = kvHead / k.heads * q.heads + kvHead % k.heads * perKv;
    float mostQ = 0;
    for (std::int64_t head = firstQ; head < firstQ + perKv; ++head)
      mostQ = std::max(mostQ, largest(trial, q, head, 0, q.dim));
    float mostK = largest(trial, k, kvHead, 0, k.dim);
    // Both reach equally far.
    double ratio =
        static_cast<double>(mostK) / (static_cast<double>(mostQ) * scale);
    double root = ratio > 0 && std::isfinite(ratio) ? std::sqrt(ratio) : 1.0;
    auto kFactor = static_cast<float>(1 / root);
    auto qFactor = static_cast<float>(scale * root);
    result.kFactor[static_cast<std::size_t>(kvHead)] = kFactor;
    quantiseHead(trial, k, kvHead, kFactor, result.k, result.rounded.k);
    for (std::int64_t head = firstQ; head < firstQ + perKv; ++head) {
      result.qFactor[static_cast<std::size_t>(head)] = qFactor;
      quantiseHead(trial, q, head, qFactor, result.q, result.rounded.q);
    }
    quantiseValues(trial, kvHead, result);
  });
  return result;
}

ReferenceRow referenceRow(const QuantisedTrial &trial, std::int64_t batch,
                          std::int64_t head, std::int64_t row) {
  const Trial &rounded = trial.rounded;
  ReferenceRow result = referenceRow(rounded, batch, head, row);
  std::int64_t kvHead =
      batch * rounded.k.heads + head / (rounded.q.heads / rounded.k.heads);
  for (std::int64_t c = 0; c < rounded.v.dim; ++c)
    result.o[static_cast<std::size_t>(c)] *= static_cast<double>(
        trial.vScale[static_cast<std::size_t>(kvHead * rounded.v.dim + c)]);
  return result;
}

} // namespace spargejit::gpu_trial

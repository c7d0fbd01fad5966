// SPDX-License-Identifier: Apache-2.0
//
// Conversions by integer arithmetic, the same on every CPU.
#include "runtime/base/DataTypeConversion.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace spargejit {

std::uint16_t bfloat16FromFloat(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // NaN: keep the sign, make it quiet
    return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  // Adding half a unit, less one where the kept part is even, rounds to
  // nearest even; the carry runs into the exponent and up to infinity.
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

float floatFromBfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float16FromFloat(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) { // NaN
    half = 0x7e00u | ((magnitude >> 13) & 0x01ffu);
  } else if (magnitude >= 0x477ff000u) { // 65520 and above round to infinity
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) { // normal: 2^-14 and above
    magnitude += 0x0fffu + ((magnitude >> 13) & 1u);
    half = (magnitude - 0x38000000u) >> 13;
  } else {
    // Subnormal: adding 0.5 leaves the value, in units of 2^-24 and rounded to
    // nearest even by the adder, in the low bits of the significand.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float floatFromFloat16(std::uint16_t bits) {
  std::uint32_t sign = (bits & 0x8000u) << 16;
  std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u |
                                ((magnitude & 0x03ffu) << 13));
  // 2^112 moves the exponent from float16's bias (15) to float32's (127) and
  // normalises subnormal numbers on the way; exact.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

void convertFromFloat(std::span<const float> values, DataType dtype,
                      void *out) {
  if (dtype == DataType::Float32) {
    std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  assert((dtype == DataType::BFloat16 || dtype == DataType::Float16) &&
         "not a floating-point type");
  auto *to = static_cast<std::uint16_t *>(out);
  for (float value : values)
    *to++ = dtype == DataType::BFloat16 ? bfloat16FromFloat(value)
                                        : float16FromFloat(value);
}

void convertToFloat(const void *data, DataType dtype, std::span<float> out) {
  if (dtype == DataType::Float32) {
    std::memcpy(out.data(), data, out.size_bytes());
    return;
  }
  assert((dtype == DataType::BFloat16 || dtype == DataType::Float16) &&
         "not a floating-point type");
  const auto *from = static_cast<const std::uint16_t *>(data);
  for (float &value : out) {
    value = dtype == DataType::BFloat16 ? floatFromBfloat16(*from)
                                        : floatFromFloat16(*from);
    ++from;
  }
}

} // namespace spargejit

// SPDX-License-Identifier: Apache-2.0
//
// Conversions by the definition of each format (IEEE 754-2019 section 3.4;
// bfloat16 is the upper half of a binary32).
#include "tests/reference/Elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace spargejit::reference {
namespace {

/// Bytes of one element, without the product's table.
std::int64_t elementSize(DataType type) {
  switch (type) {
  case DataType::Float32:
  case DataType::Int32:
    return 4;
  case DataType::BFloat16:
  case DataType::Float16:
    return 2;
  case DataType::Bool:
  case DataType::Float8E4M3:
    return 1;
  }
  return 0;
}

template <typename T>
T loadAs(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void storeAs(void *address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

/// Nearest multiple of the spacing that a format with `fractionBits` stored
/// bits and smallest normal exponent `minExponent` has at `value`.
double roundToFormat(double value, int fractionBits, int minExponent) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::ilogb(value);
  if (exponent < minExponent)
    exponent = minExponent;
  const double spacing = std::ldexp(1.0, exponent - fractionBits);
  return std::nearbyint(value / spacing) * spacing;
}

double decodeHalf(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0)
    return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

std::uint16_t encodeHalf(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return 0x7e00;
  const double magnitude = std::fabs(roundToFormat(value, 10, -14));
  if (magnitude > 65504)
    return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < std::ldexp(1.0, -14)) // zero and subnormals
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::ldexp(magnitude, 24)));
  const int exponent = std::ilogb(magnitude);
  const auto fraction =
      static_cast<std::uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

double decodeBrain(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t encodeBrain(double value) {
  if (std::isnan(value))
    return 0x7fc0;
  // Rounded to 8 significant bits first, so the cast is exact or overflows.
  const auto rounded = static_cast<float>(roundToFormat(value, 7, -126));
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >>
                                    16);
}

/// E4M3 of the OCP 8-bit Floating Point Specification: bias 7, no infinity.
double decodeEightBits(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 0xf;
  const int fraction = bits & 7;
  const double sign = (bits & 0x80) != 0 ? -1.0 : 1.0;
  if (exponent == 0xf && fraction == 7)
    return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0)
    return sign * std::ldexp(fraction, -9);
  return sign * std::ldexp(8 + fraction, exponent - 10);
}

/// What is too large becomes the largest, 448.
std::uint8_t encodeEightBits(double value) {
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return 0x7f;
  const double bounded = std::min(std::fabs(value), 448.0);
  const double magnitude = roundToFormat(bounded, 3, -6);
  if (magnitude < std::ldexp(1.0, -6)) // zero and subnormals
    return static_cast<std::uint8_t>(
        sign | static_cast<std::uint8_t>(std::ldexp(magnitude, 9)));
  const int exponent = std::ilogb(magnitude);
  const auto fraction =
      static_cast<std::uint8_t>(std::ldexp(magnitude, 3 - exponent) - 8);
  return static_cast<std::uint8_t>(sign | ((exponent + 7) << 3) | fraction);
}

} // namespace

double loadElement(const void *address, DataType type) {
  switch (type) {
  case DataType::Float32:
    return loadAs<float>(address);
  case DataType::BFloat16:
    return decodeBrain(loadAs<std::uint16_t>(address));
  case DataType::Float16:
    return decodeHalf(loadAs<std::uint16_t>(address));
  case DataType::Int32:
    return loadAs<std::int32_t>(address);
  case DataType::Bool:
    return loadAs<std::uint8_t>(address) != 0 ? 1 : 0;
  case DataType::Float8E4M3:
    return decodeEightBits(loadAs<std::uint8_t>(address));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void storeElement(void *address, DataType type, double value) {
  switch (type) {
  case DataType::Float32:
    return storeAs(address, static_cast<float>(value));
  case DataType::BFloat16:
    return storeAs(address, encodeBrain(value));
  case DataType::Float16:
    return storeAs(address, encodeHalf(value));
  case DataType::Int32:
    return storeAs(address, static_cast<std::int32_t>(value));
  case DataType::Bool:
    return storeAs(address, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
  case DataType::Float8E4M3:
    return storeAs(address, encodeEightBits(value));
  }
}

double roundedTo(DataType type, double value) {
  double bytes = 0; // any storage of at least 4 bytes
  storeElement(&bytes, type, value);
  return loadElement(&bytes, type);
}

void *elementAddress(const TensorView &view, std::int64_t i, std::int64_t j,
                     std::int64_t k, std::int64_t l) {
  const std::int64_t index[] = {i, j, k, l};
  std::int64_t offset = 0;
  for (int d = 0; d < view.rank; ++d)
    offset += index[d] * view.strides[static_cast<std::size_t>(d)];
  return static_cast<std::byte *>(view.data) + offset * elementSize(view.dtype);
}

double elementAt(const TensorView &view, std::int64_t i, std::int64_t j,
                 std::int64_t k, std::int64_t l) {
  return loadElement(elementAddress(view, i, j, k, l), view.dtype);
}

} // namespace spargejit::reference

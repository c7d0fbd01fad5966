// SPDX-License-Identifier: Apache-2.0
//
// Conversions against a search for the nearest value, in float64.
#include "runtime/base/DataTypeConversion.h"

#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace spargejit {
namespace {

/// One 16-bit format, decoded by its definition.
struct Format {
  int fractionBits;
  int bias;
  std::uint16_t (*fromFloat)(float);
  float (*toFloat)(std::uint16_t);

  double decode(int bits) const {
    int exponentBits = 15 - fractionBits;
    int exponent = (bits >> fractionBits) & ((1 << exponentBits) - 1);
    int fraction = bits & ((1 << fractionBits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponentBits) - 1)
      return fraction ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0)
      return sign * std::ldexp(fraction, 1 - bias - fractionBits);
    return sign * std::ldexp(fraction + (1 << fractionBits),
                             exponent - bias - fractionBits);
  }
};

const Format kFormats[] = {{7, 127, bfloat16FromFloat, floatFromBfloat16},
                           {10, 15, float16FromFloat, floatFromFloat16}};

TEST(DataTypeConversion, DecodesEveryPattern) {
  for (const Format &format : kFormats)
    for (int bits = 0; bits < 0x10000; ++bits) {
      double expected = format.decode(bits);
      float actual = format.toFloat(static_cast<std::uint16_t>(bits));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(actual)) << bits;
      else
        ASSERT_EQ(actual, expected) << bits;
      ASSERT_EQ(std::signbit(actual), (bits & 0x8000) != 0) << bits;
    }
}

TEST(DataTypeConversion, EveryPatternSurvivesTheWayThereAndBack) {
  for (const Format &format : kFormats)
    for (int bits = 0; bits < 0x10000; ++bits) {
      auto pattern = static_cast<std::uint16_t>(bits);
      float value = format.toFloat(pattern);
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(format.toFloat(format.fromFloat(value))));
      else
        ASSERT_EQ(format.fromFloat(value), pattern);
    }
}

/// Checks that `value` becomes the nearer of its two neighbours, the even one
/// of two that are equally near.
void checkRounding(const Format &format, float value) {
  int bits = format.fromFloat(value) & 0x7fff;
  double magnitude = std::abs(static_cast<double>(value));
  double result = format.decode(bits);
  // The largest pattern's upper neighbour, for rounding, is one more step.
  int infinity = ((1 << (15 - format.fractionBits)) - 1) << format.fractionBits;
  auto placeOf = [&](int pattern) {
    if (pattern < infinity)
      return format.decode(pattern);
    return 2 * format.decode(infinity - 1) - format.decode(infinity - 2);
  };
  ASSERT_FALSE(std::isnan(result)) << value;
  double error = std::abs(placeOf(bits) - magnitude);
  if (bits == infinity && magnitude > placeOf(bits))
    error = 0;
  for (int neighbour : {bits - 1, bits + 1}) {
    if (neighbour < 0 || neighbour > infinity)
      continue;
    double other = std::abs(placeOf(neighbour) - magnitude);
    ASSERT_LE(error, other) << value;
    if (error == other)
      ASSERT_EQ(bits & 1, 0) << value;
  }
}

TEST(DataTypeConversion, RoundsRandomBitsToTheNearest) {
  auto random = numerics::randomForTest();
  for (const Format &format : kFormats)
    for (int i = 0; i < 200000; ++i) {
      float value =
          std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(format.toFloat(format.fromFloat(value))));
      else
        checkRounding(format, value);
    }
}

TEST(DataTypeConversion, RoundsTiesToEven) {
  for (const Format &format : kFormats)
    for (int bits = 0; bits < 0x7fff; ++bits) {
      double low = format.decode(bits), high = format.decode(bits + 1);
      if (!std::isfinite(high))
        continue;
      auto middle = static_cast<float>((low + high) / 2);
      ASSERT_EQ(middle, (low + high) / 2) << "not a float32: " << bits;
      checkRounding(format, middle);
      checkRounding(format, std::nextafter(middle, 0.0f));
      checkRounding(format, std::nextafter(middle, 1e30f));
    }
}

TEST(DataTypeConversion, OverflowsToInfinity) {
  EXPECT_EQ(float16FromFloat(65519.996f), 0x7bff);
  EXPECT_EQ(float16FromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(float16FromFloat(-1e30f), 0xfc00);
  EXPECT_EQ(bfloat16FromFloat(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(bfloat16FromFloat(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(DataTypeConversion, ConvertsArrays) {
  std::vector<float> values{0.0f, -1.5f, 3.0e4f, 0.1f};
  for (DataType type :
       {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
    std::vector<float> storage(values.size(), -99.0f), back(values.size());
    convertFromFloat(values, type, storage.data());
    convertToFloat(storage.data(), type, back);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(back[i], values[i],
                  std::abs(values[i]) *
                      (type == DataType::Float32 ? 0 : 0.004));
  }
}

} // namespace
} // namespace spargejit

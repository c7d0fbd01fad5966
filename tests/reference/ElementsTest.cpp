// SPDX-License-Identifier: Apache-2.0
//
// The reference's conversions against values from the formats' definitions.
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace spargejit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint16_t bitsOf(DataType type, double value) {
  std::uint16_t bits = 0;
  storeElement(&bits, type, value);
  return bits;
}

double valueOf(DataType type, std::uint16_t bits) {
  return loadElement(&bits, type);
}

TEST(Elements, HalfHasTheEncodingsOfTheStandard) {
  EXPECT_EQ(bitsOf(DataType::Float16, 1.0), 0x3c00);
  EXPECT_EQ(bitsOf(DataType::Float16, -2.0), 0xc000);
  EXPECT_EQ(bitsOf(DataType::Float16, 65504.0), 0x7bff);
  EXPECT_EQ(bitsOf(DataType::Float16, 0x1p-14), 0x0400);
  EXPECT_EQ(bitsOf(DataType::Float16, 0x1p-24), 0x0001);
  EXPECT_EQ(bitsOf(DataType::Float16, -0.0), 0x8000);
  EXPECT_EQ(bitsOf(DataType::Float16, 1.0 / 3), 0x3555);
}

TEST(Elements, BrainHasTheEncodingsOfTruncatedFloats) {
  EXPECT_EQ(bitsOf(DataType::BFloat16, 1.0), 0x3f80);
  EXPECT_EQ(bitsOf(DataType::BFloat16, -2.0), 0xc000);
  EXPECT_EQ(bitsOf(DataType::BFloat16, 1.0 / 3), 0x3eab);
  EXPECT_EQ(bitsOf(DataType::BFloat16, 1e5), 0x47c3);
}

TEST(Elements, EightBitsHaveTheEncodingsOfTheSpecification) {
  constexpr DataType kType = DataType::Float8E4M3;
  EXPECT_EQ(bitsOf(kType, 1.0), 0x38);
  EXPECT_EQ(bitsOf(kType, -2.0), 0xc0);
  EXPECT_EQ(bitsOf(kType, 448.0), 0x7e);
  EXPECT_EQ(bitsOf(kType, 1e9), 0x7e);
  EXPECT_EQ(bitsOf(kType, -kInfinity), 0xfe);
  EXPECT_EQ(bitsOf(kType, 0x1p-6), 0x08);
  EXPECT_EQ(bitsOf(kType, 0x1p-9), 0x01);
  EXPECT_EQ(bitsOf(kType, 0x1p-10), 0x00);
  EXPECT_EQ(bitsOf(kType, 3 * 0x1p-10), 0x02);
  EXPECT_EQ(bitsOf(kType, 17.0), 0x58); // a tie: 16
  EXPECT_EQ(bitsOf(kType, 19.0), 0x5a); // another: 20
  EXPECT_TRUE(std::isnan(valueOf(kType, 0x7f)));
  for (int bits = 0; bits < 0xff; ++bits)
    if (bits != 0x7f)
      EXPECT_EQ(bitsOf(kType, valueOf(kType, static_cast<std::uint16_t>(bits))),
                bits);
}

TEST(Elements, TiesRoundToEven) {
  EXPECT_EQ(roundedTo(DataType::BFloat16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(roundedTo(DataType::BFloat16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(roundedTo(DataType::Float16, 1 + 0x1p-11), 1.0);
  EXPECT_EQ(roundedTo(DataType::Float16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(roundedTo(DataType::Float16, 0x1p-25), 0.0);
  EXPECT_EQ(roundedTo(DataType::Float16, 3 * 0x1p-25), 0x1p-23);
}

TEST(Elements, OverflowIsInfinity) {
  EXPECT_EQ(roundedTo(DataType::Float16, 65519.0), 65504.0);
  EXPECT_EQ(roundedTo(DataType::Float16, 65520.0), kInfinity);
  EXPECT_EQ(roundedTo(DataType::Float16, -1e6), -kInfinity);
  EXPECT_EQ(roundedTo(DataType::BFloat16, 3.4e38), kInfinity);
  EXPECT_EQ(roundedTo(DataType::BFloat16, -kInfinity), -kInfinity);
}

TEST(Elements, EveryPatternSurvivesARoundTrip) {
  for (const DataType type : {DataType::Float16, DataType::BFloat16}) {
    for (int pattern = 0; pattern <= 0xffff; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const double value = valueOf(type, bits);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(valueOf(type, bitsOf(type, value))));
      else
        ASSERT_EQ(bitsOf(type, value), bits) << "pattern " << pattern;
    }
  }
}

TEST(Elements, AddressesFollowStrides) {
  float memory[24];
  for (int i = 0; i < 24; ++i)
    memory[i] = static_cast<float>(i);
  TensorView view;
  view.data = memory;
  view.rank = 4;
  view.sizes = {1, 2, 3, 4};
  view.strides = {24, 4, 8, 1}; // [batch, length, heads, dim] memory
  EXPECT_EQ(elementAt(view, 0, 1, 2, 3), 23);
  EXPECT_EQ(elementAt(view, 0, 1, 0, 0), 4);
  view.data = memory + 23;
  view.strides = {0, -4, -8, -1};
  EXPECT_EQ(elementAt(view, 0, 1, 2, 3), 0);
}

} // namespace
} // namespace spargejit::reference

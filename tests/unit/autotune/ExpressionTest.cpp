// SPDX-License-Identifier: Apache-2.0
//
// Expressions of tuning spaces.
#include "autotune/space/Expression.h"

#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <numeric>

namespace spargejit::autotune {
namespace {

const Values kValues = {{"a", 7}, {"b", 3}, {"tile_kv", 128}, {"zero", 0}};

std::int64_t valueOf(const std::string &text) {
  auto expression = Expression::parse(text);
  EXPECT_TRUE(expression.ok()) << expression.status().message();
  auto value = expression->evaluate(kValues);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? *value : -999;
}

std::string failureOf(const std::string &text) {
  auto expression = Expression::parse(text);
  if (!expression.ok())
    return expression.status().message();
  auto value = expression->evaluate(kValues);
  return value.ok() ? "none" : value.status().message();
}

TEST(Expression, FollowsTheRulesOfC) {
  EXPECT_EQ(valueOf("1 + 2 * 3"), 7);
  EXPECT_EQ(valueOf("(1 + 2) * 3"), 9);
  EXPECT_EQ(valueOf("10 - 2 - 3"), 5);
  EXPECT_EQ(valueOf("100 / 7 % 5"), 100 / 7 % 5);
  EXPECT_EQ(valueOf("-a + b"), -4);
  EXPECT_EQ(valueOf("!zero + !a"), 1);
  EXPECT_EQ(valueOf("a > b && b >= 3 || zero"), 1);
  EXPECT_EQ(valueOf("a == 7 ? 10 : 20"), 10);
  EXPECT_EQ(valueOf("a != 7 ? 10 : b < 3 ? 20 : 30"), 30);
  EXPECT_EQ(valueOf("tile_kv <= 128"), 1);
  EXPECT_EQ(valueOf("1 + (a < b)"), 1);
}

TEST(Expression, KnowsItsFunctions) {
  EXPECT_EQ(valueOf("min(a, b) * 10 + max(a, b)"), 37);
  EXPECT_EQ(valueOf("gcd(tile_kv, 96)"), 32);
  EXPECT_EQ(valueOf("ceil_div(a, b)"), 3);
  EXPECT_EQ(valueOf("ceil_div(6, b)"), 2);
  EXPECT_EQ(valueOf("ceil_div(-a, b)"), -2);
}

TEST(Expression, LeavesAloneWhatDecidesNothing) {
  EXPECT_EQ(valueOf("zero && 1 / zero"), 0);
  EXPECT_EQ(valueOf("a || 1 / zero"), 1);
  EXPECT_EQ(valueOf("zero ? 1 / zero : 5"), 5);
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(failureOf("a +"), "\"a +\", column 4: expected a number or a name");
  EXPECT_EQ(failureOf("(a"), "\"(a\", column 3: expected ')'");
  EXPECT_EQ(failureOf("a b"),
            "\"a b\", column 3: expected an operator or the end");
  EXPECT_EQ(failureOf("sqrt(a, b)"),
            "\"sqrt(a, b)\", column 6: there is no function sqrt");
  EXPECT_EQ(failureOf("a ? b"), "\"a ? b\", column 6: expected ':'");
  EXPECT_EQ(failureOf("c + 1"), "\"c + 1\": c has no value");
  EXPECT_EQ(failureOf("a / zero"), "\"a / zero\": a division by zero");
  EXPECT_EQ(failureOf("9223372036854775807 + 1"),
            "\"9223372036854775807 + 1\": a result beyond 64 bits");
  EXPECT_NE(failureOf(""), "none");
  EXPECT_NE(failureOf(std::string(5000, '(')), "none");
  EXPECT_NE(failureOf(std::string(5000, '-')), "none");
}

TEST(Expression, AgreesWithCOnRandomNumbers) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::int64_t x = random.below(2001) - 1000;
    const std::int64_t y = random.below(1000) + 1;
    auto expression =
        Expression::parse("(x + y) * 3 - x / y + (x % y > 5 ? gcd(x, y) : 1)");
    ASSERT_TRUE(expression.ok());
    auto value = expression->evaluate({{"x", x}, {"y", y}});
    ASSERT_TRUE(value.ok());
    EXPECT_EQ(*value, (x + y) * 3 - x / y + (x % y > 5 ? std::gcd(x, y) : 1));
  }
}

} // namespace
} // namespace spargejit::autotune

// SPDX-License-Identifier: Apache-2.0
//
// Plans as entries.
#include "runtime/plan/StoredPlan.h"

#include "tests/unit/runtime/ExamplePlans.h"

#include <gtest/gtest.h>

namespace spargejit::plan {
namespace {

void expectEqual(const MethodPlan &a, const MethodPlan &b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_EQ(a.values[i].kind, b.values[i].kind);
    EXPECT_EQ(a.values[i].name, b.values[i].name);
    EXPECT_EQ(a.values[i].constant, b.values[i].constant);
  }
  ASSERT_EQ(a.launches.size(), b.launches.size());
  for (std::size_t i = 0; i < a.launches.size(); ++i) {
    EXPECT_EQ(a.launches[i].kernel, b.launches[i].kernel);
    EXPECT_EQ(a.launches[i].parameters, b.launches[i].parameters);
    ASSERT_EQ(a.launches[i].arguments.size(), b.launches[i].arguments.size());
    for (std::size_t j = 0; j < a.launches[i].arguments.size(); ++j) {
      EXPECT_EQ(a.launches[i].arguments[j].name,
                b.launches[i].arguments[j].name);
      EXPECT_EQ(a.launches[i].arguments[j].value,
                b.launches[i].arguments[j].value);
    }
  }
}

TEST(StoredPlan, ComesBackWhole) {
  MethodPlan withNumbers = unit::selectingPlan();
  withNumbers.name = "a \"name\"";
  withNumbers.values.push_back({PlanValue::Kind::Constant, "", 0.1});
  withNumbers.launches[0].parameters = {{"keep_diagonal", 1}, {"z", -3}};
  for (const MethodPlan &plan : {unit::densePlan(), unit::blockSparsePlan(),
                                 unit::backwardPlan(), withNumbers}) {
    auto back = planOf(entryOf(plan));
    ASSERT_TRUE(back.ok()) << back.status().message();
    expectEqual(*back, plan);
  }
}

TEST(StoredPlan, RefusesOtherContent) {
  cache::StoredEntry entry = entryOf(unit::densePlan());
  auto refused = [&](const std::string &from, const std::string &to) {
    cache::StoredEntry changed = entry;
    std::size_t at = changed.content.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.content.replace(at, from.size(), to);
    return !planOf(changed).ok();
  };
  EXPECT_TRUE(refused("\"query\"", "\"querulous\""));
  EXPECT_TRUE(refused("\"kernel\"", "\"colonel\""));
  // A launch that reads a value which the plan does not have.
  EXPECT_TRUE(refused("\"value\":0", "\"value\":99"));
  EXPECT_TRUE(refused("\"value\":0", "\"value\":-1"));
  entry.kind = "kernel";
  EXPECT_FALSE(planOf(entry).ok());
}

TEST(StoredPlan, HasAKeyOfTextAndGenerator) {
  Digest a = hashText("a");
  EXPECT_EQ(planKey(a, "1"), planKey(a, "1"));
  EXPECT_FALSE(planKey(a, "1") == planKey(hashText("b"), "1"));
  EXPECT_FALSE(planKey(a, "1") == planKey(a, "2"));
}

} // namespace
} // namespace spargejit::plan

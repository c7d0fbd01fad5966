// SPDX-License-Identifier: Apache-2.0
//
// Plans once per text.
#include "runtime/plan/PlanCache.h"

#include "spargejit/library.h"
#include "tests/unit/runtime/ExamplePlans.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace spargejit::plan {
namespace {

MethodText method(const std::string &name, const std::string &text) {
  return {name, name + ".mlir", text, hashText(text)};
}

TEST(PlanCache, PlansATextOnceForManyThreads) {
  std::atomic<int> planned{0};
  PlanCache cache([&](const std::string &text, const std::string &name) {
    EXPECT_EQ(text, "text");
    EXPECT_EQ(name, "a.mlir");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ++planned;
    return Result<MethodPlan>(unit::densePlan());
  });
  const std::int64_t before = counters().plansMade;
  std::vector<std::shared_ptr<const MethodPlan>> plans(8);
  std::vector<std::thread> threads;
  for (auto &plan : plans)
    threads.emplace_back([&] { plan = *cache.get(method("a", "text")); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(planned, 1);
  EXPECT_EQ(counters().plansMade - before, 1);
  for (const auto &plan : plans)
    EXPECT_EQ(plan, plans[0]);
}

TEST(PlanCache, GoesByTheTextNotTheName) {
  int planned = 0;
  PlanCache cache([&](const std::string &, const std::string &) {
    ++planned;
    return Result<MethodPlan>(unit::densePlan());
  });
  EXPECT_EQ(*cache.get(method("a", "same")), *cache.get(method("b", "same")));
  EXPECT_EQ(planned, 1);
  EXPECT_NE(*cache.get(method("a", "same")), *cache.get(method("a", "new")));
  EXPECT_EQ(planned, 2);
}

TEST(PlanCache, KeepsAFailureAndNamesTheMethod) {
  int planned = 0;
  PlanCache cache([&](const std::string &, const std::string &name) {
    ++planned;
    return Result<MethodPlan>(
        Status(ErrorCode::CompileFailed, name + ":1:1: no method here"));
  });
  for (int i = 0; i < 2; ++i) {
    auto plan = cache.get(method("a", "text"));
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), ErrorCode::CompileFailed);
    EXPECT_EQ(plan.status().message(),
              "while planning method a: a.mlir:1:1: no method here");
  }
  EXPECT_EQ(planned, 1);
}

} // namespace
} // namespace spargejit::plan

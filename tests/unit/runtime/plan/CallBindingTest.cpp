// SPDX-License-Identifier: Apache-2.0
//
// Workspace and argument slots.
#include "runtime/plan/CallBinding.h"

#include "tests/unit/runtime/ExamplePlans.h"
#include "tests/unit/runtime/HeapUse.h"

#include <gtest/gtest.h>

#include <bit>

namespace spargejit::plan {
namespace {

AttentionProblem exampleProblem() {
  AttentionProblem problem;
  problem.kind = {DataType::Float32, 24, 64, 16, false};
  problem.batch = 2;
  problem.qHeads = 6;
  problem.kvHeads = 3;
  problem.qLen = 65;   // 2 blocks
  problem.kvLen = 100; // 7 blocks
  problem.softmaxScale = 0.25f;
  problem.topK = 0.5;
  problem.topP = 0.75;
  return problem;
}

std::int64_t addressOf(const void *pointer) {
  return std::bit_cast<std::int64_t>(pointer);
}

TEST(CallBinding, PlacesPooledTensorsAndListsSideBySide) {
  const MethodPlan plan = unit::selectingPlan();
  const AttentionProblem problem = exampleProblem();
  ValueTensors tensors;
  tensors.reset(plan);
  auto bytes = placeWorkspace(plan, problem, nullptr, tensors);
  ASSERT_TRUE(bytes.ok());
  // 2·6·8·36 and 2·3·8·36 floats, 2·6·2·7 and 2·6·2 int32, each up to 64.
  EXPECT_EQ(*bytes, 13824 + 6912 + 704 + 128);
  EXPECT_EQ(tensors.at(3).data, nullptr);

  alignas(64) static char memory[32768];
  ASSERT_EQ(*placeWorkspace(plan, problem, memory, tensors), *bytes);
  EXPECT_EQ(tensors.at(3).data, memory);
  EXPECT_EQ(tensors.at(4).data, memory + 13824);
  EXPECT_EQ(tensors.at(7, 0).data, memory + 13824 + 6912);
  EXPECT_EQ(tensors.at(7, 1).data, memory + 13824 + 6912 + 704);
  EXPECT_EQ(tensors.at(7, 0).sizes, (std::array<std::int64_t, 4>{2, 6, 2, 7}));
  EXPECT_EQ(tensors.at(7, 0).strides,
            (std::array<std::int64_t, 4>{84, 14, 7, 1}));
  EXPECT_EQ(tensors.at(7, 1).rank, 3);
  EXPECT_EQ(tensors.at(7, 1).strides,
            (std::array<std::int64_t, 4>{12, 2, 1, 0}));
  EXPECT_EQ(tensors.at(8).data, nullptr) << "the output is the caller's";
}

TEST(CallBinding, PlacesWhatABackwardPassHasBetweenItsLaunches) {
  const MethodPlan plan = unit::backwardPlan();
  ValueTensors tensors;
  tensors.reset(plan);
  alignas(64) static char memory[8192];
  auto bytes = placeWorkspace(plan, exampleProblem(), memory, tensors);
  ASSERT_TRUE(bytes.ok());
  // 2·6·7·2 and 2·6·7 int32, 2·6·65 floats, each up to 64.
  EXPECT_EQ(*bytes, 704 + 384 + 3136);
  EXPECT_EQ(tensors.at(8, 0).sizes, (std::array<std::int64_t, 4>{2, 6, 7, 2}));
  EXPECT_EQ(tensors.at(8, 1).sizes, (std::array<std::int64_t, 4>{2, 6, 7, 0}));
  EXPECT_EQ(tensors.at(8, 1).data, memory + 704);
  EXPECT_EQ(tensors.at(9).sizes, (std::array<std::int64_t, 4>{2, 6, 65, 0}));
  EXPECT_EQ(tensors.at(9).dtype, DataType::Float32);
  for (int value : {3, 4, 5, 6, 7, 10, 11, 12})
    EXPECT_EQ(tensors.at(value).data, nullptr) << value << " is the caller's";
}

TEST(CallBinding, PlacesWhatIsKeptForSomeHeadsAtATime) {
  const MethodPlan plan = unit::keepingPlan();
  AttentionProblem problem = exampleProblem();
  problem.kind.dtype = DataType::BFloat16;
  problem.keptHeads = 2; // of 3; 2 heads of q each, in 2 batches
  problem.keptRoom = 5;
  ValueTensors tensors;
  tensors.reset(plan);
  alignas(64) static char memory[131072];
  auto bytes = placeWorkspace(plan, problem, memory, tensors);
  ASSERT_TRUE(bytes.ok());
  // As without; 2·6·2·7, 2·6·2 and 2·6 int32; 8·5 blocks of 64·16 of 2 bytes.
  EXPECT_EQ(*bytes, 704 + 384 + 3136 + 704 + 128 + 64 + 81920);
  EXPECT_EQ(tensors.at(13, 0).sizes, (std::array<std::int64_t, 4>{2, 6, 7, 2}));
  EXPECT_EQ(tensors.at(13, 1).sizes, (std::array<std::int64_t, 4>{2, 6, 2, 0}));
  EXPECT_EQ(tensors.at(14).sizes, (std::array<std::int64_t, 4>{2, 1, 6, 0}));
  EXPECT_EQ(tensors.at(15).sizes, (std::array<std::int64_t, 4>{8, 5, 1024, 0}));
  EXPECT_EQ(tensors.at(15).dtype, DataType::BFloat16);
  EXPECT_EQ(tensors.at(16).data, nullptr) << "the gradient is the caller's";
}

TEST(CallBinding, LeavesListsThatAreThereAlone) {
  const MethodPlan plan = unit::selectingPlan();
  ValueTensors tensors;
  tensors.reset(plan);
  char other;
  tensors.at(7, 0).data = tensors.at(7, 1).data = &other;
  EXPECT_EQ(*placeWorkspace(plan, exampleProblem(), nullptr, tensors),
            13824 + 6912);
}

TEST(CallBinding, TellsWhenTheWorkspaceCannotBe) {
  const MethodPlan plan = unit::selectingPlan();
  AttentionProblem problem = exampleProblem();
  problem.qLen = problem.kvLen = std::int64_t{1} << 40;
  ValueTensors tensors;
  tensors.reset(plan);
  auto bytes = placeWorkspace(plan, problem, nullptr, tensors);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), ErrorCode::OutOfResources);
}

TEST(CallBinding, PacksSlotsInTheKernelsOrder) {
  const MethodPlan plan = unit::selectingPlan();
  const AttentionProblem problem = exampleProblem();
  ValueTensors tensors;
  tensors.reset(plan);
  alignas(64) static char memory[32768];
  ASSERT_TRUE(placeWorkspace(plan, problem, memory, tensors).ok());
  LaunchInfo info = unit::selectBlocksInfo(16);
  auto sources = bindArguments(plan, plan.launches[1], info);
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(info.slotCount(), 3 * 9 + 7 + 5);
  std::vector<std::int64_t> slots(39, -77);
  packArguments(plan, info, *sources, problem, tensors, slots.data());
  const std::vector<std::int64_t> expected{
      addressOf(memory),
      2,
      6,
      2,
      24,
      1728,
      288,
      24,
      1, // pooled_q
      addressOf(memory + 13824),
      2,
      3,
      7,
      24,
      864,
      288,
      24,
      1, // pooled_k
      addressOf(memory + 20736),
      2,
      6,
      2,
      7,
      84,
      14,
      7,
      1, // indices
      addressOf(memory + 21440),
      2,
      6,
      2,
      12,
      2,
      1,                                  // counts
      std::bit_cast<std::int32_t>(0.25f), // scale
      3,                                  // k of 7
      std::bit_cast<std::int32_t>(0.75f), // p
      65,
      100};
  EXPECT_EQ(slots, expected);
}

TEST(CallBinding, PacksAbsentTensorsAsNull) {
  const MethodPlan plan = unit::densePlan();
  ValueTensors tensors;
  tensors.reset(plan);
  LaunchInfo info = unit::attentionInfo(64);
  auto sources = bindArguments(plan, plan.launches[0], info);
  ASSERT_TRUE(sources.ok());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(info.slotCount()),
                                  -77);
  packArguments(plan, info, *sources, exampleProblem(), tensors, slots.data());
  EXPECT_EQ(slots[static_cast<std::size_t>(info.arguments[3].firstSlot)], 0);
  EXPECT_EQ(slots[static_cast<std::size_t>(info.arguments[6].firstSlot)], 0);
}

TEST(CallBinding, PacksTheDevicesTicketsWhereItHasSome) {
  const MethodPlan plan = unit::densePlan();
  ValueTensors tensors;
  LaunchInfo info = unit::attentionInfo(64);
  for (const char *name : {"tickets", "key_tickets"}) {
    KernelArgument tickets{name, KernelArgument::Kind::Tensor, 1, 0};
    tickets.firstSlot = info.slotCount();
    info.arguments.push_back(tickets);
  }
  auto sources = bindArguments(plan, plan.launches[0], info);
  ASSERT_TRUE(sources.ok());
  std::vector<std::int32_t> counters(kCounters);
  for (void *given :
       {static_cast<void *>(nullptr), static_cast<void *>(counters.data())}) {
    tensors.reset(plan);
    tensors.setCounters(given);
    std::vector<std::int64_t> slots(static_cast<std::size_t>(info.slotCount()),
                                    -77);
    packArguments(plan, info, *sources, exampleProblem(), tensors,
                  slots.data());
    const std::int64_t size = given != nullptr;
    const std::vector<std::int64_t> expected{
        addressOf(given),
        size,
        size,
        addressOf(given ? counters.data() + 1 : nullptr),
        size,
        size};
    EXPECT_EQ(std::vector(slots.end() - 6, slots.end()), expected);
  }
}

TEST(CallBinding, TakesNothingFromTheHeapAgain) {
  const MethodPlan plan = unit::densePlan();
  ValueTensors tensors;
  tensors.reset(plan);
  std::vector<std::int32_t> counters(kCounters);
  const std::int64_t before = unit::heapAllocations();
  tensors.reset(plan);
  tensors.setCounters(counters.data());
  ASSERT_TRUE(placeWorkspace(plan, exampleProblem(), nullptr, tensors).ok());
  EXPECT_EQ(unit::heapAllocations(), before);
}

// A counter for each head of k, behind half of them one for each head of q;
// with more heads than counters none at all.
TEST(CallBinding, PacksTheCountersOfProgressWhereTheySuffice) {
  constexpr std::int64_t kHalf = kProgressCounters / 2;
  const MethodPlan plan = unit::selectingPlan();
  ValueTensors tensors;
  tensors.reset(plan);
  std::vector<std::int32_t> counters(kCounters);
  tensors.setCounters(counters.data());
  const LaunchInfo info = unit::poolInfo(64);
  auto sources = bindArguments(plan, plan.launches[0], info);
  ASSERT_TRUE(sources.ok());
  for (int part : {0, 1}) {
    LaunchInfo counting = info;
    counting.arguments.push_back({part ? "selected" : "progress",
                                  KernelArgument::Kind::Tensor, 1,
                                  info.slotCount()});
    std::vector<ArgumentSource> all = *sources;
    all.push_back({ArgumentSource::Kind::Progress, 0, part});
    for (bool suffice : {true, false}) {
      AttentionProblem problem = exampleProblem();
      problem.batch = 2;
      problem.kvHeads = part == 0 && suffice ? kHalf / 2 : kHalf;
      problem.qHeads = part == 1 && suffice ? kHalf / 2 : kHalf;
      std::vector<std::int64_t> slots(
          static_cast<std::size_t>(counting.slotCount()), -77);
      packArguments(plan, counting, all, problem, tensors, slots.data());
      void *first = suffice
                        ? counters.data() + kFirstProgressCounter + part * kHalf
                        : nullptr;
      const std::vector<std::int64_t> expected{addressOf(first),
                                               suffice ? kHalf : 0, suffice};
      EXPECT_EQ(std::vector(slots.end() - 3, slots.end()), expected);
    }
  }
}

TEST(CallBinding, TakesConstantsFromTheMethod) {
  MethodPlan plan = unit::selectingPlan();
  plan.values[5] = {PlanValue::Kind::Constant, "", 0.3};
  plan.values[6] = {PlanValue::Kind::Constant, "", 0.125};
  LaunchInfo info = unit::selectBlocksInfo(16);
  ValueTensors tensors;
  tensors.reset(plan);
  auto sources = bindArguments(plan, plan.launches[1], info);
  ASSERT_TRUE(sources.ok());
  std::vector<std::int64_t> slots(39);
  packArguments(plan, info, *sources, exampleProblem(), tensors, slots.data());
  EXPECT_EQ(slots[35], 2); // trunc(0.3 · 7)
  EXPECT_EQ(slots[36], std::bit_cast<std::int32_t>(0.125f));
}

} // namespace
} // namespace spargejit::plan

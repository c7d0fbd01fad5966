// SPDX-License-Identifier: Apache-2.0
//
// Plans with their attention in eight bits.
#include "runtime/plan/QuantisedPlan.h"

#include "runtime/plan/CallBinding.h"
#include "runtime/plan/Planner.h"
#include "tests/unit/runtime/ExamplePlans.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spargejit::plan {
namespace {

using Kind = PlanValue::Kind;

std::vector<std::string> kernelsOf(const MethodPlan &plan) {
  std::vector<std::string> names;
  for (const PlanLaunch &launch : plan.launches)
    names.push_back(launch.kernel);
  return names;
}

/// Kind of the value that a launch binds to a name.
Kind boundTo(const MethodPlan &plan, const PlanLaunch &launch,
             const std::string &name) {
  for (const PlanArgument &argument : launch.arguments)
    if (argument.name == name)
      return plan.values[static_cast<std::size_t>(argument.value)].kind;
  ADD_FAILURE() << launch.kernel << " binds no " << name;
  return Kind::Constant;
}

TEST(QuantisedPlan, RoundsBeforeWhatTheMethodDoes) {
  const MethodPlan plan = withForm(unit::selectingPlan(), PlanForm::Rounding);
  EXPECT_EQ(kernelsOf(plan),
            (std::vector<std::string>{"quantise_factors", "quantise",
                                      "quantise_again", "select_blocks",
                                      "attention_fwd_fp8"}));
  const PlanLaunch &attention = plan.launches.back();
  EXPECT_EQ(boundTo(plan, attention, "q"), Kind::QuantisedQuery);
  EXPECT_EQ(boundTo(plan, attention, "k"), Kind::QuantisedKey);
  EXPECT_EQ(boundTo(plan, attention, "v"), Kind::QuantisedValue);
  EXPECT_EQ(boundTo(plan, attention, "v_scale"), Kind::ValueScales);
  EXPECT_EQ(boundTo(plan, attention, "o"), Kind::Output);
  // Selection sees means of the tensors themselves.
  const PlanLaunch &quantise = plan.launches[1];
  EXPECT_EQ(boundTo(plan, quantise, "q"), Kind::Query);
  EXPECT_EQ(boundTo(plan, quantise, "k"), Kind::Key);
  for (const PlanLaunch *launch : {&quantise, &plan.launches[3]}) {
    EXPECT_EQ(boundTo(plan, *launch, "pooled_q"), Kind::PooledQuery);
    EXPECT_EQ(boundTo(plan, *launch, "pooled_k"), Kind::PooledKey);
  }
  for (std::size_t i = 0; i < plan.launches.size(); ++i)
    EXPECT_EQ(isSelection(plan, plan.launches[i]), i == 3) << i;
  EXPECT_EQ(attendedLists(plan), attendedLists(unit::selectingPlan()));
  EXPECT_TRUE(plan.selects());
}

TEST(QuantisedPlan, PoolsOnlyForWhatPoolsBoth) {
  for (const char *missing : {"q", "pooled_k"}) {
    MethodPlan plan = unit::selectingPlan();
    std::erase_if(plan.launches[0].arguments, [&](const PlanArgument &given) {
      return given.name == missing;
    });
    plan = withForm(plan, PlanForm::Rounding);
    EXPECT_EQ(kernelsOf(plan)[3], "pool") << missing;
    for (const PlanArgument &argument : plan.launches[1].arguments)
      EXPECT_FALSE(argument.name.starts_with("pooled")) << missing;
  }
  const MethodPlan dense = withForm(unit::densePlan(), PlanForm::Rounding);
  for (const PlanArgument &argument : dense.launches[1].arguments)
    EXPECT_FALSE(argument.name.starts_with("pooled"));
}

TEST(QuantisedPlan, TakesTensorsThatAreRounded) {
  const MethodPlan plan =
      withForm(unit::blockSparsePlan(), PlanForm::EightBits);
  EXPECT_EQ(kernelsOf(plan), std::vector<std::string>{"attention_fwd_fp8"});
  EXPECT_EQ(boundTo(plan, plan.launches[0], "k"), Kind::QuantisedKey);
  EXPECT_TRUE(takesCallerLists(plan));
}

TEST(QuantisedPlan, PlacesWhatItRounds) {
  const MethodPlan plan = roundingPlan();
  AttentionProblem problem;
  problem.kind = {DataType::BFloat16, 128, 128, 64, false};
  problem.batch = 2;
  problem.qHeads = 4;
  problem.kvHeads = 2;
  problem.qLen = 300;
  problem.kvLen = 40;
  ValueTensors tensors;
  // On a GPU v is an image of three times sixteen keys.
  for (const auto &[device, v] :
       {std::pair(DeviceKind::Cpu, std::int64_t{40 * 128}),
        std::pair(DeviceKind::Cuda, std::int64_t{3 * 17 * 128})}) {
    problem.device = {device, 0};
    tensors.reset(plan);
    auto bytes = placeWorkspace(plan, problem, nullptr, tensors);
    ASSERT_TRUE(bytes.ok());
    const std::int64_t eightBits = 2 * (4 * 300 * 128 + 2 * 40 * 128 + 2 * v);
    const std::int64_t peaks =
        2 * 4 * 128 * 2 * (device == DeviceKind::Cpu ? 1 : kPeakRows);
    const std::int64_t factors = 2 * 4 * 2 * 2 * 128; // and scales, of v
    // Factors of q, of k, and flags.
    EXPECT_EQ(*bytes, eightBits + peaks + factors + 64 + 64 + 64);
  }
  // The caller's own take no room.
  for (std::size_t i = 0; i < plan.values.size(); ++i)
    tensors.at(static_cast<int>(i)).data = &problem;
  EXPECT_EQ(*placeWorkspace(plan, problem, nullptr, tensors), 0);
}

/// Nothing counts how far it is, and selection waits for the end of what is
/// before it: all that is rounded.
TEST(QuantisedPlan, CountsNoProgress) {
  LaunchInfo info;
  info.arguments = {{"progress", KernelArgument::Kind::Tensor, 1, 0}};
  const MethodPlan plan = withForm(unit::selectingPlan(), PlanForm::Rounding);
  for (PlanLaunch launch : plan.launches) {
    launch.arguments.clear();
    auto sources = bindArguments(plan, launch, info);
    ASSERT_TRUE(sources.ok()) << sources.status().message();
    EXPECT_EQ((*sources)[0].kind, ArgumentSource::Kind::Absent)
        << launch.kernel;
  }
}

TEST(QuantisedPlan, ModesAreParametersOfOneKernel) {
  const MethodPlan plan = withForm(unit::densePlan(), PlanForm::EightBits);
  const std::vector<compiler::KernelParameter> parameters{
      {"score", true}, {"half", false}, {"fast", false}};
  ProblemClass kind{DataType::BFloat16, 128, 128, 64, false};
  for (const auto &[precision, score, half, fast] :
       {std::tuple(Precision::Fp8Exact, DataType::Float32, 0, 0),
        std::tuple(Precision::Fp8Balanced, DataType::Float16, 1, 0),
        std::tuple(Precision::Fp8Fast, DataType::Float16, 1, 1)}) {
    kind.precision = precision;
    auto spec =
        specialiseLaunch(plan, plan.launches[0], kind, Target(), parameters);
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    EXPECT_EQ(spec->parameters["score"], ParameterValue(score));
    EXPECT_EQ(spec->parameters["half"], ParameterValue(std::int64_t{half}));
    EXPECT_EQ(spec->parameters["fast"], ParameterValue(std::int64_t{fast}));
  }
}

} // namespace
} // namespace spargejit::plan

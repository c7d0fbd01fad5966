// SPDX-License-Identifier: Apache-2.0
//
// Launches of attention in eight bits.
#include "runtime/plan/QuantisedPlan.h"

#include "runtime/plan/AttentionProblem.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spargejit::plan {

namespace {

using Kind = PlanValue::Kind;

/// Adds values and launches to a plan.
class PlanBuilder {
public:
  explicit PlanBuilder(MethodPlan &plan) : plan_(plan) {}

  /// The value of this kind, which is made where there is none.
  int value(Kind kind) {
    for (std::size_t i = 0; i < plan_.values.size(); ++i)
      if (plan_.values[i].kind == kind)
        return static_cast<int>(i);
    plan_.values.push_back({kind, "", 0});
    return static_cast<int>(plan_.values.size()) - 1;
  }

  PlanLaunch
  launch(const char *kernel,
         std::initializer_list<std::pair<const char *, Kind>> arguments) {
    PlanLaunch made;
    made.kernel = kernel;
    for (const auto &[name, kind] : arguments)
      made.arguments.push_back({name, value(kind)});
    return made;
  }

private:
  MethodPlan &plan_;
};

/// The launches that round q, k and v.
std::vector<PlanLaunch> roundingLaunches(PlanBuilder &builder) {
  std::vector<PlanLaunch> launches;
  launches.push_back(
      builder.launch("quantise_factors", {{"q", Kind::Query},
                                          {"k", Kind::Key},
                                          {"v", Kind::Value},
                                          {"peaks", Kind::RoundingPeaks},
                                          {"q_factors", Kind::QueryFactors},
                                          {"k_factors", Kind::KeyFactors},
                                          {"v_factors", Kind::ValueFactors},
                                          {"v_scales", Kind::ValueScales},
                                          {"saturated", Kind::Saturated}}));
  launches.push_back(
      builder.launch("quantise", {{"q", Kind::Query},
                                  {"k", Kind::Key},
                                  {"v", Kind::Value},
                                  {"q_factors", Kind::QueryFactors},
                                  {"k_factors", Kind::KeyFactors},
                                  {"v_factors", Kind::ValueFactors},
                                  {"into_q", Kind::QuantisedQuery},
                                  {"into_k", Kind::QuantisedKey},
                                  {"image", Kind::QuantisedValue},
                                  {"saturated", Kind::Saturated}}));
  launches.push_back(
      builder.launch("quantise_again", {{"q", Kind::Query},
                                        {"k", Kind::Key},
                                        {"v", Kind::Value},
                                        {"saturated", Kind::Saturated},
                                        {"peaks", Kind::RoundingPeaks},
                                        {"q_factors", Kind::QueryFactors},
                                        {"k_factors", Kind::KeyFactors},
                                        {"v_factors", Kind::ValueFactors},
                                        {"v_scales", Kind::ValueScales},
                                        {"into_q", Kind::QuantisedQuery},
                                        {"into_k", Kind::QuantisedKey},
                                        {"image", Kind::QuantisedValue}}));
  return launches;
}

/// Has `quantise` pool q and k, in place of a launch that reads them for that
/// alone: the one that pools both, if there is one.
void poolWhileRounding(PlanBuilder &builder, MethodPlan &plan,
                       std::vector<PlanLaunch> &rounding) {
  auto pool = std::ranges::find(plan.launches, "pool", &PlanLaunch::kernel);
  if (pool == plan.launches.end())
    return;
  const std::vector<PlanArgument> arguments = pool->arguments;
  const auto gives = [&](const char *name, Kind kind) {
    return std::ranges::any_of(arguments, [&](const PlanArgument &argument) {
      return argument.name == name &&
             plan.values[static_cast<std::size_t>(argument.value)].kind == kind;
    });
  };
  if (!gives("q", Kind::Query) || !gives("k", Kind::Key) ||
      !gives("pooled_q", Kind::PooledQuery) ||
      !gives("pooled_k", Kind::PooledKey))
    return;
  plan.launches.erase(pool);
  auto quantise = std::ranges::find(rounding, "quantise", &PlanLaunch::kernel);
  for (auto [name, kind] : {std::pair("pooled_q", Kind::PooledQuery),
                            std::pair("pooled_k", Kind::PooledKey)})
    quantise->arguments.push_back({name, builder.value(kind)});
}

/// The launch that attends, with tensors of eight bits.
void readEightBits(PlanBuilder &builder, PlanLaunch &launch) {
  launch.kernel = "attention_fwd_fp8";
  for (PlanArgument &argument : launch.arguments)
    for (auto [name, kind] : {std::pair("q", Kind::QuantisedQuery),
                              std::pair("k", Kind::QuantisedKey),
                              std::pair("v", Kind::QuantisedValue)})
      if (argument.name == name)
        argument.value = builder.value(kind);
  launch.arguments.push_back({"v_scale", builder.value(Kind::ValueScales)});
}

} // namespace

MethodPlan withForm(const MethodPlan &plan, PlanForm form) {
  MethodPlan result = plan;
  PlanBuilder builder(result);
  for (PlanLaunch &launch : result.launches)
    if (launch.kernel == "attention_fwd")
      readEightBits(builder, launch);
  if (form == PlanForm::Rounding) {
    std::vector<PlanLaunch> rounding = roundingLaunches(builder);
    poolWhileRounding(builder, result, rounding);
    result.launches.insert(result.launches.begin(),
                           std::make_move_iterator(rounding.begin()),
                           std::make_move_iterator(rounding.end()));
  }
  return result;
}

MethodPlan roundingPlan() {
  MethodPlan plan;
  plan.name = "quantise";
  PlanBuilder builder(plan);
  plan.launches = roundingLaunches(builder);
  return plan;
}

} // namespace spargejit::plan

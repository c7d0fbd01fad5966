// SPDX-License-Identifier: Apache-2.0
//
// The plans of "dense", "block_sparse" and "spargeattention2".
#include "tests/unit/runtime/ExamplePlans.h"

namespace spargejit::unit {

namespace {

using Kind = PlanValue::Kind;
using Argument = KernelArgument::Kind;

LaunchInfo makeInfo(const char *entry, std::vector<KernelArgument> arguments,
                    std::int64_t tile) {
  LaunchInfo info;
  info.entryName = entry;
  int slot = 0;
  for (KernelArgument &argument : arguments) {
    argument.firstSlot = slot;
    slot += argument.slotCount();
  }
  info.arguments = std::move(arguments);
  info.gridTile = tile;
  return info;
}

} // namespace

MethodPlan densePlan() {
  MethodPlan plan;
  plan.name = "dense";
  plan.values = {{Kind::Query, "", 0},
                 {Kind::Key, "", 0},
                 {Kind::Value, "", 0},
                 {Kind::Output, "", 0},
                 {Kind::Lse, "", 0}};
  plan.launches = {{"attention_fwd",
                    {{"q", 0}, {"k", 1}, {"v", 2}, {"o", 3}, {"lse", 4}},
                    {},
                    {}}};
  return plan;
}

MethodPlan blockSparsePlan() {
  MethodPlan plan = densePlan();
  plan.name = "block_sparse";
  plan.values.push_back({Kind::CallerLists, "", 0});
  plan.launches[0].arguments.push_back({"indices", 5});
  plan.launches[0].arguments.push_back({"counts", 5});
  return plan;
}

MethodPlan selectingPlan() {
  MethodPlan plan;
  plan.name = "spargeattention2";
  plan.values = {{Kind::Query, "", 0},       {Kind::Key, "", 0},
                 {Kind::Value, "", 0},       {Kind::PooledQuery, "", 0},
                 {Kind::PooledKey, "", 0},   {Kind::Scalar, "top_k", 0},
                 {Kind::Scalar, "top_p", 0}, {Kind::Lists, "", 0},
                 {Kind::Output, "", 0},      {Kind::Lse, "", 0}};
  plan.launches = {
      {"pool", {{"q", 0}, {"k", 1}, {"pooled_q", 3}, {"pooled_k", 4}}, {}, {}},
      {"select_blocks",
       {{"pooled_q", 3},
        {"pooled_k", 4},
        {"k", 5},
        {"p", 6},
        {"indices", 7},
        {"counts", 7}},
       {{"keep_diagonal", 0}, {"keep_first", 0}},
       {}},
      {"attention_fwd",
       {{"q", 0},
        {"k", 1},
        {"v", 2},
        {"indices", 7},
        {"counts", 7},
        {"o", 8},
        {"lse", 9}},
       {},
       {}}};
  return plan;
}

MethodPlan customPlan() {
  MethodPlan plan = selectingPlan();
  plan.name = "custom";
  plan.launches[1].kernel = "custom_select";
  plan.launches[1].sources = {{"score", ""}};
  return plan;
}

MethodPlan backwardPlan() {
  MethodPlan plan;
  plan.name = "block_sparse_backward";
  for (Kind kind :
       {Kind::Query, Kind::Key, Kind::Value, Kind::Output, Kind::Lse,
        Kind::DOutput, Kind::DLse, Kind::CallerLists, Kind::KeyLists,
        Kind::Delta, Kind::DQuery, Kind::DKey, Kind::DValue})
    plan.values.push_back({kind, "", 0});
  plan.launches = {
      {"invert_blocks",
       {{"indices", 7}, {"counts", 7}, {"key_indices", 8}, {"key_counts", 8}},
       {},
       {}},
      {"attention_bwd_q",
       {{"q", 0},
        {"k", 1},
        {"v", 2},
        {"d_o", 5},
        {"lse", 4},
        {"o", 3},
        {"d_lse", 6},
        {"indices", 7},
        {"counts", 7},
        {"d_q", 10},
        {"delta", 9}},
       {{"forms_delta", 1}, {"has_lists", 1}},
       {}},
      {"attention_bwd_kv",
       {{"q", 0},
        {"k", 1},
        {"v", 2},
        {"d_o", 5},
        {"lse", 4},
        {"delta", 9},
        {"key_indices", 8},
        {"key_counts", 8},
        {"d_k", 11},
        {"d_v", 12}},
       {{"has_lists", 1}},
       {}}};
  return plan;
}

MethodPlan keepingPlan() {
  MethodPlan plan = backwardPlan();
  plan.name = "block_sparse_backward_kept";
  for (Kind kind : {Kind::Places, Kind::Unkept, Kind::Kept, Kind::DQuery})
    plan.values.push_back({kind, "", 0});
  auto add = [](PlanLaunch &launch, std::vector<PlanArgument> more) {
    launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
  };
  const std::vector<PlanArgument> places = {{"places", 13}, {"row_places", 13}};
  // delta first, and the gradient of q last, which reads it then.
  std::swap(plan.launches[1], plan.launches[2]);
  PlanLaunch &keys = plan.launches[1], &rest = plan.launches[2];
  std::erase_if(rest.arguments, [](const PlanArgument &argument) {
    return argument.name == "o" || argument.name == "d_lse";
  });
  rest.parameters["forms_delta"] = 0;
  add(plan.launches[0], places);
  add(plan.launches[0], {{"unkept", 14}});
  add(keys, places);
  add(keys, {{"kept", 15}});
  add(rest, places);
  add(rest, {{"unkept", 14}});
  plan.launches.insert(plan.launches.begin() + 1,
                       {"attention_bwd_delta",
                        {{"o", 3}, {"d_o", 5}, {"d_lse", 6}, {"delta", 9}},
                        {},
                        {}});
  plan.launches.insert(plan.launches.begin() + 3, {"attention_bwd_q_kept",
                                                   {{"k", 1},
                                                    {"indices", 7},
                                                    {"counts", 7},
                                                    {"places", 13},
                                                    {"row_places", 13},
                                                    {"kept", 15},
                                                    {"d_q", 16}},
                                                   {},
                                                   {}});
  return plan;
}

LaunchInfo poolInfo(std::int64_t tile) {
  return makeInfo("pool",
                  {{"q", Argument::Tensor, 4, 0},
                   {"k", Argument::Tensor, 4, 0},
                   {"pooled_q", Argument::Tensor, 4, 0},
                   {"pooled_k", Argument::Tensor, 4, 0}},
                  tile);
}

LaunchInfo selectBlocksInfo(std::int64_t tile) {
  return makeInfo("select_blocks",
                  {{"pooled_q", Argument::Tensor, 4, 0},
                   {"pooled_k", Argument::Tensor, 4, 0},
                   {"indices", Argument::Tensor, 4, 0},
                   {"counts", Argument::Tensor, 3, 0},
                   {"softmax_scale", Argument::Float, 0, 0},
                   {"k", Argument::Index, 0, 0},
                   {"p", Argument::Float, 0, 0},
                   {"q_len", Argument::Index, 0, 0},
                   {"kv_len", Argument::Index, 0, 0}},
                  tile);
}

LaunchInfo listBlocksInfo(std::int64_t tile) {
  return makeInfo("list_blocks",
                  {{"mask", Argument::Tensor, 4, 0},
                   {"indices", Argument::Tensor, 4, 0},
                   {"counts", Argument::Tensor, 3, 0}},
                  tile);
}

LaunchInfo attentionInfo(std::int64_t tile) {
  return makeInfo("attention_fwd",
                  {{"q", Argument::Tensor, 4, 0},
                   {"k", Argument::Tensor, 4, 0},
                   {"v", Argument::Tensor, 4, 0},
                   {"indices", Argument::Tensor, 4, 0},
                   {"counts", Argument::Tensor, 3, 0},
                   {"o", Argument::Tensor, 4, 0},
                   {"lse", Argument::Tensor, 3, 0},
                   {"softmax_scale", Argument::Float, 0, 0}},
                  tile);
}

} // namespace spargejit::unit

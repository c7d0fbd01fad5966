// SPDX-License-Identifier: Apache-2.0
//
// Hand-made plans bound to classes of problems.
#include "runtime/plan/Planner.h"

#include "runtime/plan/DefaultTuning.h"
#include "tests/unit/runtime/ExamplePlans.h"

#include <gtest/gtest.h>

namespace spargejit::plan {
namespace {

using compiler::KernelParameter;
using Source = ArgumentSource::Kind;
using Parameters = std::map<std::string, ParameterValue>;

const ProblemClass kClass{DataType::BFloat16, 96, 128, 16, true};
const std::vector<KernelParameter> kAttentionParameters{
    {"elem", true},           {"head_dim", false}, {"mask_block_q", false},
    {"mask_block_kv", false}, {"causal", false},   {"has_lists", false},
    {"tile_q", false},        {"tile_kv", false}};

Result<KernelSpec> specialise(const MethodPlan &plan, std::size_t launch,
                              const std::vector<KernelParameter> &parameters) {
  Target target;
  target.cpu = "some-cpu";
  return specialiseLaunch(plan, plan.launches[launch], kClass, target,
                          parameters);
}

TEST(Planner, GivesEveryDeclaredParameterItsValue) {
  auto spec = specialise(unit::densePlan(), 0, kAttentionParameters);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->kernel, "attention_fwd");
  EXPECT_EQ(spec->target.cpu, "some-cpu");
  EXPECT_EQ(spec->parameters, (Parameters{{"elem", DataType::BFloat16},
                                          {"head_dim", 96},
                                          {"mask_block_q", 128},
                                          {"mask_block_kv", 16},
                                          {"causal", 1},
                                          {"has_lists", 0},
                                          {"tile_q", 128},
                                          {"tile_kv", 64}}));
}

TEST(Planner, TellsKernelsThatReadListsSo) {
  for (const MethodPlan &plan :
       {unit::blockSparsePlan(), unit::selectingPlan()}) {
    auto spec =
        specialise(plan, plan.launches.size() - 1, kAttentionParameters);
    ASSERT_TRUE(spec.ok());
    EXPECT_EQ(spec->parameters["has_lists"], ParameterValue(1)) << plan.name;
  }
}

TEST(Planner, BindsListsByQueryAndByKeyBlock) {
  const MethodPlan plan = unit::backwardPlan();
  LaunchInfo info;
  using Argument = KernelArgument::Kind;
  for (const auto &[name, rank] :
       {std::pair("indices", 4), std::pair("counts", 3),
        std::pair("key_indices", 4), std::pair("key_counts", 3)})
    info.arguments.push_back({name, Argument::Tensor, rank, 0});
  auto sources = bindArguments(plan, plan.launches[0], info);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*sources)[i].kind, Source::Tensor);
    EXPECT_EQ((*sources)[i].value, i < 2 ? 7 : 8);
    EXPECT_EQ((*sources)[i].part, static_cast<int>(i % 2));
  }
  // The lists of the forward pass, whichever launch comes first.
  EXPECT_EQ(attendedLists(plan), 7);
  EXPECT_TRUE(takesCallerLists(plan));
  EXPECT_TRUE(plan.isBackward());
  EXPECT_FALSE(unit::selectingPlan().isBackward());
}

// Who forms delta counts the rows for the gradients of k and v; where they come
// first nobody does.
TEST(Planner, CountsTheProgressOfDelta) {
  LaunchInfo info;
  info.arguments.push_back({"progress", KernelArgument::Kind::Tensor, 1, 0});
  for (const MethodPlan &plan : {unit::backwardPlan(), unit::keepingPlan()}) {
    const bool forms = plan.launches.size() == 3;
    for (const PlanLaunch &launch : plan.launches) {
      if (launch.kernel != "attention_bwd_q" &&
          launch.kernel != "attention_bwd_kv")
        continue;
      PlanLaunch alone = launch;
      alone.arguments.clear();
      auto sources = bindArguments(plan, alone, info);
      ASSERT_TRUE(sources.ok()) << sources.status().message();
      EXPECT_EQ(sources->front().kind,
                forms ? Source::Progress : Source::Absent)
          << plan.name << ", " << launch.kernel;
    }
  }
}

// A program of the gradients of k and v stays within one key block where it
// reads a list.
TEST(Planner, TilesKeysByTheirLists) {
  const std::vector<KernelParameter> parameters{
      {"has_lists", false}, {"tile_keys", false}, {"tile_queries", false}};
  MethodPlan plan = unit::backwardPlan();
  auto spec = specialise(plan, 2, parameters);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->parameters["tile_keys"], ParameterValue(16));
  PlanLaunch &keys = plan.launches[2];
  keys.parameters["has_lists"] = 0;
  std::erase_if(keys.arguments,
                [](const PlanArgument &a) { return a.value == 8; });
  spec = specialise(plan, 2, parameters);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->parameters["tile_keys"], ParameterValue(64));
}

// On Hopper: a warp of a pooling CTA takes blocks of 128 tokens together; four
// CTAs share rows of blocks, fewer where those are long.
TEST(Planner, GivesTeamsTheirRows) {
  Target target;
  target.architecture = "sm_90a";
  MethodPlan plan = unit::selectingPlan();
  auto parameterOf = [&](std::size_t launch, const char *name,
                         SelectionRows rows) {
    ProblemClass kind = kClass;
    kind.rows = rows;
    std::vector<KernelParameter> parameters{{name, false}};
    for (const auto &[set, value] : plan.launches[launch].parameters)
      parameters.push_back({set, false});
    return specialiseLaunch(plan, plan.launches[launch], kind, target,
                            parameters)
        ->parameters[name];
  };
  EXPECT_EQ(parameterOf(0, "q_blocks_together", SelectionRows::Usual),
            ParameterValue(1));
  EXPECT_EQ(parameterOf(0, "k_blocks_together", SelectionRows::Usual),
            ParameterValue(8));
  EXPECT_EQ(parameterOf(1, "member_rows", SelectionRows::Usual),
            ParameterValue(8));
  EXPECT_EQ(parameterOf(1, "tile_rows", SelectionRows::Usual),
            ParameterValue(4 * 8));
  EXPECT_EQ(parameterOf(1, "member_rows", SelectionRows::Long),
            ParameterValue(2));
  EXPECT_EQ(parameterOf(1, "tile_rows", SelectionRows::Long),
            ParameterValue(4 * 2));
  EXPECT_EQ(parameterOf(1, "member_rows", SelectionRows::Many),
            ParameterValue(16));
  EXPECT_EQ(parameterOf(1, "tile_rows", SelectionRows::Many),
            ParameterValue(4 * 16));
}

// 12 heads of 32 760 tokens in blocks of 128 x 64 have many rows; one head of
// them, 24 of 4 608 tokens and longer rows do not.
TEST(Planner, KnowsWhereRowsAreMany) {
  EXPECT_EQ(selectionRows(12 * 256, 256, 512, 128), SelectionRows::Many);
  EXPECT_EQ(selectionRows(256, 256, 512, 128), SelectionRows::Usual);
  EXPECT_EQ(selectionRows(24 * 36, 36, 72, 128), SelectionRows::Usual);
  EXPECT_EQ(selectionRows(8 * 24 * 36, 36, 72, 128), SelectionRows::Usual);
  EXPECT_EQ(selectionRows(40 * 591, 591, 1182, 128), SelectionRows::Usual);
  EXPECT_EQ(selectionRows(12 * 256, 256, 512, 64), SelectionRows::Usual);
  EXPECT_EQ(selectionRows(12 * 256, 256, 6145, 128), SelectionRows::Long);
  EXPECT_EQ(selectionRows(12 * 256, 256, 5121, 192), SelectionRows::Long);
}

TEST(Planner, PassesTheMethodsParametersOn) {
  MethodPlan plan = unit::selectingPlan();
  plan.launches[1].parameters = {{"keep_diagonal", 1}, {"keep_first", 3}};
  auto spec = specialise(plan, 1,
                         {{"head_dim", false},
                          {"keep_diagonal", false},
                          {"keep_first", false},
                          {"tile_rows", false},
                          {"tile_columns", false}});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->parameters, (Parameters{{"head_dim", 96},
                                          {"keep_diagonal", 1},
                                          {"keep_first", 3},
                                          {"tile_rows", 16},
                                          {"tile_columns", 64}}));
}

TEST(Planner, NamesAParameterThatNobodyGives) {
  auto spec =
      specialise(unit::densePlan(), 0, {{"elem", true}, {"warps", false}});
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.status().code(), ErrorCode::CompileFailed);
  EXPECT_EQ(
      spec.status().message(),
      "method dense, kernel attention_fwd: expected a parameter out of "
      "causal, elem, forms_delta, has_dense, has_lists, has_places, head_dim, "
      "mask_block_kv, mask_block_q, split_means, tile_columns, tile_keys, "
      "tile_kv, tile_q, tile_queries, tile_rows, got warps");
}

TEST(Planner, NamesAParameterThatTheKernelDoesNotDeclare) {
  auto spec = specialise(unit::selectingPlan(), 1, {{"head_dim", false}});
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.status().message(),
            "method spargeattention2, kernel select_blocks: the method sets "
            "parameter keep_diagonal, which the kernel does not declare");
}

TEST(Planner, LetsAMethodRepeatWhatTheProblemSaysButNotChangeIt) {
  MethodPlan plan = unit::densePlan();
  plan.launches[0].parameters = {{"has_lists", 0}};
  EXPECT_TRUE(specialise(plan, 0, kAttentionParameters).ok());
  plan.launches[0].parameters = {{"causal", 0}};
  auto spec = specialise(plan, 0, kAttentionParameters);
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.status().message(),
            "method dense, kernel attention_fwd: the method sets parameter "
            "causal to another value than the problem");
}

TEST(Planner, NamesAParameterDeclaredAsTheWrongKind) {
  auto type = specialise(unit::densePlan(), 0, {{"elem", false}});
  ASSERT_FALSE(type.ok());
  EXPECT_EQ(type.status().message(), "method dense, kernel attention_fwd: "
                                     "parameter elem: expected it declared as "
                                     "a data type");
  auto size = specialise(unit::densePlan(), 0, {{"head_dim", true}});
  ASSERT_FALSE(size.ok());
  EXPECT_EQ(size.status().message(), "method dense, kernel attention_fwd: "
                                     "parameter head_dim: expected it declared "
                                     "as a size");
}

TEST(Planner, HasDefaultTuningThatFitsTheMaskBlocks) {
  for (std::int64_t q : {64, 128})
    for (std::int64_t kv : {16, 32, 64, 128}) {
      auto tuning =
          defaultTuning({DataType::Float32, 64, q, kv, false}, Target(), true);
      EXPECT_EQ(tuning["tile_q"], q);
      EXPECT_EQ(tuning["tile_kv"], kv == 128 ? 128 : 64);
      EXPECT_EQ(tuning["tile_rows"], 16);
      EXPECT_EQ(tuning["tile_columns"], 64);
    }
}

// The loss asks, whose tensors have neither head dimension nor mask.
TEST(Planner, HasDefaultTuningWithoutSizes) {
  Target hopper;
  hopper.architecture = "sm_90a";
  for (const Target &target : {Target(), hopper})
    EXPECT_FALSE(
        defaultTuning({.dtype = DataType::Float32}, target, false).empty());
}

// What kernels/sm90/attention_fwd.mlir asks of its parameters.
TEST(Planner, HasDefaultTuningForHopper) {
  Target target;
  target.architecture = "sm_90a";
  for (std::int64_t headDim = 8; headDim <= 256; headDim += 8)
    for (std::int64_t q : {64, 128})
      for (std::int64_t kv : {16, 32, 64, 128})
        for (bool hasLists : {true, false}) {
          SCOPED_TRACE(testing::Message() << headDim << " " << q << "x" << kv
                                          << " lists " << hasLists);
          auto tuning = defaultTuning({DataType::BFloat16, headDim, q, kv},
                                      target, hasLists);
          // A program's rows are rows of one block of the mask.
          EXPECT_EQ(hasLists ? q % tuning["tile_q"] : 0, 0);
          EXPECT_EQ(tuning["boxes"] * tuning["key_box"], tuning["tile_kv"]);
          EXPECT_EQ(hasLists ? kv % tuning["key_box"] : 0, 0);
          EXPECT_EQ(tuning["tile_q"], 16 * tuning["consumer_warps"]);
          // 16-bit elements in whole swizzle spans; 227 KiB less what rings
          // of notes and barriers need.
          std::int64_t span = tuning["swizzle_bytes"] / 2;
          std::int64_t columns = (headDim + span - 1) / span * span;
          std::int64_t kvStages = tuning["k_stages"] + tuning["v_stages"];
          std::int64_t rows = tuning["q_stages"] * tuning["tile_q"] +
                              kvStages * tuning["tile_kv"];
          EXPECT_LE(2 * columns * rows, (227 - 2) << 10);
          EXPECT_LE(128 * tuning["producer_registers"] +
                        32 * tuning["consumer_warps"] *
                            tuning["consumer_registers"],
                    65536);
          EXPECT_LE(tuning["key_box"], 256);
        }
}

std::vector<Source> kindsOf(const std::vector<ArgumentSource> &sources) {
  std::vector<Source> kinds;
  for (const ArgumentSource &source : sources)
    kinds.push_back(source.kind);
  return kinds;
}

TEST(Planner, BindsArgumentsByName) {
  MethodPlan plan = unit::selectingPlan();
  auto sources =
      bindArguments(plan, plan.launches[1], unit::selectBlocksInfo(16));
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  EXPECT_EQ(
      kindsOf(*sources),
      (std::vector{Source::Tensor, Source::Tensor, Source::Tensor,
                   Source::Tensor, Source::SoftmaxScale, Source::KeptBlocks,
                   Source::Number, Source::QLen, Source::KvLen}));
  EXPECT_EQ((*sources)[0].value, 3);
  EXPECT_EQ((*sources)[2].value, 7);
  EXPECT_EQ((*sources)[2].part, 0);
  EXPECT_EQ((*sources)[3].value, 7);
  EXPECT_EQ((*sources)[3].part, 1);
  EXPECT_EQ((*sources)[5].value, 5);
}

TEST(Planner, LeavesUnboundTensorsAbsentAndUnusedRulesZero) {
  MethodPlan dense = unit::densePlan();
  auto sources =
      bindArguments(dense, dense.launches[0], unit::attentionInfo(64));
  ASSERT_TRUE(sources.ok());
  EXPECT_EQ((*sources)[3].kind, Source::Absent);
  EXPECT_EQ((*sources)[4].kind, Source::Absent);

  MethodPlan plan = unit::selectingPlan();
  std::erase_if(plan.launches[1].arguments, [](const PlanArgument &argument) {
    return argument.name == "k" || argument.name == "p";
  });
  sources = bindArguments(plan, plan.launches[1], unit::selectBlocksInfo(16));
  ASSERT_TRUE(sources.ok());
  EXPECT_EQ((*sources)[5].kind, Source::Zero);
  EXPECT_EQ((*sources)[6].kind, Source::Zero);
}

// The values by head belong to the setting that the number comes from, and to
// no constant.
TEST(Planner, BindsValuesByHeadToTheirSetting) {
  MethodPlan plan = unit::selectingPlan();
  LaunchInfo info = unit::selectBlocksInfo(16);
  for (const char *name : {"k_values", "p_values"}) {
    KernelArgument argument{name, KernelArgument::Kind::Tensor, 3,
                            info.slotCount()};
    info.arguments.push_back(argument);
  }
  auto sources = bindArguments(plan, plan.launches[1], info);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  EXPECT_EQ((*sources)[9].kind, Source::Tensor);
  EXPECT_EQ((*sources)[9].value, 5);
  EXPECT_EQ((*sources)[10].kind, Source::Tensor);
  EXPECT_EQ((*sources)[10].value, 6);
  EXPECT_TRUE(readsSetting(plan, "top_k"));
  EXPECT_TRUE(readsSetting(plan, "top_p"));

  plan.values[5] = {PlanValue::Kind::Constant, "", 0.3};
  std::erase_if(plan.launches[1].arguments, [](const PlanArgument &argument) {
    return argument.name == "p";
  });
  sources = bindArguments(plan, plan.launches[1], info);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  EXPECT_EQ((*sources)[9].kind, Source::Absent);
  EXPECT_EQ((*sources)[10].kind, Source::Absent);
  EXPECT_FALSE(readsSetting(plan, "top_k"));
  EXPECT_FALSE(readsSetting(plan, "top_p"));
}

// Only where one launch waits for all that is pooled and clears the counters.
TEST(Planner, CountsProgressForSelectBlocksAlone) {
  auto kindOf = [](const MethodPlan &plan, const char *name) {
    LaunchInfo info = unit::poolInfo(64);
    info.arguments.push_back(
        {name, KernelArgument::Kind::Tensor, 1, info.slotCount()});
    auto sources = bindArguments(plan, plan.launches[0], info);
    return sources.ok() ? sources->back().kind : Source::Zero;
  };
  EXPECT_EQ(kindOf(unit::selectingPlan(), "progress"), Source::Progress);
  EXPECT_EQ(kindOf(unit::selectingPlan(), "other"), Source::Absent);
  EXPECT_EQ(kindOf(unit::customPlan(), "progress"), Source::Absent);
  MethodPlan twice = unit::selectingPlan();
  twice.launches.push_back(twice.launches[1]);
  EXPECT_EQ(kindOf(twice, "progress"), Source::Absent);
}

// Only where the very next launch attends to what is selected, and no other
// does.
TEST(Planner, CountsSelectedRowsForTheNextLaunch) {
  auto kindOf = [](const MethodPlan &plan, std::size_t launch) {
    PlanLaunch alone = plan.launches[launch];
    alone.arguments.clear();
    LaunchInfo info;
    info.arguments.push_back({"selected", KernelArgument::Kind::Tensor, 1, 0});
    auto sources = bindArguments(plan, alone, info);
    if (!sources.ok())
      return Source::Zero;
    EXPECT_EQ(sources->back().part, sources->back().kind == Source::Progress);
    return sources->back().kind;
  };
  const MethodPlan plan = unit::selectingPlan();
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_EQ(kindOf(plan, 0), Source::Absent);
  EXPECT_EQ(kindOf(plan, 1), Source::Progress);
  EXPECT_EQ(kindOf(plan, 2), Source::Progress);
  EXPECT_EQ(kindOf(unit::densePlan(), 0), Source::Absent);
  EXPECT_EQ(kindOf(unit::blockSparsePlan(), 0), Source::Absent);
  for (std::size_t launch : {std::size_t{1}, std::size_t{2}}) {
    MethodPlan between = plan;
    between.launches.insert(between.launches.begin() + 2, plan.launches[0]);
    EXPECT_EQ(kindOf(between, launch == 1 ? 1 : 3), Source::Absent);
    MethodPlan twice = plan;
    twice.launches.push_back(plan.launches[2]);
    EXPECT_EQ(kindOf(twice, launch), Source::Absent);
    MethodPlan eightBits = plan;
    eightBits.launches[2].kernel = "attention_fwd_fp8";
    EXPECT_EQ(kindOf(eightBits, launch), Source::Absent);
  }
}

TEST(Planner, BindsTheDenseBlocksOfACall) {
  MethodPlan plan = unit::selectingPlan();
  LaunchInfo info = unit::selectBlocksInfo(16);
  for (const char *name :
       {"dense_first", "dense_end", "dense_row_first", "dense_row_end"})
    info.arguments.push_back(
        {name, KernelArgument::Kind::Index, 0, info.slotCount()});
  auto sources = bindArguments(plan, plan.launches[1], info);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  for (int part = 0; part < 4; ++part) {
    const ArgumentSource &source =
        (*sources)[static_cast<std::size_t>(9 + part)];
    EXPECT_EQ(source.kind, Source::Dense);
    EXPECT_EQ(source.part, part);
  }
  // A kernel of its own, so that the others pay nothing.
  ProblemClass kind = kClass;
  for (const bool hasDense : {false, true}) {
    kind.hasDense = hasDense;
    auto spec = specialiseLaunch(plan, plan.launches[1], kind, Target(),
                                 {{"has_dense", false},
                                  {"keep_diagonal", false},
                                  {"keep_first", false}});
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    EXPECT_EQ(spec->parameters["has_dense"],
              ParameterValue(std::int64_t{hasDense}));
  }
}

/// The message of binding `plan`'s launch to `info`, which fails.
std::string bindFailure(const MethodPlan &plan, std::size_t launch,
                        const LaunchInfo &info) {
  auto sources = bindArguments(plan, plan.launches[launch], info);
  return sources.ok() ? "bound" : sources.status().message();
}

TEST(Planner, NamesWhatCannotBeBound) {
  LaunchInfo info = unit::attentionInfo(64);
  info.arguments.push_back({"window", KernelArgument::Kind::Index, 0, 66});
  EXPECT_EQ(bindFailure(unit::densePlan(), 0, info),
            "method dense, kernel attention_fwd: nothing gives the argument "
            "window");

  MethodPlan plan = unit::densePlan();
  plan.launches[0].arguments.push_back({"bias", 0});
  EXPECT_EQ(bindFailure(plan, 0, unit::attentionInfo(64)),
            "method dense, kernel attention_fwd: the method gives the argument "
            "bias, which the kernel does not have");

  plan = unit::densePlan();
  plan.launches[0].arguments[0].value = 4; // lse as q
  EXPECT_EQ(bindFailure(plan, 0, unit::attentionInfo(64)),
            "method dense, kernel attention_fwd: argument q: expected a tensor "
            "of rank 4, got a tensor of rank 3");

  plan = unit::selectingPlan();
  plan.launches[1].arguments[2].value = 0; // q as k
  EXPECT_EQ(bindFailure(plan, 1, unit::selectBlocksInfo(16)),
            "method spargeattention2, kernel select_blocks: argument k: "
            "expected a number, got a tensor of rank 4");

  plan = unit::selectingPlan();
  plan.values[5].name = "top_q";
  EXPECT_EQ(bindFailure(plan, 1, unit::selectBlocksInfo(16)),
            "method spargeattention2, kernel select_blocks: argument k: "
            "expected the setting top_k or top_p, got top_q");
}

TEST(Planner, TellsSelectionFromAttention) {
  MethodPlan plan = unit::selectingPlan();
  EXPECT_TRUE(isSelection(plan, plan.launches[0]));
  EXPECT_TRUE(isSelection(plan, plan.launches[1]));
  EXPECT_FALSE(isSelection(plan, plan.launches[2]));
  EXPECT_EQ(attendedLists(plan), 7);
  EXPECT_EQ(attendedLists(unit::densePlan()), -1);
  EXPECT_EQ(attendedLists(unit::blockSparsePlan()), 5);
  EXPECT_TRUE(takesCallerLists(unit::blockSparsePlan()));
  EXPECT_FALSE(takesCallerLists(plan));
}

TEST(Planner, KeepsAtLeastOneBlockAndTruncates) {
  EXPECT_EQ(keptBlocks(0.03, 100), 3);
  EXPECT_EQ(keptBlocks(0.05, 16), 1);
  EXPECT_EQ(keptBlocks(0, 16), 1);
  EXPECT_EQ(keptBlocks(1, 3), 3);
  EXPECT_EQ(keptBlocks(0.999, 3), 2);
  EXPECT_EQ(keptBlocks(0.5, 0), 0);
  // In float64: 0.29 · 100 is a little less than 29.
  EXPECT_EQ(keptBlocks(0.29, 100), 28);
}

} // namespace
} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// Every GPU kernel of the built-in methods, with the parameters that calls
// would choose, compiled and given to ptxas: no spilled register, no stack, no
// serialised product, no ignored setmaxnreg. Needs a toolkit's ptxas and no
// GPU.
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/jit/AssemblyReport.h"
#include "runtime/jit/DeviceJit.h"
#include "runtime/plan/DefaultTuning.h"
#include "runtime/plan/MaskLists.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/QuantisedPlan.h"
#include "spargejit/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>

namespace spargejit {
namespace {

using plan::ProblemClass;

Environment settingsWithPtxas() {
  Environment settings;
  if (const char *path = std::getenv("PATH"))
    settings.searchPath = path;
  if (const char *ptxas = std::getenv("SPARGEJIT_PTXAS"))
    settings.ptxas = ptxas;
  auto found = jit::findPtxas(settings);
  settings.ptxas = found.ok() ? *found : "";
  return settings;
}

Target hopper() {
  Target target;
  target.architecture = "sm_90a";
  return target;
}

class KernelAssembly : public testing::Test {
protected:
  void SetUp() override {
    if (!settings_.ptxas.empty())
      return;
    if (std::getenv("SPARGEJIT_REQUIRE_PTXAS"))
      FAIL() << "no ptxas in SPARGEJIT_PTXAS, PATH or /usr/local/cuda/bin";
    GTEST_SKIP() << "no ptxas in SPARGEJIT_PTXAS, PATH or /usr/local/cuda/bin";
  }

  /// Assembles each launch of a plan, and binds its arguments to the kernel's.
  void expectClean(const std::string &method, const ProblemClass &kind,
                   const std::string &folder = "methods") {
    jit::CodeGenerator &generator = jit::builtInCodeGenerator();
    std::string fileName = folder + "/" + method + ".mlir";
    const auto *text = kernels_ir::findEmbeddedText(fileName);
    ASSERT_NE(text, nullptr);
    auto plan = generator.planMethod(std::string(text->text), fileName);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    if (kind.isEightBit())
      plan = plan::withForm(*plan, plan::PlanForm::Rounding);
    for (const PlanLaunch &launch : plan->launches) {
      auto kernel = jit_.text(launch.kernel);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      auto spec = plan::specialiseLaunch(*plan, launch, kind, jit_.target(),
                                         (*kernel)->parameters);
      ASSERT_TRUE(spec.ok()) << spec.status().message();
      auto code = jit_.code(*spec, **kernel);
      EXPECT_TRUE(code.ok()) << code.status().message();
      if (!code.ok())
        continue;
      // What a CTA of Hopper can have (CUDA C++ Programming Guide, table of
      // compute capabilities).
      EXPECT_LE((*code)->launch.sharedBytes, 227 << 10) << (*code)->what;
      EXPECT_EQ((*code)->image.substr(1, 3), "ELF");
      auto bound = plan::bindArguments(*plan, launch, (*code)->launch);
      EXPECT_TRUE(bound.ok()) << bound.status().message();
      ++assembled_;
    }
  }

  /// A kernel that no plan of a built-in method has need to launch.
  void expectCleanKernel(const std::string &name, const ProblemClass &kind,
                         bool hasLists, bool hasPlaces = false) {
    auto kernel = jit_.text(name);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    KernelSpec spec;
    spec.kernel = name;
    spec.target = jit_.target();
    auto known = plan::defaultTuning(kind, spec.target, hasLists, hasPlaces);
    known.insert({{"head_dim", kind.headDim},
                  {"mask_block_q", kind.maskBlockQ},
                  {"mask_block_kv", kind.maskBlockKv},
                  {"causal", kind.causal},
                  {"has_lists", hasLists},
                  {"has_places", hasPlaces},
                  {"forms_delta", !hasPlaces}});
    for (const compiler::KernelParameter &parameter : (*kernel)->parameters) {
      if (parameter.isDataType) {
        spec.parameters[parameter.name] = kind.dtype;
        continue;
      }
      auto value = known.find(parameter.name);
      ASSERT_NE(value, known.end()) << name << ": " << parameter.name;
      spec.parameters[parameter.name] = value->second;
    }
    auto code = jit_.code(spec, **kernel);
    EXPECT_TRUE(code.ok()) << code.status().message();
    if (!code.ok())
      return;
    EXPECT_LE((*code)->launch.sharedBytes, 227 << 10) << (*code)->what;
    ++assembled_;
  }

  /// A kernel with all its parameters.
  void
  expectCleanSpec(const std::string &name,
                  const std::map<std::string, ParameterValue> &parameters) {
    auto kernel = jit_.text(name);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    KernelSpec spec;
    spec.kernel = name;
    spec.target = jit_.target();
    spec.parameters.insert(parameters.begin(), parameters.end());
    auto code = jit_.code(spec, **kernel);
    EXPECT_TRUE(code.ok()) << code.status().message();
    if (!code.ok())
      return;
    EXPECT_LE((*code)->launch.sharedBytes, 227 << 10) << (*code)->what;
    ++assembled_;
  }

  /// A kernel of teams that spills nothing with eight registers fewer than its
  /// CTAs leave it: other assemblers of the same PTX, as a driver's, need a few
  /// more than ptxas here.
  void expectRegistersToSpare(const KernelSpec &spec,
                              const jit::KernelText &text) {
    Environment settings = settings_;
    settings.ptxas.clear();
    jit::DeviceJit toPtx(jit::builtInCodeGenerator(),
                         kernels_ir::embeddedTexts(), settings, hopper());
    auto code = toPtx.code(spec, text);
    ASSERT_TRUE(code.ok()) << code.status().message();
    ASSERT_FALSE((*code)->isAssembled);
    std::string ptx = (*code)->image;
    constexpr std::string_view kCtas = ".minnctapersm ";
    const std::size_t place = ptx.find(kCtas);
    ASSERT_NE(place, std::string::npos) << (*code)->what;
    const std::int64_t ctas = std::atoi(&ptx[place + kCtas.size()]);
    const std::int64_t warps = ctas * (*code)->launch.threads / 32;
    ASSERT_GT(warps, 0);
    // A quarter of a multiprocessor has 512 registers for each lane.
    const std::int64_t limit =
        std::min<std::int64_t>(512 / ((warps + 3) / 4) / 8 * 8, 255) - 8;
    ptx.replace(place, ptx.find('\n', place) - place,
                ".maxnreg " + std::to_string(limit));
    auto assembled = jit::assembleWithPtxas(settings_.ptxas, ptx, "sm_90a",
                                            (*code)->launch.assemblerLevel);
    ASSERT_TRUE(assembled.ok()) << assembled.status().message();
    const auto report = jit::parseAssemblerLog(assembled->log);
    ASSERT_TRUE(report.complete) << assembled->failure << assembled->log;
    EXPECT_EQ(jit::faultsOf(report), std::vector<std::string>())
        << (*code)->what << " with " << limit << " registers";
  }

  const Environment settings_ = settingsWithPtxas();
  jit::DeviceJit jit_{jit::builtInCodeGenerator(), kernels_ir::embeddedTexts(),
                      settings_, hopper()};
  int assembled_ = 0;
};

class KernelMatrix : public KernelAssembly,
                     public testing::WithParamInterface<std::int64_t> {};

class TensorCoreWidths : public KernelMatrix {};
class MaskLists : public KernelAssembly {};
class BackwardPlans : public KernelAssembly {};
class TheLoss : public KernelAssembly {};
INSTANTIATE_TEST_SUITE_P(HeadDim, TensorCoreWidths,
                         testing::Values(64, 96, 128, 192, 256),
                         testing::PrintToStringParamName());

TEST_P(TensorCoreWidths, AssembleInEveryConfiguration) {
  for (DataType dtype : {DataType::BFloat16, DataType::Float16})
    for (bool causal : {false, true}) {
      expectClean("dense", {dtype, GetParam(), 128, 64, causal});
      for (std::int64_t maskBlockKv : {16, 32, 64, 128})
        for (std::int64_t maskBlockQ : {64, 128})
          // 64-row blocks in one type: their code differs in rows alone.
          if (maskBlockQ == 128 || dtype == DataType::BFloat16)
            expectClean("block_sparse",
                        {dtype, GetParam(), maskBlockQ, maskBlockKv, causal});
    }
  // Selection knows the width, the mask blocks, causality and how many rows.
  expectClean("spargeattention2",
              {DataType::BFloat16, GetParam(), 128, 64, false});
  expectClean("spargeattention2", {DataType::Float16, GetParam(), 64, 16, true,
                                   plan::SelectionRows::Long, true});
  expectClean("spargeattention2", {DataType::Float16, GetParam(), 128, 64, true,
                                   plan::SelectionRows::Many, true});
  // Eight rows of narrow blocks fill the registers to the last one.
  expectClean("spargeattention2",
              {DataType::BFloat16, GetParam(), 128, 16, false});
  EXPECT_EQ(assembled_, 28 + 4 * 3);
}

TEST_P(TensorCoreWidths, AssembleGradients) {
  // Causality changes a mask that all code has, so every block has it once.
  for (const char *kernel : {"attention_bwd_q", "attention_bwd_kv"})
    for (bool causal : {false, true}) {
      expectCleanKernel(
          kernel, {DataType::Float16, GetParam(), 128, 64, causal}, false);
      for (std::int64_t maskBlockKv : {16, 32, 64, 128})
        expectCleanKernel(kernel,
                          {DataType::BFloat16, GetParam(), causal ? 64 : 128,
                           maskBlockKv, causal},
                          true);
    }
  const ProblemClass kind{DataType::BFloat16, GetParam(), 128, 64, false};
  expectCleanKernel("attention_bwd_delta", kind, false);
  expectCleanKernel("invert_blocks", kind, true);
  EXPECT_EQ(assembled_, 2 * 2 * 5 + 2);
}

TEST_P(TensorCoreWidths, AssembleGradientsThatKeepScores) {
  for (bool causal : {false, true})
    for (std::int64_t maskBlockKv : {16, 32, 64, 128}) {
      const ProblemClass kind{causal ? DataType::Float16 : DataType::BFloat16,
                              GetParam(), causal ? 64 : 128, maskBlockKv,
                              causal};
      for (const char *kernel :
           {"attention_bwd_kv", "attention_bwd_q_kept", "attention_bwd_q"})
        expectCleanKernel(kernel, kind, /*hasLists=*/true, /*hasPlaces=*/true);
    }
  expectCleanKernel("invert_blocks",
                    {DataType::BFloat16, GetParam(), 128, 64, false},
                    /*hasLists=*/true, /*hasPlaces=*/true);
  EXPECT_EQ(assembled_, 2 * 4 * 3 + 1);
}

// Kernels of every width and block are above; here they meet their plans.
TEST_F(BackwardPlans, Assemble) {
  const ProblemClass kind{DataType::BFloat16, 128, 128, 64, false};
  for (const char *pass : {"dense", "block_sparse", "block_sparse_kept"})
    expectClean(pass, kind, "backward");
  // dq, dk and dv; inverted lists; delta, and dq from what is kept.
  EXPECT_EQ(assembled_, 2 + 3 + 5);
}

// What is part of no method.
TEST_F(MaskLists, Assemble) {
  const KernelSpec spec = plan::maskListsSpec(jit_.target());
  auto text = jit_.text(spec.kernel);
  ASSERT_TRUE(text.ok()) << text.status().message();
  ASSERT_EQ((*text)->parameters.size(), spec.parameters.size());
  auto code = jit_.code(spec, **text);
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_EQ((*code)->launch.slotCount(), 25);
  EXPECT_EQ((*code)->launch.gridTile, 8);
}

TEST_F(TheLoss, Assembles) {
  for (DataType dtype :
       {DataType::BFloat16, DataType::Float16, DataType::Float32})
    expectCleanKernel("squared_error", {dtype, 64, 128, 64, false}, false);
  expectCleanKernel("scaled_total", {DataType::Float32, 64, 128, 64, false},
                    false);
  EXPECT_EQ(assembled_, 4);
}

/// Widths that the 8-bit forward kernel has.
class EightBitWidths : public KernelMatrix {
protected:
  /// `maskBlockKv` 0: without lists.
  void expectCleanForward(DataType score, bool fast, std::int64_t maskBlockKv,
                          bool causal) {
    const bool hasLists = maskBlockKv > 0;
    // Scores in float32 take twice the registers, and row ends two more; wider
    // heads take more shared memory, and a launch for each half of v.
    const bool half = score == DataType::Float16;
    const std::int64_t dim = GetParam(), valueDim = dim > 128 ? dim / 2 : dim;
    const std::int64_t tile = half && dim <= 128                   ? 192
                              : !half && causal && valueDim == 128 ? 96
                                                                   : 128;
    const std::int64_t box = hasLists ? std::gcd(tile, maskBlockKv) : tile;
    expectCleanSpec("attention_fwd_fp8",
                    {{"elem", DataType::BFloat16},
                     {"score", score},
                     {"head_dim", dim},
                     {"value_dim", valueDim},
                     {"value_rows", valueDim + 8},
                     {"mask_block_q", std::int64_t{128}},
                     {"mask_block_kv", hasLists ? maskBlockKv : 64},
                     {"causal", std::int64_t{causal}},
                     {"has_lists", std::int64_t{hasLists}},
                     {"half", std::int64_t{half}},
                     {"fast", std::int64_t{fast}},
                     {"cuts", std::int64_t{hasLists && half}},
                     {"tile_q", std::int64_t{128}},
                     {"tile_kv", tile},
                     {"key_box", box},
                     {"boxes", tile / box},
                     {"swizzle_bytes", std::min<std::int64_t>(dim & -dim, 128)},
                     {"q_stages", std::int64_t{2}},
                     {"kv_stages", std::int64_t{dim > 128             ? 2
                                                : !half && dim == 128 ? 4
                                                                      : 3}},
                     {"consumer_warps", std::int64_t{8}},
                     {"producer_registers", std::int64_t{40}},
                     {"consumer_registers", std::int64_t{232}}});
  }
};
INSTANTIATE_TEST_SUITE_P(HeadDim, EightBitWidths,
                         testing::Values(64, 96, 128, 192, 256),
                         testing::PrintToStringParamName());

TEST_P(EightBitWidths, Assemble) {
  for (bool causal : {false, true})
    for (std::int64_t maskBlockKv : {0, 16, 64, 128}) {
      expectCleanForward(DataType::Float32, false, maskBlockKv, causal);
      expectCleanForward(DataType::Float16, false, maskBlockKv, causal);
      expectCleanForward(DataType::Float16, true, maskBlockKv, causal);
    }
  for (DataType dtype : {DataType::BFloat16, DataType::Float16}) {
    expectCleanSpec("quantise", {{"elem", dtype},
                                 {"head_dim", GetParam()},
                                 {"mask_block_q", std::int64_t{128}},
                                 {"mask_block_kv", std::int64_t{64}},
                                 {"quantise_rows", std::int64_t{128}},
                                 {"quantise_ctas", std::int64_t{4}},
                                 {"split_means", std::int64_t{1}}});
    for (const char *kernel : {"quantise_factors", "quantise_again"})
      expectCleanSpec(kernel, {{"elem", dtype},
                               {"head_dim", GetParam()},
                               {"factor_columns",
                                static_cast<std::int64_t>(std::bit_ceil(
                                    static_cast<std::uint64_t>(GetParam())))},
                               {"head_rows", std::int64_t{1} << 24}});
  }
  EXPECT_EQ(assembled_, 2 * 4 * 3 + 2 * (1 + 2));
}

class OtherWidths : public KernelMatrix {};
INSTANTIATE_TEST_SUITE_P(HeadDim, OtherWidths,
                         testing::Values(8, 16, 24, 32, 40, 48, 56, 72, 80, 104,
                                         120, 136, 160, 200, 216, 224, 248),
                         testing::PrintToStringParamName());

TEST_P(OtherWidths, Assemble) {
  const bool turn = GetParam() / 8 % 2 == 0;
  expectClean("dense", {DataType::BFloat16, GetParam(), 128, 64, turn});
  expectClean("block_sparse", {DataType::Float16, GetParam(), turn ? 64 : 128,
                               16 << (GetParam() / 8 % 4), !turn});
  expectClean("spargeattention2",
              {DataType::BFloat16, GetParam(), 128, 64, turn,
               turn ? plan::SelectionRows::Usual : plan::SelectionRows::Long});
  expectClean("spargeattention2",
              {DataType::Float16, GetParam(), 64, 16, !turn,
               turn ? plan::SelectionRows::Long : plan::SelectionRows::Usual});
  const ProblemClass kind{DataType::BFloat16, GetParam(), turn ? 64 : 128,
                          16 << (GetParam() / 8 % 4), turn};
  expectCleanKernel("attention_bwd_delta", kind, true);
  for (const char *kernel : {"attention_bwd_q", "attention_bwd_kv"}) {
    expectCleanKernel(kernel, kind, /*hasLists=*/true);
    for (bool causal : {false, true})
      expectCleanKernel(kernel,
                        {DataType::BFloat16, GetParam(), 128, 64, causal},
                        /*hasLists=*/false);
  }
  EXPECT_EQ(assembled_, 2 + 2 * 3 + 1 + 2 * 3);
}

/// Calls in eight bits, with all that they launch.
class EightBitCalls : public KernelMatrix {};
INSTANTIATE_TEST_SUITE_P(HeadDim, EightBitCalls, testing::Values(64, 96, 128),
                         testing::PrintToStringParamName());

TEST_P(EightBitCalls, Assemble) {
  for (Precision precision :
       {Precision::Fp8Exact, Precision::Fp8Balanced, Precision::Fp8Fast}) {
    ProblemClass kind{.dtype = DataType::BFloat16,
                      .headDim = GetParam(),
                      .maskBlockQ = 128,
                      .maskBlockKv = 64,
                      .precision = precision};
    for (bool causal : {false, true}) {
      kind.causal = causal;
      expectClean("dense", kind);
      for (std::int64_t maskBlockKv : {16, 32, 64, 128}) {
        kind.maskBlockKv = maskBlockKv;
        for (std::int64_t maskBlockQ : {64, 128}) {
          kind.maskBlockQ = maskBlockQ;
          expectClean("block_sparse", kind);
        }
      }
    }
    kind.dtype = DataType::Float16;
    expectClean("spargeattention2", kind);
  }
  // Factors, rounding, rounding again, (selection,) attention.
  EXPECT_EQ(assembled_, 3 * (2 * 9 * 4 + 5));
}

TEST_P(EightBitCalls, RoundingHasRegistersToSpare) {
  const MethodPlan plan = plan::roundingPlan();
  int checked = 0;
  for (DataType dtype : {DataType::BFloat16, DataType::Float16})
    for (std::int64_t maskBlockKv : {16, 32, 64, 128})
      for (std::int64_t maskBlockQ : {64, 128})
        for (const PlanLaunch &launch : plan.launches) {
          // The others know no mask blocks.
          if (launch.kernel != "quantise" && maskBlockKv + maskBlockQ > 80)
            continue;
          auto kernel = jit_.text(launch.kernel);
          ASSERT_TRUE(kernel.ok()) << kernel.status().message();
          auto spec =
              plan::specialiseLaunch(plan, launch,
                                     {.dtype = dtype,
                                      .headDim = GetParam(),
                                      .maskBlockQ = maskBlockQ,
                                      .maskBlockKv = maskBlockKv,
                                      .precision = Precision::Fp8Exact},
                                     jit_.target(), (*kernel)->parameters);
          ASSERT_TRUE(spec.ok()) << spec.status().message();
          expectRegistersToSpare(*spec, **kernel);
          ++checked;
        }
  EXPECT_EQ(checked, 2 * (8 + 2));
}

} // namespace
} // namespace spargejit

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  // The reports of what is assembled.
  spargejit::setLogCallback([](spargejit::LogLevel level,
                               const std::string &line) {
    if (level != spargejit::LogLevel::Debug && line.starts_with("assembled"))
      std::printf("%s\n", line.c_str());
  });
  return RUN_ALL_TESTS();
}

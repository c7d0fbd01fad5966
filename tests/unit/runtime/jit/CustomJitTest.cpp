// SPDX-License-Identifier: Apache-2.0
//
// Users' stages through NVRTC: code, mistakes with the user's lines, keys,
// dumps, and what happens without the library. Needs NVRTC, no GPU.
#include "runtime/jit/CustomJit.h"

#include "runtime/jit/CodeGenerator.h"
#include "runtime/jit/CustomStage.h"
#include "spargejit/library.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace spargejit::jit {
namespace {

namespace fs = std::filesystem;

const char *const kScore = "float score(const spargejit::BlockPair &pair) {\n"
                           "  return pair.score - fabsf(pair.q[0]);\n"
                           "}\n";
const char *const kKeep = "bool keep(const spargejit::ScoredPair &pair) {\n"
                          "  return pair.probability() > 0.01f;\n"
                          "}\n";

KernelSpec specOf(std::int64_t headDim = 128, std::int64_t causal = 0) {
  KernelSpec spec;
  spec.kernel = "custom_select";
  spec.target.architecture = "sm_90a";
  spec.parameters = {{"head_dim", headDim}, {"mask_block_q", 128},
                     {"mask_block_kv", 64}, {"causal", causal},
                     {"keep_diagonal", 0},  {"keep_first", 0}};
  return spec;
}

PlanLaunch launchOf(std::vector<PlanSource> sources) {
  PlanLaunch launch;
  launch.kernel = "custom_select";
  launch.sources = std::move(sources);
  return launch;
}

KernelText scoreText(const std::string &text) {
  return customText(launchOf({{"score", text}}), "");
}

Environment environmentOfTests() {
  Environment settings;
  if (const char *nvrtc = std::getenv("SPARGEJIT_NVRTC"))
    settings.nvrtc = nvrtc;
  return settings;
}

class CustomJitTest : public testing::Test {
protected:
  void SetUp() override {
    auto nvrtc = Nvrtc::open(settings_);
    if (nvrtc.ok())
      return;
    if (std::getenv("SPARGEJIT_REQUIRE_NVRTC"))
      FAIL() << nvrtc.status().message();
    GTEST_SKIP() << nvrtc.status().message();
  }
  /// The message of a text that does not compile.
  std::string failureOf(const KernelText &text) const {
    CustomJit compiler(settings_, specOf().target);
    auto code = compiler.code(specOf(), text);
    EXPECT_FALSE(code.ok());
    if (code.ok())
      return "";
    EXPECT_EQ(code.status().code(), ErrorCode::CompileFailed);
    return code.status().message();
  }

  Environment settings_ = environmentOfTests();
};

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "expected \"" << part << "\" in:\n"
      << text;
}

TEST_F(CustomJitTest, CompilesScoresAndRules) {
  CustomJit compiler(settings_, specOf().target);
  for (const auto &sources :
       {std::vector<PlanSource>{{"score", kScore}},
        std::vector<PlanSource>{{"keep", kKeep}},
        std::vector<PlanSource>{{"keep", kKeep}, {"score", kScore}}}) {
    auto code = compiler.code(specOf(), customText(launchOf(sources), ""));
    ASSERT_TRUE(code.ok()) << code.status().message();
    EXPECT_EQ((*code)->image.substr(0, 4), "\x7f"
                                           "ELF");
    EXPECT_EQ((*code)->launch.entryName, "custom_select");
    expectContains((*code)->image, "custom_select");
  }
}

// Every head dimension has its own cut of the pooled vectors.
TEST_F(CustomJitTest, CompilesForEveryPartOfAVector) {
  CustomJit compiler(settings_, specOf().target);
  for (std::int64_t headDim : {8, 136, 256}) {
    auto code = compiler.code(specOf(headDim, 1), scoreText(kScore));
    EXPECT_TRUE(code.ok()) << code.status().message();
  }
}

TEST_F(CustomJitTest, NamesTheLineOfTheMethodFile) {
  const std::string message =
      failureOf(scoreText("#line 41 \"my \\\"own\\\".mlir\"\n"
                          "float score(const spargejit::BlockPair &pair) {\n"
                          "  return pair.scor;\n"
                          "}\n"));
  expectContains(message, "while compiling custom_select for sm_90a");
  expectContains(message, "my \"own\".mlir(42): error: ");
  expectContains(message, "\"scor\"");
}

TEST_F(CustomJitTest, NamesTheLineOfTheCallsText) {
  const std::string message = failureOf(customText(
      launchOf({{"score", ""}}), "\n\nfloat score(int) { return wrong; }"));
  expectContains(message, "config.customSource(3): error: identifier "
                          "\"wrong\" is undefined");
}

TEST_F(CustomJitTest, SaysWhichFunctionIsMissing) {
  expectContains(failureOf(scoreText("float scores() { return 0; }\n")),
                 "sparge.custom_scores needs a definition of float score(const "
                 "spargejit::BlockPair &pair)");
  expectContains(
      failureOf(customText(launchOf({{"keep", ""}}),
                           "bool keep(float score) { return score > 0; }")),
      "sparge.custom_select needs a definition of bool keep(const "
      "spargejit::ScoredPair &pair)");
}

TEST_F(CustomJitTest, FindsNoOtherHeader) {
  expectContains(
      failureOf(scoreText("#line 1 \"m\"\n#include <cuda_fp16.h>\n")),
      "m(1): catastrophic error: ");
}

TEST_F(CustomJitTest, OneTextOfTheCallMayDefineBoth) {
  CustomJit compiler(settings_, specOf().target);
  auto code = compiler.code(specOf(),
                            customText(launchOf({{"keep", ""}, {"score", ""}}),
                                       std::string(kScore) + kKeep));
  EXPECT_TRUE(code.ok()) << code.status().message();
}

TEST_F(CustomJitTest, CompilesOncePerTextAndSpec) {
  CustomJit compiler(settings_, specOf().target);
  const Counters before = counters();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(
        [&] { EXPECT_TRUE(compiler.code(specOf(), scoreText(kScore)).ok()); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(counters().kernelsCompiled - before.kernelsCompiled, 1);
  const std::int64_t hits = counters().kernelCacheHits;
  EXPECT_TRUE(compiler.code(specOf(), scoreText(kScore)).ok());
  EXPECT_EQ(counters().kernelCacheHits - hits, 1);
  EXPECT_TRUE(compiler.code(specOf(64), scoreText(kScore)).ok());
  EXPECT_EQ(counters().kernelsCompiled - before.kernelsCompiled, 2);
}

// What one process has compiled, the next one finds, and with compiling
// forbidden as well.
TEST_F(CustomJitTest, KeepsCodeOnDisk) {
  files::TemporaryFolder folder;
  settings_.cacheFolder = folder.file("cache");
  std::string image;
  {
    CustomJit compiler(settings_, specOf().target);
    auto code = compiler.code(specOf(), scoreText(kScore));
    ASSERT_TRUE(code.ok()) << code.status().message();
    image = (*code)->image;
  }
  const Counters before = counters();
  settings_.jit = false;
  CustomJit next(settings_, specOf().target);
  auto code = next.code(specOf(), scoreText(kScore));
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_EQ((*code)->image, image);
  EXPECT_EQ((*code)->launch.entryName, "custom_select");
  EXPECT_EQ((*code)->launch.slotCount(), customSelectInfo().slotCount());
  EXPECT_EQ((*code)->launch.threads, customSelectInfo().threads);
  EXPECT_EQ((*code)->launch.dynamicScratch.size(), 1u);
  EXPECT_TRUE((*code)->isAssembled);
  EXPECT_EQ(counters().kernelsFromDisk - before.kernelsFromDisk, 1);
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
  // Another text is another entry.
  auto other = next.code(specOf(), scoreText(std::string(kScore) + "\n"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), ErrorCode::ArtifactMissing);
  expectContains(other.status().message(), settings_.cacheFolder);
}

TEST_F(CustomJitTest, KeysTellTextsSpecsAndArchitecturesApart) {
  CustomJit compiler(settings_, specOf().target);
  auto key = [&](const KernelSpec &spec, const std::string &text) {
    auto result = compiler.keyOf(spec, scoreText(text));
    EXPECT_TRUE(result.ok());
    return result->hex();
  };
  const std::string first = key(specOf(), kScore);
  EXPECT_EQ(key(specOf(), kScore), first);
  EXPECT_NE(key(specOf(), std::string(kScore) + " "), first);
  EXPECT_NE(key(specOf(64), kScore), first);
  KernelSpec other = specOf();
  other.target.architecture = "sm_100a";
  EXPECT_NE(key(other, kScore), first);
  // A score and a rule of the same text are not the same.
  auto rule =
      compiler.keyOf(specOf(), customText(launchOf({{"keep", kScore}}), ""));
  EXPECT_NE(rule->hex(), first);
}

TEST_F(CustomJitTest, DumpsTextCodeAndLog) {
  const fs::path folder =
      fs::path(testing::TempDir()) / ("custom_" + std::to_string(getpid()));
  settings_.dumpFolder = folder;
  CustomJit compiler(settings_, specOf().target);
  auto code = compiler.code(specOf(), scoreText(kScore));
  ASSERT_TRUE(code.ok()) << code.status().message();
  auto contentOf = [&](const std::string &name) {
    std::ifstream file(fs::path((*code)->dumpPlace) / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  EXPECT_EQ((*code)->dumpPlace,
            (folder / ("custom_select-" +
                       compiler.keyOf(specOf(), scoreText(kScore))->hex()))
                .string());
  expectContains(contentOf("00-input.cu"), kScore);
  expectContains(contentOf("spargejit_device.h"), "struct BlockPair");
  expectContains(contentOf("50-asm.ptx"), ".target sm_90a");
  EXPECT_EQ(contentOf("60-assemble.cubin"), (*code)->image);
  expectContains(contentOf("60-assemble.txt"), "registers");
  expectContains(contentOf("60-assemble.txt"), "-DSPARGEJIT_HEAD_DIM=128");

  // What does not compile leaves its text and the errors.
  auto broken = scoreText("#error on purpose\n");
  EXPECT_FALSE(compiler.code(specOf(), broken).ok());
  std::ifstream log(
      folder / ("custom_select-" + compiler.keyOf(specOf(), broken)->hex()) /
      "60-assemble.txt");
  std::ostringstream text;
  text << log.rdbuf();
  expectContains(text.str(), "on purpose");
  fs::remove_all(folder);
}

TEST_F(CustomJitTest, CompilesNothingWhereThatIsForbidden) {
  settings_.jit = false;
  CustomJit compiler(settings_, specOf().target);
  auto code = compiler.code(specOf(), scoreText(kScore));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), ErrorCode::ArtifactMissing);
  expectContains(code.status().message(), "SPARGEJIT_JIT=off");
}

TEST_F(CustomJitTest, RefusesAnArchitectureThatNvrtcDoesNotKnow) {
  KernelSpec spec = specOf();
  spec.target.architecture = "sm_999";
  CustomJit compiler(settings_, spec.target);
  auto code = compiler.code(spec, scoreText(kScore));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), ErrorCode::Unsupported);
}

TEST(CustomJitWithoutNvrtc, SaysWhatToInstall) {
  Environment settings;
  settings.nvrtc = "/nowhere/libnvrtc.so";
  CustomJit compiler(settings, specOf().target);
  auto code = compiler.code(specOf(), scoreText(kScore));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), ErrorCode::Unsupported);
  for (const char *part :
       {"/nowhere/libnvrtc.so", "install", "cuda-nvrtc", "SPARGEJIT_NVRTC"})
    expectContains(code.status().message(), part);
}

TEST(CustomJitWithoutNvrtc, RefusesAnotherLibrary) {
  Environment settings;
  settings.nvrtc = "libm.so.6";
  auto nvrtc = Nvrtc::open(settings);
  ASSERT_FALSE(nvrtc.ok());
  EXPECT_EQ(nvrtc.status().code(), ErrorCode::Unsupported);
  expectContains(nvrtc.status().message(), "without nvrtcVersion");
}

#if SPARGEJIT_TEST_COMPILER
PlanLaunch customLaunchOf(const MethodPlan &plan) {
  for (const PlanLaunch &launch : plan.launches)
    if (launch.isCustom())
      return launch;
  ADD_FAILURE() << plan.name << " has no stage in CUDA C++";
  return {};
}

// The methods of docs/, from their files to code; a mistake in one is reported
// where it stands in the file.
TEST_F(CustomJitTest, CompilesTheExamplesOfTheDocumentation) {
  CustomJit compiler(settings_, specOf().target);
  for (const char *name : {"local_window", "threshold"}) {
    const std::string path =
        std::string(SPARGEJIT_EXAMPLES) + "/" + name + ".mlir";
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    auto plan = builtInCodeGenerator().planMethod(text.str(), path);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_FALSE(plan->takesCustomSource());
    auto code = compiler.code(specOf(), customText(customLaunchOf(*plan), ""));
    EXPECT_TRUE(code.ok()) << code.status().message();

    std::string broken = text.str();
    const std::size_t at = broken.find("return pair.score");
    const std::size_t other = broken.find("return expf");
    const std::size_t place = std::min(at, other);
    ASSERT_NE(place, std::string::npos);
    broken.insert(place, "return wrong; ");
    const auto line =
        1 + std::count(broken.begin(),
                       broken.begin() + static_cast<std::ptrdiff_t>(place),
                       '\n');
    plan = builtInCodeGenerator().planMethod(broken, path);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    expectContains(failureOf(customText(customLaunchOf(*plan), "")),
                   path + "(" + std::to_string(line) +
                       "): error: identifier \"wrong\" is undefined");
  }
}
#endif

} // namespace
} // namespace spargejit::jit

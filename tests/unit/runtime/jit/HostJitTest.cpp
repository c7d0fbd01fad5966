// SPDX-License-Identifier: Apache-2.0
//
// From a spec to a function, on a fake code generator.
#include "runtime/jit/HostJit.h"

#include "runtime/jit/CompileCommand.h"
#include "runtime/jit/StoredParameters.h"
#include "tests/unit/runtime/FakeCodeGenerator.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace spargejit::jit {
namespace {

KernelSpec poolSpec(std::int64_t block) {
  KernelSpec spec;
  spec.kernel = "pool";
  spec.parameters = {{"elem", DataType::Float32},
                     {"head_dim", 64},
                     {"mask_block_q", block},
                     {"mask_block_kv", 64}};
  return spec;
}

class HostJitTest : public testing::Test {
protected:
  unit::FakeCodeGenerator generator_;
  Environment settings_;
};

TEST_F(HostJitTest, FindsTextAndParameters) {
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto text = jit.text("pool");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)->text, "text of pool");
  EXPECT_EQ((*text)->fileName, "kernels/portable/pool.mlir");
  EXPECT_EQ((*text)->parameters.size(), 4u);

  auto missing = jit.text("warp");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::Unsupported);
  EXPECT_EQ(
      missing.status().message(),
      "kernel warp: expected one that is built in for host (attention_fwd, "
      "pool, select_blocks)");
}

TEST_F(HostJitTest, CompilesAndLoadsASpecOnce) {
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto text = *jit.text("pool");
  auto first = jit.load(poolSpec(64), *text);
  ASSERT_TRUE(first.ok());
  EXPECT_NE((*first)->function, nullptr);
  EXPECT_EQ((*first)->launch.gridTile, 64);
  EXPECT_EQ(*jit.load(poolSpec(64), *text), *first);
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(generator_.loaded, 1);
  EXPECT_NE(*jit.load(poolSpec(16), *text), *first);
  EXPECT_EQ(generator_.compiled, 2);
}

TEST_F(HostJitTest, CompilesOnceForManyThreads) {
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto text = *jit.text("pool");
  std::latch start(16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      EXPECT_TRUE(jit.load(poolSpec(64), *text).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(generator_.loaded, 1);
}

TEST_F(HostJitTest, RemembersFailuresAndSaysWhatItWasDoing) {
  generator_.compileFailure = "pool.mlir:4:2: no";
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto text = *jit.text("pool");
  for (int i = 0; i < 2; ++i) {
    auto kernel = jit.load(poolSpec(64), *text);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.status().code(), ErrorCode::CompileFailed);
    EXPECT_EQ(kernel.status().message(),
              "while compiling pool for host (elem=float32, head_dim=64, "
              "mask_block_kv=64, mask_block_q=64): pool.mlir:4:2: no");
  }
  EXPECT_EQ(generator_.compiled, 1);

  generator_.compileFailure = "";
  generator_.loadFailure = "symbol not found";
  auto kernel = jit.load(poolSpec(16), *text);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().message(),
            "while loading pool for host (elem=float32, head_dim=64, "
            "mask_block_kv=64, mask_block_q=16): symbol not found");
}

TEST_F(HostJitTest, NeverCompilesWhenToldSo) {
  settings_.jit = false;
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto kernel = jit.load(poolSpec(64), **jit.text("pool"));
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::ArtifactMissing);
  EXPECT_EQ(generator_.compiled, 0);
  std::string key =
      cache::KernelKey::of(poolSpec(64), "text of pool", "fake 1").hex();
  EXPECT_EQ(kernel.status().message(),
            "while compiling pool for host (elem=float32, head_dim=64, "
            "mask_block_kv=64, mask_block_q=64): compiling is switched off "
            "(SPARGEJIT_JIT=off) and "
            "there is no artifact of key " +
                key +
                ", nor a pack (SPARGEJIT_PACK) or kernel cache to look in; "
                "`spargejit "
                "compile pool --arch host --dtype float32 "
                "--head-dim 64 --set mask_block_kv=64 --set mask_block_q=64 -o "
                "DIR` makes it");
}

TEST_F(HostJitTest, FindsOnDiskWhatAnotherProcessCompiled) {
  files::TemporaryFolder folder;
  settings_.cacheFolder = folder.file("cache");
  {
    HostJit jit(generator_, unit::fakeTexts(), settings_);
    ASSERT_TRUE(jit.load(poolSpec(64), **jit.text("pool")).ok());
  }
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(generator_.listed, 1);
  // Compiling is not needed, so that it may be forbidden.
  settings_.jit = false;
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  auto kernel = jit.load(poolSpec(64), **jit.text("pool"));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ((*kernel)->launch.gridTile, 64);
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(generator_.listed, 1);
  EXPECT_EQ(jit.load(poolSpec(16), **jit.text("pool")).status().code(),
            ErrorCode::ArtifactMissing);
}

TEST_F(HostJitTest, CompilesAnewForDumps) {
  files::TemporaryFolder folder;
  settings_.cacheFolder = folder.file("cache");
  settings_.dumpFolder = folder.file("dump");
  for (int i = 1; i <= 2; ++i) {
    HostJit jit(generator_, unit::fakeTexts(), settings_);
    ASSERT_TRUE(jit.load(poolSpec(64), **jit.text("pool")).ok());
    EXPECT_EQ(generator_.compiled, i);
  }
}

TEST_F(HostJitTest, DumpsTheStagesOfACompilation) {
  auto folder = std::filesystem::path(testing::TempDir()) /
                ("host_jit_dump_" + std::to_string(::getpid()));
  settings_.dumpFolder = folder / "deeper";
  {
    HostJit jit(generator_, unit::fakeTexts(), settings_);
    ASSERT_TRUE(jit.load(poolSpec(64), **jit.text("pool")).ok());
  }
  std::string key =
      cache::KernelKey::of(poolSpec(64), "text of pool", "fake 1").hex();
  auto place = folder / "deeper" / ("pool-" + key);
  int stage = 0;
  for (const char *name :
       {"00-input.mlir", "10-specialise.mlir", "20-tile.mlir", "30-lower.mlir",
        "40-emit.ll", "50-asm.s"}) {
    std::stringstream text;
    text << std::ifstream(place / name).rdbuf();
    EXPECT_EQ(text.str(), "pool at stage " + std::to_string(stage++));
  }
  std::filesystem::remove_all(folder);
}

TEST_F(HostJitTest, WorksOnWhenDumpsCannotBeWritten) {
  settings_.dumpFolder = "/dev/null/nowhere";
  std::vector<std::string> lines;
  setLogCallback([&](LogLevel level, const std::string &line) {
    if (level == LogLevel::Warning)
      lines.push_back(line);
  });
  HostJit jit(generator_, unit::fakeTexts(), settings_);
  EXPECT_TRUE(jit.load(poolSpec(64), **jit.text("pool")).ok());
  setLogCallback({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("SPARGEJIT_DUMP: cannot write /dev/null/nowhere", 0),
            0u);
}

TEST(StoredParameters, ComeBackInOrder) {
  std::vector<compiler::KernelParameter> parameters{
      {"z", false}, {"elem", true}, {"a", false}};
  auto entry = entryOf(parameters);
  auto back = parametersOf(entry);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*back)[i].name, parameters[i].name);
    EXPECT_EQ((*back)[i].isDataType, parameters[i].isDataType);
  }
  entry.content = R"({"parameters":[{"name":"x"}]})";
  EXPECT_FALSE(parametersOf(entry).ok());
  entry.content = "[]";
  EXPECT_FALSE(parametersOf(entry).ok());
}

TEST(BuiltInCodeGenerator, SaysWhichCommandIsMissingWithoutACompiler) {
  if (hasBuiltInCompiler())
    GTEST_SKIP() << "this build has the compiler";
  CodeGenerator &generator = builtInCodeGenerator();
  auto artifact = generator.compileKernel("", "", poolSpec(64));
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.status().code(), ErrorCode::ArtifactMissing);
  EXPECT_EQ(artifact.status().message(),
            "kernel pool: this build of spargejit has no compiler and found no "
            "artifact; a build with it makes one by `spargejit compile pool "
            "--arch host --dtype float32 --head-dim 64 --set mask_block_kv=64 "
            "--set mask_block_q=64 -o DIR`, "
            "and SPARGEJIT_PACK=DIR finds it");
  EXPECT_EQ(generator.planMethod("", "methods/dense.mlir").status().code(),
            ErrorCode::ArtifactMissing);
  EXPECT_EQ(generator.listKernelParameters("", "", "pool").status().code(),
            ErrorCode::ArtifactMissing);
}

} // namespace
} // namespace spargejit::jit

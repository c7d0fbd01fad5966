// SPDX-License-Identifier: Apache-2.0
//
// PTX through the ptxas program, and through programs that stand in for it.
#include "runtime/jit/AssembleWithPtxas.h"

#include "runtime/jit/AssemblyReport.h"
#include "tests/unit/runtime/jit/PtxTexts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace spargejit::jit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

Environment processEnvironment() {
  Environment settings;
  if (const char *path = std::getenv("PATH"))
    settings.searchPath = path;
  if (const char *ptxas = std::getenv("SPARGEJIT_PTXAS"))
    settings.ptxas = ptxas;
  return settings;
}

/// Assembles with this machine's ptxas.
class RealPtxas : public testing::Test {
protected:
  void SetUp() override {
    auto program = findPtxas(processEnvironment());
    if (!program.ok()) {
      if (std::getenv("SPARGEJIT_REQUIRE_PTXAS"))
        FAIL() << program.status().message();
      GTEST_SKIP() << program.status().message();
    }
    program_ = *program;
  }
  AssembledCode assemble(const std::string &ptx) {
    auto code = assembleWithPtxas(program_, ptx, "sm_90a", 3);
    EXPECT_TRUE(code.ok()) << code.status().message();
    return code.ok() ? *code : AssembledCode();
  }

  std::string program_;
};

TEST_F(RealPtxas, GivesMachineCodeAndAReport) {
  AssembledCode code = assemble(unit::kAddOnePtx);
  EXPECT_EQ(code.failure, "");
  EXPECT_EQ(code.cubin.substr(0, 4), "\x7f"
                                     "ELF");
  EXPECT_EQ(code.command,
            program_ + " -v -arch=sm_90a kernel.ptx -o kernel.cubin -O3");
  AssemblyReport report = parseAssemblerLog(code.log);
  EXPECT_TRUE(report.complete) << code.log;
  EXPECT_GT(report.registers, 0);
  EXPECT_EQ(report.staticSharedBytes, 16);
  EXPECT_TRUE(faultsOf(report).empty()) << code.log;
}

TEST_F(RealPtxas, SaysWhereBrokenCodeIsBroken) {
  AssembledCode code = assemble(unit::kBrokenPtx);
  EXPECT_EQ(code.failure, "ended with 255");
  EXPECT_EQ(code.cubin, "");
  EXPECT_NE(code.log.find("line 8; error"), std::string::npos) << code.log;
  EXPECT_NE(code.log.find("'frobnicate'"), std::string::npos) << code.log;
}

TEST_F(RealPtxas, SaysWhenCodeIsTooNew) {
  std::string ptx = unit::kAddOnePtx;
  ptx.replace(ptx.find("8.0"), 3, "9.9");
  AssembledCode code = assemble(ptx);
  EXPECT_EQ(code.failure, "ended with 255");
  EXPECT_NE(code.log.find("Unsupported .version 9.9"), std::string::npos)
      << code.log;
}

TEST_F(RealPtxas, ReportsSpills) {
  AssemblyReport report =
      parseAssemblerLog(assemble(unit::spillingPtx(80, 24)).log);
  EXPECT_TRUE(report.complete);
  EXPECT_GT(report.spillStoreBytes, 0);
  EXPECT_EQ(faultsOf(report).size(), 1u);
}

TEST_F(RealPtxas, ReportsAnIgnoredRegisterCount) {
  AssemblyReport report =
      parseAssemblerLog(assemble(unit::kIgnoredRegistersPtx).log);
  ASSERT_EQ(report.losses.size(), 1u);
  EXPECT_EQ(report.losses[0].rfind("(C7508)", 0), 0u) << report.losses[0];
}

/// A script in place of ptxas.
class FakePtxas : public testing::Test {
protected:
  FakePtxas()
      : folder_(fs::path(testing::TempDir()) /
                ("fake_ptxas_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FakePtxas() override { fs::remove_all(folder_); }

  std::string script(const std::string &body) {
    fs::path path = folder_ / "ptxas";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  fs::path folder_;
};

TEST_F(FakePtxas, GetsThePtxAndGivesItsOutput) {
  // $3 is the input, $5 the output.
  auto code =
      assembleWithPtxas(script("echo log; echo $1 $2 $4 $6; /bin/cat $3 > $5"),
                        "text", "sm_90a", 1);
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_EQ(code->cubin, "text");
  EXPECT_EQ(code->log, "log\n-v -arch=sm_90a -o -O1\n");
}

TEST_F(FakePtxas, LeavesNoFiles) {
  fs::path seen = folder_ / "seen";
  std::string program = script("echo $5 > " + seen.string() + "; exit 3");
  auto code = assembleWithPtxas(program, "text", "sm_90a", 3);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->failure, "ended with 3");
  std::string output;
  std::ifstream(seen) >> output;
  ASSERT_NE(output, "");
  EXPECT_FALSE(fs::exists(fs::path(output).parent_path()));
}

TEST_F(FakePtxas, IsEndedWhenItTakesTooLong) {
  auto code = assembleWithPtxas(script("echo busy; exec /bin/sleep 100"),
                                "text", "sm_90a", 3, 300ms);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->failure, "did not end within 300 ms");
  EXPECT_EQ(code->log, "busy\n");
}

TEST_F(FakePtxas, MustWriteSomething) {
  auto code = assembleWithPtxas(script("exit 0"), "text", "sm_90a", 3);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), ErrorCode::IoError);
}

TEST_F(FakePtxas, IsFoundInItsPlaces) {
  std::string program = script("exit 0");
  Environment settings;
  settings.searchPath = "relative::/nowhere:" + folder_.string();
  EXPECT_EQ(*findPtxas(settings), program);
  settings.searchPath = "";
  settings.ptxas = program;
  EXPECT_EQ(*findPtxas(settings), program);

  settings.ptxas = folder_ / "absent";
  auto absent = findPtxas(settings);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), ErrorCode::IoError);
  EXPECT_EQ(absent.status().message(),
            "SPARGEJIT_PTXAS: expected the path of a ptxas program, got \"" +
                settings.ptxas + "\"");
}

TEST_F(FakePtxas, HasItsDisassemblerBesideIt) {
  std::string ptxas = script("exit 0");
  Environment settings;
  auto none = findDisassembler(settings, ptxas);
  if (!none.ok()) // else this machine has one in the usual place
    EXPECT_EQ(none.status().code(), ErrorCode::Unsupported);
  fs::copy_file(ptxas, folder_ / "cuobjdump");
  EXPECT_EQ(fs::path(*findDisassembler(settings, ptxas)).parent_path(),
            folder_);
}

} // namespace
} // namespace spargejit::jit

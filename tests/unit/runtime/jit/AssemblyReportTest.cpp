// SPDX-License-Identifier: Apache-2.0
//
// Recorded logs of ptxas 13.0.88 for sm_90a, and what they mean.
#include "runtime/jit/AssemblyReport.h"

#include <gtest/gtest.h>

namespace spargejit::jit {
namespace {

using Texts = std::vector<std::string>;

TEST(AssemblyReport, ReadsACleanLog) {
  auto report = parseAssemblerLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'add_one' for 'sm_90a'\n"
      "ptxas info    : Function properties for add_one\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 1040 bytes smem\n"
      "ptxas info    : Compile time = 48.173 ms\n");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.barriers, 16);
  EXPECT_EQ(report.staticSharedBytes, 1040);
  EXPECT_EQ(report.stackBytes, 0);
  EXPECT_EQ(report.warnings, Texts());
  EXPECT_EQ(faultsOf(report), Texts());
  EXPECT_EQ(describeReport(report),
            "168 registers, 0 bytes of stack, 0 bytes of spill stores and 0 of "
            "loads, 16 barriers, 1040 bytes of static shared memory");
}

TEST(AssemblyReport, FindsSpills) {
  auto report = parseAssemblerLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'spills' for 'sm_90a'\n"
      "ptxas info    : Function properties for spills\n"
      "    328 bytes stack frame, 340 bytes spill stores, 376 bytes spill "
      "loads\n"
      "ptxas info    : Used 24 registers, used 1 barriers, 328 bytes "
      "cumulative "
      "stack size\n");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.stackBytes, 328);
  EXPECT_EQ(report.spillStoreBytes, 340);
  EXPECT_EQ(report.spillLoadBytes, 376);
  EXPECT_EQ(faultsOf(report),
            Texts{"expected no spilled registers, got 340 bytes of stores and "
                  "376 of loads"});
}

TEST(AssemblyReport, FindsAStackWithoutSpills) {
  AssemblyReport report;
  report.stackBytes = 16;
  EXPECT_EQ(faultsOf(report), Texts{"expected no stack, got 16 bytes"});
}

TEST(AssemblyReport, FindsAnIgnoredRegisterCount) {
  auto report = parseAssemblerLog(
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' "
      "ignored; unable to determine register count at entry.\n"
      "ptxas info    : Function properties for ignored\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  EXPECT_EQ(faultsOf(report),
            Texts{"(C7508) Potential Performance Loss: 'setmaxnreg' ignored; "
                  "unable to determine register count at entry."});
}

TEST(AssemblyReport, FindsProductsThatRunOneByOne) {
  auto report = parseAssemblerLog(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized due to insufficient register resources for "
      "the wgmma pipeline in the function 'f'\n"
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 45 "
      "by "
      "compiler to allow use of registers in GMMA in function 'f'\n");
  EXPECT_FALSE(report.complete);
  ASSERT_EQ(faultsOf(report).size(), 2u);
  EXPECT_EQ(faultsOf(report)[0].rfind("(C7510)", 0), 0u);
  EXPECT_EQ(faultsOf(report)[1].rfind("(C7519)", 0), 0u);
}

TEST(AssemblyReport, TakesTheWorstOfSeveralFunctions) {
  auto report = parseAssemblerLog(
      "    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 40 registers\n"
      "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 2 barriers\n");
  EXPECT_EQ(report.registers, 40);
  EXPECT_EQ(report.barriers, 2);
  EXPECT_EQ(report.stackBytes, 16);
  EXPECT_EQ(report.spillStoreBytes, 8);
}

TEST(AssemblyReport, KeepsWarningsApart) {
  auto report = parseAssemblerLog(
      "ptxas warning : Unresolved extern variable 'x' in whole program\n"
      "ptxas info    : Function properties for warning_sign\n");
  EXPECT_EQ(
      report.warnings,
      Texts{"ptxas warning : Unresolved extern variable 'x' in whole program"});
  EXPECT_EQ(faultsOf(report), Texts());
}

TEST(AssemblyReport, IsIncompleteWithoutNumbers) {
  EXPECT_FALSE(parseAssemblerLog("").complete);
  EXPECT_FALSE(parseAssemblerLog("ptxas info    : many registers\n").complete);
  EXPECT_FALSE(parseAssemblerLog("Used 24 registers").complete);
}

} // namespace
} // namespace spargejit::jit

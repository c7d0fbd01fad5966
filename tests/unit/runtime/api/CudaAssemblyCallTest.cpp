// SPDX-License-Identifier: Apache-2.0
//
// Calls on a GPU whose kernels cannot be assembled or loaded, and who
// assembles.
#include "tests/unit/runtime/api/CudaCallFixture.h"

#include <unistd.h>

namespace spargejit::unit {
namespace {

using CudaAssemblyCallTest = CudaCallTest;

TEST_F(CudaAssemblyCallTest, RefusesAKernelThatSpills) {
  fake_.infoLog =
      "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill "
      "loads\nUsed 168 registers\n";
  for (int i = 0; i < 2; ++i) {
    Status status = run();
    EXPECT_EQ(status.code(), ErrorCode::CompileFailed);
    const std::string &message = status.message();
    EXPECT_EQ(message.rfind("while assembling attention_fwd for sm_90a (", 0),
              0u)
        << message;
    for (const char *part :
         {"expected no spilled registers, got 8 bytes of stores and 4 of loads",
          "PTX: kept where SPARGEJIT_DUMP names a folder",
          "assembler: cuModuleLoadDataEx of ", "CUDA 13.0",
          "\n    16 bytes stack frame"})
      EXPECT_NE(message.find(part), std::string::npos) << part;
  }
  // Remembered, not made again.
  EXPECT_EQ(fake_.callsOf("cuModuleLoadDataEx"), 1);
}

TEST_F(CudaAssemblyCallTest, RefusesSpillsThatOnlyTheFunctionTells) {
  fake_.localBytes = 8;
  Status status = run();
  EXPECT_EQ(status.code(), ErrorCode::CompileFailed);
  EXPECT_NE(status.message().find("expected no stack, got 8 bytes"),
            std::string::npos)
      << status.message();
}

TEST_F(CudaAssemblyCallTest, GivesTheAssemblersWordsAndThePtx) {
  auto folder = std::filesystem::path(testing::TempDir()) /
                ("cuda_call_dump_" + std::to_string(::getpid()));
  settings_.dumpFolder = folder;
  makeEngine();
  fake_.failures["cuModuleLoadDataEx"] = {cuda::result::kInvalidPtx};
  fake_.errorLog = "line 8; error : no";
  Status status = run();
  EXPECT_EQ(status.code(), ErrorCode::CompileFailed);
  const std::string &message = status.message();
  std::size_t at = message.find("PTX: ");
  ASSERT_NE(at, std::string::npos) << message;
  std::string path = message.substr(at + 5, message.find(';', at) - at - 5);
  EXPECT_TRUE(std::filesystem::exists(path)) << message;
  EXPECT_NE(path.find("50-asm.ptx"), std::string::npos);
  EXPECT_NE(message.find("line 8; error : no"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_F(CudaAssemblyCallTest, TriesAgainAfterTheDriverFailed) {
  fake_.failures["cuModuleLoadDataEx"] = {cuda::result::kOutOfMemory};
  Status status = run();
  EXPECT_EQ(status.code(), ErrorCode::OutOfResources);
  EXPECT_EQ(
      status.message().rfind("while loading attention_fwd for sm_90a (", 0), 0u)
      << status.message();
  EXPECT_EQ(run().message(), "");
  EXPECT_EQ(generator_.compiled, 1);
}

TEST_F(CudaAssemblyCallTest, AssemblesWithTheProgramThatIsNamed) {
  auto path = std::filesystem::path(testing::TempDir()) /
              ("cuda_call_ptxas_" + std::to_string(::getpid()));
  {
    std::ofstream script(path);
    script << "#!/bin/sh\n"
              "echo '    0 bytes stack frame, 0 bytes spill stores, 0 bytes "
              "spill loads'\n"
              "echo 'ptxas info    : Used 168 registers'\n"
              "(echo assembled; /bin/cat $3) > $5\n";
  }
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  settings_.ptxas = path;
  makeEngine();
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.lastImage.rfind("assembled\n.version 8.6", 0), 0u)
      << fake_.lastImage;
  std::filesystem::remove(path);
}

TEST_F(CudaAssemblyCallTest, GivesTheProgramsWordsForBrokenCode) {
  // Stands in for ptxas, and refuses.
  settings_.ptxas = "/bin/false";
  makeEngine();
  Status status = run();
  EXPECT_EQ(status.code(), ErrorCode::CompileFailed);
  EXPECT_NE(status.message().find(": ended with 1; PTX: kept where "
                                  "SPARGEJIT_DUMP names a folder; assembler: "
                                  "/bin/false -v -arch=sm_90a kernel.ptx -o "
                                  "kernel.cubin -O3"),
            std::string::npos)
      << status.message();
}

} // namespace
} // namespace spargejit::unit

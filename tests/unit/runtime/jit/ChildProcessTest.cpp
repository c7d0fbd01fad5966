// SPDX-License-Identifier: Apache-2.0
//
// Other programs, with what only they know.
#include "runtime/jit/ChildProcess.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spargejit::jit {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, TakesOutputErrorsAndExitCode) {
  auto outcome = runProgram(
      {"/bin/sh", "-c", "echo out; echo err >&2; read line; exit 7"}, 10s);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->exitCode, 7);
  EXPECT_FALSE(outcome->timedOut);
  EXPECT_EQ(outcome->output, "out\nerr\n");
}

TEST(ChildProcess, TakesMoreOutputThanAPipeHolds) {
  auto outcome = runProgram(
      {"/bin/sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"}, 10s);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, std::string(300000, 'x'));
}

TEST(ChildProcess, SeesNoShellInArguments) {
  auto outcome = runProgram({"/bin/echo", "$HOME", "a b", "`id`"}, 10s);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "$HOME a b `id`\n");
}

TEST(ChildProcess, PassesNothingOfTheEnvironment) {
  setenv("SPARGEJIT_SECRET", "1", 1);
  auto outcome = runProgram({"/usr/bin/env"}, 10s);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "LC_ALL=C\nGLIBC_TUNABLES=glibc.malloc."
                             "hugetlb=1:glibc.malloc.top_pad=67108864\n");
}

TEST(ChildProcess, TellsASignal) {
  auto outcome = runProgram({"/bin/sh", "-c", "kill -TERM $$"}, 10s);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exitCode, 128 + 15);
}

TEST(ChildProcess, EndsWhatTakesTooLong) {
  auto begin = std::chrono::steady_clock::now();
  auto outcome = runProgram(
      {"/bin/sh", "-c", "echo started; sleep 100 & sleep 100"}, 300ms);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->timedOut);
  EXPECT_EQ(outcome->output, "started\n");
  EXPECT_EQ(outcome->exitCode, 128 + 9);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(ChildProcess, TellsWhyAProgramDoesNotStart) {
  auto outcome = runProgram({"/nowhere/ptxas", "-v"}, 1s);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), ErrorCode::IoError);
  EXPECT_EQ(outcome.status().message(),
            "/nowhere/ptxas: cannot be started: No such file or directory");
}

TEST(ChildProcess, WritesCommandsAsAShellReadsThem) {
  EXPECT_EQ(commandLine({"/a/ptxas", "-arch=sm_90a", "it's", "", "a b"}),
            "/a/ptxas -arch=sm_90a 'it'\\''s' '' 'a b'");
}

} // namespace
} // namespace spargejit::jit

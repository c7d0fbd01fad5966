// SPDX-License-Identifier: Apache-2.0
//
// The library is a guest in its process: compiling, running and failing leave
// signal handlers, streams, threads and floating-point state as they were.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace spargejit::numerics {
namespace {

/// Handler and flags of every signal.
std::vector<std::pair<void (*)(int), int>> signalHandlers() {
  std::vector<std::pair<void (*)(int), int>> handlers;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) == 0)
      handlers.emplace_back(action.sa_handler, action.sa_flags);
  }
  return handlers;
}

std::size_t threadCount() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto &entry :
       std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

class ProcessState : public BackendTest {
protected:
  /// A call whose kernels nobody has compiled yet, with a head dimension of
  /// the caller's own, and a call that fails in the compiler.
  void compileRunAndFail(std::int64_t headDim) {
    Random random = randomForTest();
    AttentionTrial trial(
        backend(), {.qLen = 200, .kvLen = 300, .headDim = headDim}, random);
    trial.config.threads = 1;
    trial.config.method = "spargeattention2";
    ASSERT_TRUE(succeeded(trial.run()));
    const std::string path = testing::TempDir() + "/process_state_" +
                             std::to_string(getpid()) + ".mlir";
    std::ofstream(path) << "sparge.method @broken(%q: !sparge.nothing\n";
    trial.config.method = path;
    EXPECT_TRUE(failedWith(trial.run(), ErrorCode::CompileFailed, {path}));
    std::filesystem::remove(path);
  }
};
SPARGEJIT_ON_EVERY_BACKEND(ProcessState);

void ownHandler(int) {}

// A host that handles SIGSEGV and SIGINT itself keeps its handlers, and signals
// that nobody handled stay so.
// cases: 89
TEST_P(ProcessState, SignalHandlersStay) {
  struct sigaction own = {};
  own.sa_handler = ownHandler;
  struct sigaction oldInterrupt = {};
  struct sigaction oldUser = {};
  sigaction(SIGINT, &own, &oldInterrupt);
  sigaction(SIGUSR1, &own, &oldUser);
  const auto before = signalHandlers();
  compileRunAndFail(176);
  EXPECT_EQ(signalHandlers(), before);
  sigaction(SIGINT, &oldInterrupt, nullptr);
  sigaction(SIGUSR1, &oldUser, nullptr);
}

TEST_P(ProcessState, NothingIsPrinted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  compileRunAndFail(184);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// On one thread, everything happens on the caller's.
TEST_P(ProcessState, NoThreadIsLeftBehind) {
  const std::size_t before = threadCount();
  compileRunAndFail(200);
  EXPECT_EQ(threadCount(), before);
}

TEST_P(ProcessState, FloatingPointStateStays) {
  const int rounding = std::fegetround();
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  compileRunAndFail(208);
  EXPECT_EQ(std::fegetround(), rounding);
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), locale);
  volatile float subnormal = 1e-40F;
  volatile float one = 1;
  EXPECT_NE(subnormal * one, 0) << "subnormal numbers are flushed to zero";
}

} // namespace
} // namespace spargejit::numerics

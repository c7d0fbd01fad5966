// SPDX-License-Identifier: Apache-2.0
//
// Many threads in the library at once: cold on one problem, warm on many,
// failing beside succeeding.
#include "spargejit/library.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace spargejit::numerics {
namespace {

constexpr int kThreads = 16;

/// Runs body(thread) on kThreads threads that start together.
template <typename Body>
void onThreads(Body body) {
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&start, &body, thread] {
      start.arrive_and_wait();
      body(thread);
    });
  for (std::thread &thread : threads)
    thread.join();
}

class Concurrency : public BackendTest {};
SPARGEJIT_ON_EVERY_BACKEND(Concurrency);

// Sixteen threads meet a problem that nobody has compiled for: everyone gets
// the right result, and every kernel is compiled once. The head dimension
// belongs to this test alone.
// cases: 72, 77
TEST_P(Concurrency, ColdCallsCompileEachKernelOnce) {
  SPARGEJIT_NEEDS(selection);
  const AttentionCase shape = {.batch = 1,
                               .qHeads = 2,
                               .kvHeads = 2,
                               .qLen = 300,
                               .kvLen = 400,
                               .headDim = 152};
  std::vector<std::unique_ptr<AttentionTrial>> trials;
  for (int thread = 0; thread < kThreads; ++thread) {
    Random random = randomForTest(); // the same numbers for all
    trials.push_back(
        std::make_unique<AttentionTrial>(backend(), shape, random));
    trials.back()->config.method = "spargeattention2";
    trials.back()->config.topK = 0.3;
    trials.back()->config.topP = 0.5;
  }
  const Counters before = counters();
  std::vector<Status> statuses(kThreads);
  onThreads([&](int thread) {
    const auto at = static_cast<std::size_t>(thread);
    statuses[at] = trials[at]->run();
  });
  const Counters after = counters();
  for (std::size_t at = 0; at < kThreads; ++at) {
    ASSERT_TRUE(succeeded(statuses[at])) << "thread " << at;
    EXPECT_TRUE(trials[at]->memoryIsIntact()) << "thread " << at;
    EXPECT_EQ(trials[at]->o.bits(), trials[0]->o.bits()) << "thread " << at;
    EXPECT_EQ(trials[at]->lse.bits(), trials[0]->lse.bits());
  }
  // Pooling of q, pooling of k, selection, attention.
  EXPECT_LE(after.kernelsCompiled - before.kernelsCompiled, 4);
  EXPECT_GE(after.kernelsCompiled - before.kernelsCompiled, 3);

  // And the result is right: attend to the lists that a call hands back.
  Random random = randomForTest(1);
  const Result<BlockLists> lists =
      selectBlocks(trials[0]->q.view(), trials[0]->k.view(), trials[0]->config);
  ASSERT_TRUE(succeeded(lists.status()));
  const std::vector<std::byte> fused = trials[0]->o.bits();
  trials[0]->useLists(*lists);
  ASSERT_TRUE(trials[0]->isRight(random));
  EXPECT_EQ(trials[0]->o.bits(), fused);
}

// Different problems at once, each thread its own shapes again and again: no
// thread sees another's workspace or lists.
TEST_P(Concurrency, WarmCallsDoNotDisturbEachOther) {
  const std::int64_t rounds = repetitions(20, 4);
  std::vector<testing::AssertionResult> results(kThreads,
                                                testing::AssertionSuccess());
  const std::uint64_t seed = randomForTest().next();
  onThreads([&](int thread) {
    Random random(seed + static_cast<std::uint64_t>(thread));
    for (std::int64_t round = 0; round < rounds; ++round) {
      AttentionCase shape = {.qLen = 1 + random.below(200),
                             .kvLen = 1 + random.below(300),
                             .headDim = thread % 2 == 0 ? 32 : 16};
      AttentionTrial trial(backend(), shape, random);
      if (thread % 3 != 0)
        trial.useMask(shape.randomMask(random, 0.5, true));
      trial.config.threads = thread % 4;
      auto result = trial.isRight(random);
      if (!result)
        results[static_cast<std::size_t>(thread)] = std::move(result);
    }
  });
  for (const auto &result : results)
    EXPECT_TRUE(result);
}

// Calls that are refused, beside calls that are not.
TEST_P(Concurrency, RefusedCallsDisturbNobody) {
  std::vector<Status> statuses(kThreads);
  onThreads([&](int thread) {
    Random random(static_cast<std::uint64_t>(thread));
    AttentionTrial trial(backend(), {.qLen = 64, .kvLen = 64, .headDim = 16},
                         random);
    if (thread % 2 == 0)
      trial.config.method = "/nonexistent/method.mlir";
    statuses[static_cast<std::size_t>(thread)] = trial.run();
  });
  for (std::size_t at = 0; at < kThreads; ++at) {
    if (at % 2 == 0)
      EXPECT_TRUE(failedWith(statuses[at], ErrorCode::IoError,
                             {"/nonexistent/method.mlir"}));
    else
      EXPECT_TRUE(succeeded(statuses[at]));
  }
}

} // namespace
} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// What makes a call compile and what does not, how long it takes, and what a
// warm call costs. Each test has head dimensions of its own, so that its first
// call is the first of the process whatever ran before.
#include "spargejit/library.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/Sanitized.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <vector>

namespace spargejit::numerics {
namespace {

using Clock = std::chrono::steady_clock;

/// Processor time of all threads, in seconds: what a cold call takes on a
/// machine that does nothing else.
double processorSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

std::int64_t kernelsCompiled() { return counters().kernelsCompiled; }

class CompileCount : public BackendTest {
protected:
  Random random = randomForTest();
};
SPARGEJIT_ON_EVERY_BACKEND(CompileCount);

// Fifty lengths, one configuration: lengths that are a multiple of the tile and
// lengths that are not may have a kernel each, and no more. The algorithm is
// the same for all of them.
// cases: 79
TEST_P(CompileCount, FiftyLengthsCompileAtMostTwoKernels) {
  for (const std::string method : {"dense", "block_sparse", "topk"}) {
    const std::int64_t before = kernelsCompiled();
    for (std::int64_t length = 0; length < 50; ++length) {
      AttentionCase shape = {
          .qLen = 1 + length * 13, .kvLen = 700 - length * 9, .headDim = 56};
      AttentionTrial trial(backend(), shape, random);
      if (method == "block_sparse")
        trial.useLists(shape.randomMask(random, 0.5), random);
      trial.config.method = method;
      ASSERT_TRUE(succeeded(trial.run()));
      if (method != "topk")
        ASSERT_TRUE(trial.matchesReference(random));
    }
    // Selecting takes up to three kernels more: two poolings and the choice.
    EXPECT_LE(kernelsCompiled() - before, method == "topk" ? 5 : 2) << method;
    EXPECT_GT(counters().kernelCacheHits, 0);
  }
}

// Scale, k and p are numbers of the call, not of the kernel.
// cases: 77
TEST_P(CompileCount, OtherScalesAndSharesCompileNothing) {
  AttentionTrial trial(backend(), {.qLen = 200, .kvLen = 300, .headDim = 88},
                       random);
  trial.config.method = "spargeattention2";
  ASSERT_TRUE(succeeded(trial.run()));
  const std::int64_t before = kernelsCompiled();
  for (int call = 0; call < 100; ++call) {
    trial.config.softmaxScale = 0.01 * call - 0.3;
    trial.config.topK = 0.01 * call;
    trial.config.topP = 1 - 0.01 * call;
    ASSERT_TRUE(succeeded(trial.run()));
  }
  EXPECT_EQ(kernelsCompiled(), before);
}

// Layout, batch, heads, threads, the wish for lse and the spelling of the mask
// are no reasons to compile either.
TEST_P(CompileCount, OtherViewsAndOutputsCompileNothing) {
  AttentionCase shape = {.qLen = 200, .kvLen = 300, .headDim = 120};
  AttentionTrial first(backend(), shape, random);
  first.useLists(shape.fullMask(), random);
  ASSERT_TRUE(succeeded(first.run()));
  const std::int64_t before = kernelsCompiled();
  for (const Layout layout :
       {Layout::LengthMajor, Layout::PackedQkv, Layout::Reversed}) {
    shape.inputs.layout = shape.outputs.layout = layout;
    shape.batch = 2;
    shape.kvHeads = 1 + random.below(2);
    shape.qHeads = 4;
    AttentionTrial trial(backend(), shape, random);
    trial.useMask(shape.randomMask(random, 0.5));
    trial.wantsLse = false;
    trial.config.threads = 1;
    ASSERT_TRUE(succeeded(trial.run()));
  }
  EXPECT_EQ(kernelsCompiled(), before);
}

TEST_P(CompileCount, PreparedCallsCompileNothing) {
  AttentionTrial trial(backend(), {.qLen = 200, .kvLen = 300, .headDim = 136},
                       random);
  trial.config.method = "spargeattention2";
  const std::int64_t cold = kernelsCompiled();
  ASSERT_TRUE(succeeded(
      prepare(trial.q.view(), trial.k.view(), trial.v.view(), trial.config)));
  const std::int64_t prepared = kernelsCompiled();
  EXPECT_GT(prepared, cold);
  ASSERT_TRUE(succeeded(trial.run()));
  EXPECT_EQ(kernelsCompiled(), prepared);
}

// cases: 78
TEST_P(CompileCount, ColdForwardKernelCompilesWithinASecond) {
  for (const DataType dtype :
       {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
    for (const bool causal : {false, true}) {
      AttentionCase shape = {.dtype = dtype,
                             .qLen = 128,
                             .kvLen = 128,
                             .headDim = 128,
                             .causal = causal};
      AttentionTrial trial(backend(), shape, random);
      trial.useLists(shape.fullMask(), random);
      const Counters before = counters();
      const double start = processorSeconds();
      ASSERT_TRUE(succeeded(trial.run()));
      const double seconds = processorSeconds() - start;
      const Counters after = counters();
      ASSERT_EQ(after.kernelsCompiled - before.kernelsCompiled, 1);
      std::printf(
          "%s%s: cold call %.3f s of processor time, compiling %.3f s\n",
          dataTypeName(dtype), causal ? " causal" : "", seconds,
          (after.compileMilliseconds - before.compileMilliseconds) / 1e3);
      if (!kIsSanitized)
        EXPECT_LT(seconds, 1.0);
    }
  }
}

/// Median of 2000 warm calls, in microseconds.
double medianMicroseconds(AttentionTrial &trial) {
  AttentionOutputs outputs;
  std::vector<double> times;
  for (int call = 0; call < 2000; ++call) {
    const auto start = Clock::now();
    const Status status =
        attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                      trial.v.view(), trial.config, outputs);
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - start)
            .count());
    EXPECT_TRUE(succeeded(status));
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

// Eight tokens of head dimension 8 are about 1000 multiplications, so all of
// the time is overhead.
TEST_P(CompileCount, WarmTinyCallCostsLessThan20Microseconds) {
  AttentionTrial trial(backend(), {.qLen = 8, .kvLen = 8, .headDim = 8},
                       random);
  trial.useLists(trial.shape.fullMask(), random);
  for (const int threads : {0, 1}) {
    trial.config.threads = threads;
    ASSERT_TRUE(succeeded(trial.run()));
    // The best of three, because a neighbour's burst is not the library's cost.
    double median = medianMicroseconds(trial);
    for (int round = 1; round < 3; ++round)
      median = std::min(median, medianMicroseconds(trial));
    std::printf("warm call, threads %d: median %.2f us\n", threads, median);
    if (!kIsSanitized)
      EXPECT_LT(median, 20);
  }
}

TEST_P(CompileCount, WarmCallsTakeNoMemory) {
  AttentionTrial trial(backend(),
                       {.batch = 2, .qLen = 500, .kvLen = 700, .headDim = 168},
                       random);
  trial.config.method = "spargeattention2";
  for (int call = 0; call < 10; ++call)
    ASSERT_TRUE(succeeded(trial.run()));
  const Counters before = counters();
  for (int call = 0; call < 100; ++call)
    ASSERT_TRUE(succeeded(trial.run()));
  EXPECT_EQ(counters().bytesAllocated, before.bytesAllocated);
  EXPECT_EQ(counters().plansMade, before.plansMade);
}

} // namespace
} // namespace spargejit::numerics

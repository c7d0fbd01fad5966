// SPDX-License-Identifier: Apache-2.0
//
// A video's length: 96,000 tokens, one head. Selecting and attending to 5 % of
// the blocks must fit in memory of order N and be right. A program of its own,
// because the peak memory of a process cannot be taken back.
#include "spargejit/attention.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sys/resource.h>
#include <vector>

namespace spargejit::numerics {
namespace {

constexpr std::int64_t kTokens = 96000;
constexpr std::int64_t kHeadDim = 128;

double peakMebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024; // reported in KiB
}

Tensor randomTensor(Random &random) {
  Tensor tensor =
      Tensor::allocate(DataType::Float32, {1, 1, kTokens, kHeadDim}).value();
  for (std::int64_t i = 0; i < tensor.view().elementCount(); ++i)
    tensor.data<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

// cases: 31, 65, 67
TEST(LargeProblem, PeakMemoryStaysBelowAGibibyte) {
  Random random = randomForTest();
  const Tensor q = randomTensor(random);
  const Tensor k = randomTensor(random);
  const Tensor v = randomTensor(random);
  const Tensor lse =
      Tensor::allocate(DataType::Float32, {1, 1, kTokens}).value();
  AttentionConfig config;
  config.method = "topk";
  config.topK = 0.05;
  BlockLists lists;
  AttentionOutputs outputs;
  outputs.lse = &lse.view();
  outputs.lists = &lists;
  const double before = peakMebibytes();
  const auto start = std::chrono::steady_clock::now();
  const Result<Tensor> o =
      attention(q.view(), k.view(), v.view(), config, outputs);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  const double peak = peakMebibytes();
  ASSERT_TRUE(succeeded(o.status()));
  std::printf("%.2f s; peak %.0f MiB, of which %.0f MiB before the call\n",
              seconds, peak, before);
  EXPECT_LT(peak, 1024);
  EXPECT_NEAR(lists.density(), 0.05, 0.001);

  // Some rows against float64, the last ones among them.
  std::vector<std::int64_t> rows = {0,     1,           65535,
                                    65536, kTokens - 2, kTokens - 1};
  while (rows.size() < 24)
    rows.push_back(random.below(kTokens));
  const BlockMask mask = reference::maskOfLists(
      lists.indices.view(), lists.counts.view(), kTokens / 64);
  reference::AttentionArguments arguments;
  arguments.q = q.view();
  arguments.k = k.view();
  arguments.v = v.view();
  arguments.mask = &mask;
  arguments.maskBlockQ = 128;
  arguments.maskBlockKv = 64;
  arguments.softmaxScale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  arguments.rows = rows;
  const auto right = reference::referenceAttention(arguments);
  std::vector<double> output;
  std::vector<double> sums;
  for (const std::int64_t row : rows) {
    const float *first = o->data<float>() + row * kHeadDim;
    output.insert(output.end(), first, first + kHeadDim);
    sums.push_back(lse.data<float>()[row]);
  }
  const auto difference = reference::compare(output, right.o);
  EXPECT_TRUE(
      difference.isWithin(reference::attentionBounds(DataType::Float32)))
      << difference.describe({24, kHeadDim});
  EXPECT_TRUE(reference::compare(sums, right.lse)
                  .isWithin(reference::lseBound(DataType::Float32, 10)));
  // And every element was written.
  const float *data = o->data<float>();
  EXPECT_TRUE(std::all_of(data, data + o->view().elementCount(),
                          [](float value) { return std::isfinite(value); }));
}

} // namespace
} // namespace spargejit::numerics

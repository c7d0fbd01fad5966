// SPDX-License-Identifier: Apache-2.0
//
// Attention on drawn problems: lengths, heads, mask blocks, counts per row,
// order of lists, what stands behind the count, strides, surroundings, scale
// and causality all at random. SPARGEJIT_TEST_SEED repeats a run.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestBackend.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <vector>

namespace spargejit::numerics {
namespace {

std::int64_t drawLength(Random &random) {
  if (random.chance(0.5))
    return random.pick(std::vector<std::int64_t>{1, 31, 63, 64, 65, 127, 128,
                                                 129, 255, 257, 512});
  return 1 + random.below(random.chance(0.1) ? 1500 : 400);
}

Placement drawPlacement(const TestBackend &backend, Random &random) {
  Placement placement;
  placement.layout = random.pick(std::vector<Layout>{
      Layout::HeadMajor, Layout::LengthMajor, Layout::PackedQkv,
      Layout::PaddedRows, Layout::Reversed, Layout::OddBase});
  if (backend.hasFences() && random.chance(0.4))
    placement.surroundings = Surroundings::Fence;
  placement.fenceAtEnd = random.chance(0.7);
  return placement;
}

AttentionCase drawCase(const TestBackend &backend, Random &random) {
  AttentionCase c;
  // Kernels are specialised by type, head dimension, mask block and causality:
  // these are drawn from few values, so that a run compiles some dozens.
  c.dtype = random.pick(std::vector<DataType>{
      DataType::Float32, DataType::BFloat16, DataType::Float16});
  c.headDim = random.pick(std::vector<std::int64_t>{40, 64});
  c.maskBlockQ = c.headDim == 40 ? 64 : 128;
  c.maskBlockKv = random.pick(std::vector<std::int64_t>{16, 64, 128});
  c.causal = random.chance(0.4);
  c.batch = 1 + random.below(2);
  c.kvHeads = 1 + random.below(2);
  c.qHeads = c.kvHeads * (1 + random.below(3));
  c.qLen = drawLength(random);
  c.kvLen = drawLength(random);
  if (random.chance(0.2))
    c.softmaxScale = random.normal() * 0.3;
  c.inputs = drawPlacement(backend, random);
  c.outputs = drawPlacement(backend, random);
  return c;
}

class AttentionProperties : public BackendTest {};
SPARGEJIT_ON_EVERY_BACKEND(AttentionProperties);

TEST_P(AttentionProperties, DrawnProblemsAreRight) {
  const std::int64_t draws = repetitions(300, 60);
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    Random random = randomForTest(static_cast<std::uint64_t>(draw));
    const AttentionCase shape = drawCase(backend(), random);
    AttentionTrial trial(backend(), shape, random);
    trial.wantsLse = random.chance(0.8);
    trial.config.threads = static_cast<int>(random.below(4));
    const BlockMask mask = shape.randomMask(random, random.uniform(), true);
    const std::int64_t spelling = random.below(10);
    if (spelling < 2)
      trial.useMask(mask);
    else if (spelling < 9)
      trial.useLists(mask, random,
                     {.shuffled = random.chance(0.7),
                      .garbageSuffix = random.chance(0.7),
                      .strayEntries = random.chance(0.3),
                      .spareSlots = random.below(4)});
    ASSERT_TRUE(trial.isRight(random)) << "draw " << draw;
  }
}

} // namespace
} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// The table: attention against the float64 reference over data types, head
// dimensions, mask blocks, lengths and groupings of heads.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spargejit::numerics {
namespace {

const std::vector<std::int64_t> kMaskBlocksQ = {64, 128};
const std::vector<std::int64_t> kMaskBlocksKv = {16, 32, 64, 128};

/// What a kernel may be specialised for beside sizes and type.
enum class Mode { Lists, CausalLists, Dense, CausalDense };
const std::vector<Mode> kModes = {Mode::Lists, Mode::CausalLists, Mode::Dense,
                                  Mode::CausalDense};

void expectRight(TestBackend &backend, AttentionCase shape, Mode mode,
                 Random &random) {
  shape.causal = mode == Mode::CausalLists || mode == Mode::CausalDense;
  AttentionTrial trial(backend, shape, random);
  if (mode == Mode::Lists || mode == Mode::CausalLists)
    trial.useLists(shape.randomMask(random, 0.5, true), random,
                   {.shuffled = true, .garbageSuffix = true, .spareSlots = 1});
  EXPECT_TRUE(trial.isRight(random));
}

class AttentionShapes : public TypedBackendTest {};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionShapes);

// Head dimensions that are no power of two, no multiple of 16 or of a vector
// register: 72, 80 and 96 are those of real models, 8 and 256 the ends.
// cases: 37, 60
TEST_P(AttentionShapes, EveryHeadDimension) {
  const std::vector<std::int64_t> inEveryMode = {
      8, 16, 24, 40, 64, 72, 80, 96, 104, 128, 160, 192, 248, 256};
  Random random = randomForTest();
  std::size_t turn = 0;
  for (std::int64_t headDim = 8; headDim <= 256; headDim += 8) {
    const bool isListed = std::find(inEveryMode.begin(), inEveryMode.end(),
                                    headDim) != inEveryMode.end();
    if (isReduced() && headDim % 40 != 0 && headDim != 256)
      continue;
    for (std::size_t m = 0; m < (isListed && !isReduced() ? 3U : 1U); ++m) {
      // Modes and mask blocks go round at different paces, so that all pairs
      // come up.
      ++turn;
      AttentionCase shape;
      shape.dtype = dtype();
      shape.headDim = headDim;
      shape.maskBlockQ = kMaskBlocksQ[turn % 2];
      shape.maskBlockKv = kMaskBlocksKv[(turn / 2) % 4];
      shape.kvHeads = 1 + static_cast<std::int64_t>(turn % 2);
      shape.qHeads = 2;
      shape.qLen = 1 + random.below(260);
      shape.kvLen = 1 + random.below(340);
      expectRight(backend(), shape, kModes[(turn + m) % 4], random);
    }
  }
}

TEST_P(AttentionShapes, EveryMaskBlock) {
  Random random = randomForTest();
  for (const std::int64_t maskBlockQ : kMaskBlocksQ) {
    for (const std::int64_t maskBlockKv : kMaskBlocksKv) {
      for (const Mode mode : {Mode::Lists, Mode::CausalLists}) {
        AttentionCase shape;
        shape.dtype = dtype();
        shape.maskBlockQ = maskBlockQ;
        shape.maskBlockKv = maskBlockKv;
        shape.qHeads = 2;
        shape.qLen = 129 + random.below(300);
        shape.kvLen = 129 + random.below(600);
        expectRight(backend(), shape, mode, random);
      }
    }
  }
}

// A head dimension that leaves little room for a tile, under the largest mask
// block: the tile may shrink, the mask's meaning may not.
// cases: 6
TEST_P(AttentionShapes, WideHeadsUnderTheLargestMaskBlock) {
  Random random = randomForTest();
  for (const std::int64_t headDim : {192, 256})
    expectRight(backend(),
                {.dtype = dtype(),
                 .qLen = 300,
                 .kvLen = 500,
                 .headDim = headDim,
                 .maskBlockKv = 128},
                Mode::Lists, random);
}

// Grouped heads must never fall back to anything else; batches of two are what
// guided diffusion sends.
// cases: 68, 108
TEST_P(AttentionShapes, BatchesAndGroupedHeads) {
  Random random = randomForTest();
  for (const auto &[batch, qHeads, kvHeads] :
       {std::tuple{2, 1, 1}, std::tuple{2, 8, 2}, std::tuple{1, 6, 1},
        std::tuple{3, 3, 3}, std::tuple{2, 4, 2}}) {
    for (const Mode mode : kModes) {
      AttentionCase shape;
      shape.dtype = dtype();
      shape.batch = batch;
      shape.qHeads = qHeads;
      shape.kvHeads = kvHeads;
      shape.qLen = 1 + random.below(200);
      shape.kvLen = 1 + random.below(200);
      expectRight(backend(), shape, mode, random);
    }
  }
}

class AttentionLengths : public BackendTest {};
SPARGEJIT_ON_EVERY_BACKEND(AttentionLengths);

// One token, a block less one, a block, a block and one, primes and thousands,
// queries and keys of different lengths, in every pairing.
// cases: 8, 22, 29, 44, 62, 63
TEST_P(AttentionLengths, EveryPair) {
  const std::vector<std::int64_t> lengths = {1,   31,  63,   64,   65,  127,
                                             128, 129, 1000, 1025, 4096};
  const std::vector<DataType> types = {DataType::Float32, DataType::BFloat16,
                                       DataType::Float32, DataType::Float16};
  Random random = randomForTest();
  std::size_t turn = 0;
  for (const std::int64_t qLen : lengths) {
    // Of one row of 64 numbers, roundings to bfloat16 alone are beyond 3e-3 in
    // one of 500 draws; of eight rows in none of 8 000 (a model in float64).
    const std::int64_t heads = qLen <= 129 ? 8 : 1;
    for (const std::int64_t kvLen : lengths) {
      if (isReduced() && qLen * kvLen > 200000)
        continue;
      for (const Mode mode : {Mode::Lists, Mode::CausalLists}) {
        AttentionCase shape;
        shape.dtype = types[turn % types.size()];
        shape.qHeads = shape.kvHeads = heads;
        shape.qLen = qLen;
        shape.kvLen = kvLen;
        shape.maskBlockQ = kMaskBlocksQ[(turn / 4) % 2];
        shape.maskBlockKv = turn % 3 == 0 ? 16 : 64;
        expectRight(backend(), shape, mode, random);
        ++turn;
      }
      if (qLen == kvLen || turn % 5 == 0)
        expectRight(
            backend(),
            {.qHeads = heads, .kvHeads = heads, .qLen = qLen, .kvLen = kvLen},
            Mode::Dense, random);
    }
  }
}

// The shapes that users' reports name: text conditioning (77 tokens) under
// 1000 image tokens; keys four times as long as queries.
// cases: 22, 59, 62
TEST_P(AttentionLengths, CrossAttention) {
  Random random = randomForTest();
  for (const std::int64_t maskBlockQ : kMaskBlocksQ)
    for (const std::int64_t maskBlockKv : {64, 128})
      expectRight(backend(),
                  {.dtype = DataType::BFloat16,
                   .qLen = 1000,
                   .kvLen = 77,
                   .maskBlockQ = maskBlockQ,
                   .maskBlockKv = maskBlockKv},
                  Mode::Lists, random);
  expectRight(backend(),
              {.dtype = DataType::Float16,
               .qHeads = 2,
               .kvHeads = 2,
               .qLen = 512,
               .kvLen = 2048,
               .headDim = 96},
              Mode::Dense, random);
  expectRight(
      backend(),
      {.dtype = DataType::BFloat16, .qLen = 77, .kvLen = 77, .headDim = 72},
      Mode::Dense, random);
}

// Nothing to attend to, or nobody to attend: zero-length sides are answered,
// not refused and not read.
// cases: 44, 51
TEST_P(AttentionLengths, ZeroLengthSides) {
  Random random = randomForTest();
  for (const DataType dtype : {DataType::Float32, DataType::BFloat16}) {
    for (const bool causal : {false, true}) {
      expectRight(backend(), {.dtype = dtype, .qLen = 70, .kvLen = 0},
                  causal ? Mode::CausalDense : Mode::Dense, random);
      AttentionTrial trial(
          backend(), {.dtype = dtype, .qLen = 0, .kvLen = 70, .causal = causal},
          random);
      EXPECT_TRUE(succeeded(trial.run()));
      EXPECT_TRUE(trial.memoryIsIntact());
    }
  }
}

} // namespace
} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// Attention in eight bits: every mode against float64 of q, k and v as they are
// rounded and as they are, over shapes, spreads of scores, means, outliers and
// constants; and what it is refused with.
#include "spargejit/quantised.h"
#include "spargejit/training.h"
#include "tests/numerics/harness/EightBitSuite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace spargejit::numerics {
namespace {

class EightBits : public EightBitSuite {};
SPARGEJIT_ON_EVERY_BACKEND(EightBits);

TEST_P(EightBits, EveryShapeInEveryMode) {
  std::size_t turn = 0;
  for (const Precision precision : kModes)
    for (const std::int64_t headDim : headDims())
      for (const std::int64_t maskBlockKv : {16, 32, 64, 128})
        for (const bool hasLists : {false, true}) {
          ++turn;
          if (isReduced() && (maskBlockKv == 32 || maskBlockKv == 128))
            continue;
          AttentionCase shape;
          shape.dtype = turn % 3 == 0 ? DataType::Float16 : DataType::BFloat16;
          shape.batch = 1 + static_cast<std::int64_t>(turn % 2);
          shape.qHeads = 2;
          shape.kvHeads = 1 + static_cast<std::int64_t>(turn / 2 % 2);
          shape.headDim = headDim;
          shape.maskBlockQ = turn % 5 == 0 ? 64 : 128;
          shape.maskBlockKv = maskBlockKv;
          shape.causal = turn / 3 % 2 == 0;
          shape.qLen = 1 + random.below(200);
          shape.kvLen = 1 + random.below(300);
          shape.inputs.layout =
              turn % 2 == 0 ? Layout::LengthMajor : Layout::PaddedRows;
          EightBitTrial trial(backend(), shape, precision, random);
          if (hasLists)
            trial.useLists(
                shape.randomMask(random, 0.5, true), random,
                {.shuffled = true, .garbageSuffix = true, .spareSlots = 1});
          EXPECT_TRUE(trial.isRightInEightBits());
        }
}

TEST_P(EightBits, EveryLength) {
  for (const std::int64_t length : {1, 15, 16, 17, 63, 64, 65, 127, 129, 193})
    for (const Precision precision : kModes) {
      EightBitTrial trial(backend(),
                          // Eight rows at least: of a single one the rounding
                          // of its q alone may exceed what is usual.
                          {.dtype = DataType::BFloat16,
                           .batch = 2,
                           .qHeads = 4,
                           .kvHeads = 2,
                           .qLen = 1 + random.below(140),
                           .kvLen = length},
                          precision, random);
      if (length % 2 == 0)
        trial.useLists(trial.shape.fullMask(), random);
      EXPECT_TRUE(trial.isRightInEightBits());
    }
}

// Values with a mean hide nothing that sums too low or too high.
TEST_P(EightBits, ValuesWithAMean) {
  expectRight({.dtype = DataType::BFloat16,
               .qHeads = 2,
               .kvHeads = 2,
               .qLen = 150,
               .kvLen = 700},
              [](EightBitTrial &trial) {
                changeAll(trial.v, [](double x, auto, auto) { return x + 3; });
              });
}

TEST_P(EightBits, SmallAndLargeSpreadsOfScores) {
  for (const double scale : {0.02, 0.3, 4.0})
    expectRight({.dtype = DataType::Float16, .qLen = 130, .kvLen = 400},
                [&](EightBitTrial &trial) {
                  trial.scoreSpread = scale;
                  changeAll(trial.q,
                            [&](double x, auto, auto) { return scale * x; });
                });
}

// A few channels of k that are many times as large as the others, and q the
// other way; and every other channel of v. (One channel of v alone would decide
// the error, and where its mean is near 0 that is large.)
TEST_P(EightBits, OutlierChannels) {
  expectRight(
      {.dtype = DataType::BFloat16, .qLen = 130, .kvLen = 400, .headDim = 128},
      [](EightBitTrial &trial) {
        changeAll(trial.k, [](double x, auto, std::int64_t channel) {
          return channel % 31 == 5 ? 20 * x : x;
        });
        changeAll(trial.q, [](double x, auto, std::int64_t channel) {
          return channel % 31 == 5 ? x / 40 : x / 2;
        });
        changeAll(trial.v, [](double x, auto, std::int64_t channel) {
          return channel % 2 == 0 ? 300 * x : x;
        });
      });
}

// Equal keys have equal weights, whose common factor is in the sum, and the
// largest value of a channel is rounded to itself.
TEST_P(EightBits, ConstantInputsComeOutAsTheyAre) {
  for (const Precision precision : kModes)
    for (const double value : {1.0, -0.75, 24.0}) {
      EightBitTrial trial(
          backend(), {.dtype = DataType::BFloat16, .qLen = 140, .kvLen = 333},
          precision, random);
      trial.q.fill([] { return 0.5; });
      trial.k.fill([] { return -1.0; });
      trial.v.fill([&] { return value; });
      ASSERT_TRUE(succeeded(trial.run()));
      for (const double found : trial.o.values())
        ASSERT_NEAR(found, value, 4e-3 * std::fabs(value)) << trial.text();
      EXPECT_TRUE(trial.matches());
    }
}

TEST_P(EightBits, ZerosGiveZeros) {
  for (const Precision precision : kModes) {
    EightBitTrial trial(backend(),
                        {.dtype = DataType::BFloat16, .qLen = 70, .kvLen = 100},
                        precision, random);
    for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v})
      tensor->fill([] { return 0.0; });
    ASSERT_TRUE(succeeded(trial.run()));
    for (const double found : trial.o.values())
      ASSERT_EQ(found, 0) << trial.text();
    for (const double found : trial.lse.values())
      ASSERT_NEAR(found, std::log(100.0),
                  reference::eightBitLseBound(precision))
          << trial.text();
  }
}

// cases: 20, 21
TEST_P(EightBits, RowsWithoutKeysAreZero) {
  for (const Precision precision : kModes) {
    AttentionCase shape{
        .dtype = DataType::BFloat16, .qHeads = 2, .qLen = 300, .kvLen = 200};
    EightBitTrial trial(backend(), shape, precision, random);
    BlockMask mask = shape.fullMask();
    for (std::int64_t j = 0; j < mask.kvBlocks; ++j)
      mask.set(0, 0, 1, j, false);
    trial.useLists(mask, random);
    ASSERT_TRUE(trial.isRightInEightBits());
    const std::vector<double> o = trial.o.values(), lse = trial.lse.values();
    for (std::size_t row = 128; row < 256; ++row) {
      EXPECT_EQ(lse[row], -std::numeric_limits<double>::infinity());
      for (std::size_t d = 0; d < 64; ++d)
        EXPECT_EQ(o[row * 64 + d], 0);
    }
  }
}

TEST_P(EightBits, NaNStaysInItsRowAndInItsBlock) {
  for (const Precision precision : kModes) {
    AttentionCase shape{.dtype = DataType::BFloat16, .qLen = 200, .kvLen = 256};
    EightBitTrial trial(backend(), shape, precision, random);
    BlockMask mask = shape.fullMask();
    for (std::int64_t i = 0; i < mask.qBlocks; ++i)
      mask.set(0, 0, i, 2, false); // keys 128 to 191
    trial.useLists(mask, random);
    ASSERT_TRUE(succeeded(trial.run()));
    const std::vector<double> before = trial.o.values();
    changeAll(trial.q, [](double x, std::int64_t row, std::int64_t channel) {
      return row == 77 && channel == 3 ? std::nan("") : x;
    });
    for (TestTensor *tensor : {&trial.k, &trial.v})
      changeAll(*tensor, [](double x, std::int64_t row, auto) {
        return row == 150 ? std::nan("") : x;
      });
    ASSERT_TRUE(succeeded(trial.run()));
    const std::vector<double> after = trial.o.values();
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i / 64 == 77)
        ASSERT_TRUE(std::isnan(after[i])) << trial.text();
      else
        // The peaks are those of fewer numbers, and may have changed.
        ASSERT_NEAR(after[i], before[i], 0.3) << trial.text() << " " << i;
    }
  }
}

TEST_P(EightBits, MethodsThatSelectSelectTheSame) {
  SPARGEJIT_NEEDS(selection);
  for (const char *method : {"spargeattention2", "topk", "topp"}) {
    AttentionCase shape{.dtype = DataType::BFloat16,
                        .qHeads = 2,
                        .kvHeads = 1,
                        .qLen = 700,
                        .kvLen = 900};
    EightBitTrial trial(backend(), shape, Precision::Fp8Balanced, random);
    trial.config.method = method;
    trial.config.topK = 0.2;
    for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v})
      tensor->upload();
    const auto wanted =
        selectBlocks(trial.q.view(), trial.k.view(), trial.config);
    ASSERT_TRUE(succeeded(wanted.status()));
    BlockLists used;
    AttentionOutputs outputs;
    outputs.lists = &used;
    trial.config.precision = Precision::Fp8Balanced;
    trial.o.poison();
    trial.o.upload();
    const Status status =
        attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                      trial.v.view(), trial.config, outputs);
    ASSERT_TRUE(succeeded(status));
    trial.o.download();
    const std::vector<std::byte> whole = trial.o.bits();
    const BlockLists lists = listsOnHost(backend(), used);
    const BlockLists plain = listsOnHost(backend(), *wanted);
    const auto entries = [](const BlockLists &from) {
      const auto *first = from.indices.data<std::int32_t>();
      return std::vector<std::int32_t>(
          first, first + from.indices.view().elementCount());
    };
    EXPECT_EQ(entries(lists), entries(plain)) << method;
    trial.useLists(lists);
    EXPECT_TRUE(trial.isRightInEightBits()) << method;
    EXPECT_EQ(trial.o.bits(), whole) << method;
  }
}

TEST_P(EightBits, NothingToAttendTo) {
  for (const Precision precision : kModes) {
    EightBitTrial none(backend(),
                       {.dtype = DataType::BFloat16, .qLen = 70, .kvLen = 0},
                       precision, random);
    EXPECT_TRUE(none.isRightInEightBits());
    EightBitTrial nobody(backend(),
                         {.dtype = DataType::BFloat16, .qLen = 0, .kvLen = 70},
                         precision, random);
    EXPECT_TRUE(succeeded(nobody.run()));
    EXPECT_TRUE(nobody.memoryIsIntact());
  }
}

TEST_P(EightBits, MemoryIsThatOfTheRoundedTensors) {
  EightBitTrial trial(backend(),
                      {.dtype = DataType::BFloat16,
                       .qHeads = 4,
                       .kvHeads = 2,
                       .qLen = 4000,
                       .kvLen = 2560,
                       .headDim = 128},
                      Precision::Fp8Fast, random);
  const auto bytes = workspaceBytes(trial.q.view(), trial.k.view(),
                                    trial.v.view(), trial.config);
  ASSERT_TRUE(succeeded(bytes.status()));
  // q, k and v, a byte each (v's image 1 / 16 more), and peaks of 64 warps.
  const std::int64_t least = (4 * 4000 + 2 * 2 * 2560) * 128;
  EXPECT_GE(*bytes, least);
  EXPECT_LE(*bytes, least + least / 8);
}

TEST_P(EightBits, WhatIsNotThereIsRefused) {
  EightBitTrial trial(backend(),
                      {.dtype = DataType::BFloat16, .qLen = 70, .kvLen = 70},
                      Precision::Fp8Fast, random);
  for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v, &trial.o})
    tensor->upload();
  const auto refuses = [&](const Status &status, ErrorCode code,
                           const std::vector<std::string> &parts) {
    return failedWith(status, code, parts);
  };
  // Gradients.
  AttentionSaved saved{trial.o.view(), trial.lse.view(), nullptr};
  EXPECT_TRUE(refuses(
      attentionBackward(trial.q.view(), trial.k.view(), trial.v.view(), saved,
                        trial.o.view(), trial.config)
          .status(),
      ErrorCode::Unsupported, {"config.precision", "backward", "fp8_fast"}));
  EXPECT_TRUE(refuses(prepareBackward(trial.q.view(), trial.k.view(),
                                      trial.v.view(), trial.config),
                      ErrorCode::Unsupported, {"config.precision"}));
  // Types, and tuning.
  TensorView wide[] = {trial.o.view(), trial.q.view(), trial.k.view(),
                       trial.v.view()};
  for (TensorView &view : wide)
    view.dtype = DataType::Float32;
  EXPECT_TRUE(
      refuses(attentionInto(wide[0], wide[1], wide[2], wide[3], trial.config),
              ErrorCode::Unsupported, {"q.dtype", "fp8_fast", "float32"}));
  AttentionConfig tuned = trial.config;
  tuned.tune = TuneMode::OnFirstUse;
  EXPECT_TRUE(refuses(attentionInto(trial.o.view(), trial.q.view(),
                                    trial.k.view(), trial.v.view(), tuned),
                      ErrorCode::Unsupported, {"config.tune", "fp8_fast"}));
  AttentionConfig unknown = trial.config;
  unknown.precision = static_cast<Precision>(9);
  EXPECT_TRUE(refuses(attentionInto(trial.o.view(), trial.q.view(),
                                    trial.k.view(), trial.v.view(), unknown),
                      ErrorCode::InvalidArgument, {"config.precision", "9"}));
  // Tensors in eight bits.
  const auto made =
      quantise(trial.q.view(), trial.k.view(), trial.v.view(), trial.config);
  ASSERT_TRUE(succeeded(made.status()));
  AttentionConfig selects = trial.config;
  selects.method = "topk";
  EXPECT_TRUE(refuses(attentionQuantised(*made, selects).status(),
                      ErrorCode::InvalidArgument, {"config.method", "topk"}));
  AttentionConfig inputs = trial.config;
  inputs.precision = Precision::Inputs;
  EXPECT_TRUE(refuses(attentionQuantised(*made, inputs).status(),
                      ErrorCode::InvalidArgument, {"config.precision"}));
  QuantisedTensors wrong = *made;
  wrong.kvLen = 71;
  EXPECT_TRUE(refuses(attentionQuantised(wrong, trial.config).status(),
                      ErrorCode::InvalidArgument, {"tensors.kvLen", "71"}));
  wrong = *made;
  wrong.v = made->vScales;
  EXPECT_TRUE(refuses(attentionQuantised(wrong, trial.config).status(),
                      ErrorCode::InvalidArgument, {"tensors.v"}));
  wrong = *made;
  wrong.v = made->q;
  wrong.q = made->k;
  if (backend().device().kind == DeviceKind::Cuda)
    EXPECT_TRUE(refuses(attentionQuantised(wrong, trial.config).status(),
                        ErrorCode::InvalidArgument, {"tensors.v.sizes"}));
  wrong = *made;
  wrong.k = made->q;
  EXPECT_TRUE(refuses(quantiseInto(wrong, trial.q.view(), trial.k.view(),
                                   trial.v.view(), trial.config),
                      ErrorCode::InvalidArgument, {"into.q", "into.k"}));
}

TEST_P(EightBits, OutputsThatDoNotFitAreRefused) {
  EightBitTrial trial(backend(),
                      {.dtype = DataType::BFloat16, .qLen = 70, .kvLen = 70},
                      Precision::Fp8Fast, random);
  for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v, &trial.o})
    tensor->upload();
  const auto made =
      quantise(trial.q.view(), trial.k.view(), trial.v.view(), trial.config);
  ASSERT_TRUE(succeeded(made.status()));
  TensorView o = trial.o.view();
  o.dtype = DataType::Float32;
  EXPECT_TRUE(failedWith(attentionQuantisedInto(o, *made, trial.config),
                         ErrorCode::InvalidArgument,
                         {"o.dtype", "float16", "float32"}));
  o = trial.o.view();
  o.data = made->v.view().data;
  EXPECT_TRUE(failedWith(attentionQuantisedInto(o, *made, trial.config),
                         ErrorCode::InvalidArgument, {"o: ", "tensors.v"}));
  TensorView q = trial.q.view();
  q.dtype = DataType::Float32;
  EXPECT_TRUE(failedWith(
      quantise(q, trial.k.view(), trial.v.view(), trial.config).status(),
      ErrorCode::Unsupported, {"q.dtype", "rounds", "float32"}));
}

TEST_P(EightBits, OtherHeadDimensionsAreRefused) {
  if (backend().abilities().anyEightBitWidth)
    GTEST_SKIP() << backend().name() << " has every head dimension";
  for (const std::int64_t headDim : {32, 80, 160, 256}) {
    EightBitTrial trial(backend(),
                        {.dtype = DataType::BFloat16,
                         .qLen = 70,
                         .kvLen = 70,
                         .headDim = headDim},
                        Precision::Fp8Fast, random);
    EXPECT_TRUE(failedWith(
        trial.run(), ErrorCode::Unsupported,
        {"q.sizes[3]", "64, 96 or 128", "fp8_fast", std::to_string(headDim)}));
  }
}

} // namespace
} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// Attention in eight bits: every mode against float64 of q, k and v as they are
// rounded and as they are, over shapes, spreads of scores, means, outliers and
// constants; rounding itself; and what it is refused with.
#include "spargejit/quantised.h"
#include "spargejit/training.h"
#include "tests/numerics/harness/EightBitTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/ReferenceRounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

namespace spargejit::numerics {
namespace {

constexpr Precision kModes[] = {Precision::Fp8Exact, Precision::Fp8Balanced,
                                Precision::Fp8Fast};

/// Head dimensions of every back end.
const std::vector<std::int64_t> kEightBitHeadDims = {64, 96, 128};

class EightBits : public BackendTest {
protected:
  std::vector<std::int64_t> headDims() const {
    std::vector<std::int64_t> dims = kEightBitHeadDims;
    if (backend().abilities().anyEightBitWidth && !isReduced())
      dims.insert(dims.end(), {40, 256});
    return dims;
  }
  /// Each mode, dense and with lists, on inputs that `fill` changes.
  void expectRight(AttentionCase shape,
                   const std::function<void(EightBitTrial &)> &fill) {
    for (const Precision precision : kModes)
      for (const bool hasLists : {false, true}) {
        EightBitTrial trial(backend(), shape, precision, random);
        fill(trial);
        if (hasLists)
          trial.useLists(shape.randomMask(random, 0.5, true), random);
        EXPECT_TRUE(trial.isRightInEightBits()) << (hasLists ? "lists" : "");
      }
  }
  Random random = randomForTest();
};
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
                          {.dtype = DataType::BFloat16,
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

/// Bytes of a tensor, wherever it is.
std::vector<std::uint8_t> bytesOf(TestBackend &backend, const Tensor &tensor) {
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(tensor.view().elementCount()) *
      dataTypeSize(tensor.view().dtype));
  if (tensor.view().device.kind == DeviceKind::Cpu)
    std::memcpy(bytes.data(), tensor.data<std::byte>(), bytes.size());
  else
    backend.read(reinterpret_cast<std::byte *>(bytes.data()),
                 tensor.data<std::byte>(), bytes.size());
  return bytes;
}

/// Places where codes differ, and whether each is a neighbour's: the product
/// rounds in float32, which may fall on the other side of a tie.
void expectSameCodes(const std::vector<std::uint8_t> &found,
                     const TensorView &expected, const char *what) {
  const auto *codes = static_cast<const std::uint8_t *>(expected.data);
  ASSERT_EQ(found.size(), static_cast<std::size_t>(expected.elementCount()));
  std::size_t different = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    different += found[i] != codes[i];
    ASSERT_LE(std::abs(int{found[i]} - int{codes[i]}), 1) << what << " " << i;
  }
  EXPECT_LE(different * 1000, found.size()) << what;
}

/// v as its image holds it (spargejit/quantised.h).
std::vector<std::uint8_t> fromImage(const std::vector<std::uint8_t> &image,
                                    const AttentionCase &shape) {
  const std::int64_t dim = shape.headDim, cores = dim / 8 + 1;
  const std::int64_t groups = (shape.kvLen + 15) / 16;
  std::vector<std::uint8_t> v;
  for (std::int64_t head = 0; head < shape.batch * shape.kvHeads; ++head) {
    const std::uint8_t *first =
        &image[static_cast<std::size_t>(head * groups * cores * 128)];
    for (std::int64_t key = 0; key < groups * 16; ++key) {
      std::int64_t place = 0;
      while (2 * (place / 4) + place % 2 + 8 * (place % 4 / 2) != key % 16)
        ++place;
      for (std::int64_t c = 0; c < dim + 8; ++c) {
        const std::uint8_t code =
            first[(key / 16 * cores + c / 8) * 128 + c % 8 * 16 + place];
        if (key >= shape.kvLen)
          EXPECT_EQ(code, 0) << "key " << key << ", channel " << c;
        else if (c >= dim)
          EXPECT_EQ(code, 0x38) << "key " << key << ", channel " << c;
        else
          v.push_back(code);
      }
    }
  }
  return v;
}

/// quantise() of a trial's inputs against the reference, which is returned.
reference::RoundedInputs expectRounded(TestBackend &backend,
                                       EightBitTrial &trial) {
  for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v})
    tensor->upload();
  auto right = reference::roundInputs(trial.arguments());
  const auto made =
      quantise(trial.q.view(), trial.k.view(), trial.v.view(), trial.config);
  EXPECT_TRUE(succeeded(made.status()));
  if (!made.ok())
    return right;
  EXPECT_TRUE(trial.memoryIsIntact());
  expectSameCodes(bytesOf(backend, made->q), right.q->view(), "q");
  expectSameCodes(bytesOf(backend, made->k), right.k->view(), "k");
  const std::vector<std::uint8_t> v = bytesOf(backend, made->v);
  expectSameCodes(
      backend.device().kind == DeviceKind::Cpu ? v : fromImage(v, trial.shape),
      right.v->view(), "v");
  for (const auto &[tensor, expected] :
       {std::pair{&made->qFactors, &right.qFactors},
        std::pair{&made->kFactors, &right.kFactors},
        std::pair{&made->vScales, &right.vScales}}) {
    const std::vector<std::uint8_t> bytes = bytesOf(backend, *tensor);
    EXPECT_EQ(bytes.size(), expected->size() * sizeof(float));
    for (std::size_t i = 0; i < expected->size(); ++i) {
      float found = 0;
      std::memcpy(&found, &bytes[i * sizeof found], sizeof found);
      EXPECT_NEAR(found / (*expected)[i], 1, 1e-6) << i;
    }
  }
  return right;
}

TEST_P(EightBits, RoundingIsThatOfTheReference) {
  AttentionCase shape{.dtype = DataType::BFloat16,
                      .batch = 2,
                      .qHeads = 4,
                      .kvHeads = 2,
                      .qLen = 77,
                      .kvLen = 203,
                      .inputs = {.layout = Layout::LengthMajor}};
  EightBitTrial trial(backend(), shape, Precision::Fp8Exact, random);
  changeAll(trial.k, [](double x, std::int64_t row, auto) {
    return row % 7 == 0 ? x * 1e-4 : 30 * x; // subnormals, too
  });
  changeAll(trial.v, [](double x, auto, std::int64_t channel) {
    return channel == 9 ? 0 : channel == 10 ? 1e-3 * x : x;
  });
  // The sample is all rows.
  const auto right = expectRounded(backend(), trial);
  EXPECT_EQ(right.roundedAgain, std::vector<bool>(4, false));
}

// One number of one head, in a row outside of the sample (40 of n: the second
// part starts at row (n - 32) / 7), so large that its head is rounded again
// with the peaks of all rows, and no other.
TEST_P(EightBits, WhatTheSampleMissesIsRoundedAgain) {
  std::size_t turn = 0;
  for (const std::int64_t headDim : headDims())
    for (const char where : {'-', 'q', 'k', 'v', 'n'}) {
      ++turn;
      AttentionCase shape{
          .dtype = turn % 2 == 0 ? DataType::BFloat16 : DataType::Float16,
          .batch = 2,
          .qHeads = 4,
          .kvHeads = 2,
          .qLen = 800 + random.below(500),
          .kvLen = 800 + random.below(500),
          .headDim = headDim,
          .inputs = {.layout = turn % 3 == 0   ? Layout::OddBase
                               : turn % 3 == 1 ? Layout::LengthMajor
                                               : Layout::HeadMajor}};
      SCOPED_TRACE(shape.describe() + " outlier in " + where);
      EightBitTrial trial(backend(), shape, Precision::Fp8Exact, random);
      const auto change = [&](TestTensor &tensor, int head, double value) {
        int found = 0;
        changeAll(
            tensor, [&](double x, std::int64_t row, std::int64_t channel) {
              return row == 40 && channel == 5 && found++ == head ? value : x;
            });
      };
      std::vector<bool> again(4, false);
      if (where == 'q') {
        change(trial.q, 2, -3e4); // read by head 1 of the first batch's k
        again[1] = true;
      } else if (where == 'k') {
        change(trial.k, 2, 3e4);
        again[2] = true;
      } else if (where == 'v') {
        change(trial.v, 3, 700);
        again[3] = true;
      } else if (where == 'n') {
        // Noted as well, and no reason; what is ten times as large neither.
        change(trial.q, 0, std::nan(""));
        change(trial.v, 1, 15);
      }
      const auto right = expectRounded(backend(), trial);
      EXPECT_EQ(right.roundedAgain, again);
    }
}

// Rows of v that the sample misses, a hundred times as large as the others.
TEST_P(EightBits, OutlierRows) {
  expectRight({.dtype = DataType::BFloat16,
               .qHeads = 2,
               .qLen = 130,
               .kvLen = 900,
               .headDim = 128},
              [](EightBitTrial &trial) {
                changeAll(trial.v, [](double x, std::int64_t row, auto) {
                  return row >= 40 && row < 90 ? 100 * x : x;
                });
                const auto rounded = reference::roundInputs(trial.arguments());
                EXPECT_TRUE(rounded.roundedAgain[0]);
              });
}

TEST_P(EightBits, TensorsThatAreRoundedGiveTheSameBits) {
  for (const Precision precision : kModes)
    for (const bool hasLists : {false, true}) {
      AttentionCase shape{.dtype = DataType::Float16,
                          .batch = 2,
                          .qHeads = 4,
                          .kvHeads = 2,
                          .qLen = 301,
                          .kvLen = 203,
                          .causal = hasLists};
      EightBitTrial trial(backend(), shape, precision, random);
      if (hasLists)
        trial.useLists(shape.randomMask(random, 0.5), random);
      const OutputBits whole = runForBits(trial);
      const auto made = quantise(trial.q.view(), trial.k.view(), trial.v.view(),
                                 trial.config);
      ASSERT_TRUE(succeeded(made.status()));
      AttentionOutputs outputs;
      outputs.lse = &trial.lse.view();
      for (int repeat = 0; repeat < 2; ++repeat) {
        trial.o.poison();
        trial.lse.poison();
        trial.o.upload();
        trial.lse.upload();
        ASSERT_TRUE(succeeded(attentionQuantisedInto(trial.o.view(), *made,
                                                     trial.config, outputs)));
        trial.o.download();
        trial.lse.download();
        EXPECT_TRUE(trial.memoryIsIntact());
        EXPECT_EQ((OutputBits{trial.o.bits(), trial.lse.bits()}), whole)
            << trial.text();
        // Into the same memory again, poisoned.
        ASSERT_TRUE(
            succeeded(quantiseInto(*made, trial.q.view(), trial.k.view(),
                                   trial.v.view(), trial.config)));
      }
      const auto own = attentionQuantised(*made, trial.config);
      ASSERT_TRUE(succeeded(own.status()));
      EXPECT_EQ(own->view().dtype, DataType::Float16);
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

// SPDX-License-Identifier: Apache-2.0
//
// q, k and v in eight bits: the bytes, factors and scales that quantise()
// writes against the reference's, what the sample of rows misses, and attention
// of tensors that are rounded already.
#include "spargejit/quantised.h"
#include "tests/numerics/harness/EightBitSuite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace spargejit::numerics {
namespace {

class EightBitRounding : public EightBitSuite {};
SPARGEJIT_ON_EVERY_BACKEND(EightBitRounding);

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

TEST_P(EightBitRounding, RoundingIsThatOfTheReference) {
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
TEST_P(EightBitRounding, WhatTheSampleMissesIsRoundedAgain) {
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
TEST_P(EightBitRounding, OutlierRows) {
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

TEST_P(EightBitRounding, TensorsThatAreRoundedGiveTheSameBits) {
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

} // namespace
} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// Calls through C give the bits of the same calls through C++.
#include "runtime/base/DataTypeConversion.h"
#include "spargejit/c.h"
#include "spargejit/spargejit.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace spargejit::unit {
namespace {

constexpr std::int64_t kBatch = 1, kHeads = 2, kKvHeads = 1, kLength = 330,
                       kDim = 32, kBlock = 64;
constexpr std::int64_t kQBlocks = 3, kKvBlocks = 6;

SpargejitTensor toC(const TensorView &view) {
  SpargejitTensor tensor{};
  tensor.data = view.data;
  tensor.dtype = static_cast<std::int32_t>(view.dtype);
  tensor.rank = view.rank;
  std::copy_n(view.sizes.begin(), 4, tensor.sizes);
  std::copy_n(view.strides.begin(), 4, tensor.strides);
  return tensor;
}

/// Memory of a type and sizes, poisoned, and what both languages know it by.
template <typename Element>
struct Array {
  Array(DataType type, const std::vector<std::int64_t> &sizes) {
    view = TensorView::contiguous(nullptr, type, sizes);
    bytes.assign(static_cast<std::size_t>(view.elementCount()), Element{});
    std::memset(static_cast<void *>(bytes.data()), 0xff,
                bytes.size() * sizeof(Element));
    view.data = bytes.data();
    c = toC(view);
  }
  std::vector<Element> bytes;
  TensorView view;
  SpargejitTensor c;
};
using Floats = Array<float>;
using Ints = Array<std::int32_t>;
using Halves = Array<std::uint16_t>;
using Bytes = Array<std::uint8_t>;

struct CAbiCalls : ::testing::Test {
  CAbiCalls() {
    auto random = numerics::randomForTest();
    for (Floats *input : {&q, &k, &v, &dO})
      for (float &value : input->bytes)
        value = static_cast<float>(random.normal());
    EXPECT_EQ(spargejit_init_config(&config, sizeof config), SpargejitOk);
    config.topK = cppConfig.topK = 0.4;
    config.maskBlockKv = cppConfig.maskBlockKv = kBlock;
    lists = {indices.c, counts.c, 128, kBlock, kLength, kLength};
  }
  void expectOk(SpargejitStatus status) {
    EXPECT_EQ(status, SpargejitOk) << spargejit_last_error();
  }
  template <typename Element>
  void expectBits(const Array<Element> &array, const Tensor &expected) {
    ASSERT_EQ(array.view.elementCount(), expected.view().elementCount());
    EXPECT_EQ(std::memcmp(array.bytes.data(), expected.data<Element>(),
                          array.bytes.size() * sizeof(Element)),
              0);
  }

  Floats q{DataType::Float32, {kBatch, kHeads, kLength, kDim}};
  Floats k{DataType::Float32, {kBatch, kKvHeads, kLength, kDim}};
  Floats v{DataType::Float32, {kBatch, kKvHeads, kLength, kDim}};
  Floats o{DataType::Float32, {kBatch, kHeads, kLength, kDim}};
  Floats dO{DataType::Float32, {kBatch, kHeads, kLength, kDim}};
  Floats lse{DataType::Float32, {kBatch, kHeads, kLength}};
  Ints indices{DataType::Int32, {kBatch, kHeads, kQBlocks, kKvBlocks}};
  Ints counts{DataType::Int32, {kBatch, kHeads, kQBlocks}};
  SpargejitLists lists;
  SpargejitConfig config;
  AttentionConfig cppConfig;
};

TEST_F(CAbiCalls, AttentionWithLseAndLists) {
  SpargejitOutputs outputs{sizeof outputs, &lse.c, &lists};
  expectOk(spargejit_prepare(&q.c, &k.c, &v.c, &config, nullptr));
  expectOk(spargejit_attention(&o.c, &q.c, &k.c, &v.c, &config, &outputs));
  const auto expected = attentionForward(q.view, k.view, v.view, cppConfig);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  expectBits(o, expected->o);
  expectBits(lse, expected->lse);
  expectBits(indices, expected->lists.indices);
  expectBits(counts, expected->lists.counts);

  // Without anything beside o; and with these lists given back.
  Floats again(DataType::Float32, {kBatch, kHeads, kLength, kDim});
  expectOk(spargejit_attention(&again.c, &q.c, &k.c, &v.c, &config, nullptr));
  expectBits(again, expected->o);
  config.method = "block_sparse";
  config.lists = &lists;
  config.validateLists = 1;
  Floats given(DataType::Float32, {kBatch, kHeads, kLength, kDim});
  outputs.lists = nullptr;
  expectOk(spargejit_attention(&given.c, &q.c, &k.c, &v.c, &config, &outputs));
  expectBits(given, expected->o);
}

TEST_F(CAbiCalls, SelectsBlocks) {
  expectOk(spargejit_select_blocks(&lists, &q.c, &k.c, &config));
  const auto expected = selectBlocks(q.view, k.view, cppConfig);
  ASSERT_TRUE(expected.ok());
  expectBits(indices, expected->indices);
  expectBits(counts, expected->counts);

  lists.indices.sizes[3] -= 1;
  lists.indices.strides[2] -= 1;
  lists.indices.strides[1] -= kQBlocks;
  EXPECT_EQ(spargejit_select_blocks(&lists, &q.c, &k.c, &config),
            SpargejitInvalidArgument);
  EXPECT_NE(std::string(spargejit_last_error()).find("6 key blocks"),
            std::string::npos)
      << spargejit_last_error();
  lists.indices = indices.c;
  lists.counts.data = indices.c.data;
  EXPECT_EQ(spargejit_select_blocks(&lists, &q.c, &k.c, &config),
            SpargejitInvalidArgument);
  config.method = "dense";
  lists.counts = counts.c;
  EXPECT_EQ(spargejit_select_blocks(&lists, &q.c, &k.c, &config),
            SpargejitInvalidArgument);
}

TEST_F(CAbiCalls, RoundsAndAttendsInEightBits) {
  constexpr DataType kHalf = DataType::BFloat16, kByte = DataType::Float8E4M3;
  Halves halfQ(kHalf, {kBatch, kHeads, kLength, kDim});
  Halves halfK(kHalf, {kBatch, kKvHeads, kLength, kDim});
  Halves halfV(kHalf, {kBatch, kKvHeads, kLength, kDim});
  for (const auto &[from, to] :
       {std::pair(&q, &halfQ), std::pair(&k, &halfK), std::pair(&v, &halfV)})
    convertFromFloat(from->bytes, kHalf, to->bytes.data());
  Halves whole(kHalf, {kBatch, kHeads, kLength, kDim});
  config.method = "dense";
  config.precision = SpargejitPrecisionFp8Balanced;
  expectOk(spargejit_attention(&whole.c, &halfQ.c, &halfK.c, &halfV.c, &config,
                               nullptr));
  cppConfig.method = "dense";
  cppConfig.precision = Precision::Fp8Balanced;
  const auto expected =
      attention(halfQ.view, halfK.view, halfV.view, cppConfig);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  expectBits(whole, *expected);

  Bytes q8(kByte, {kBatch, kHeads, kLength, kDim});
  Bytes k8(kByte, {kBatch, kKvHeads, kLength, kDim});
  Bytes v8(kByte, {kBatch, kKvHeads, kLength, kDim});
  Floats vScales(DataType::Float32, {kBatch, kKvHeads, kDim});
  Floats qFactors(DataType::Float32, {kBatch, kHeads});
  Floats kFactors(DataType::Float32, {kBatch, kKvHeads});
  SpargejitQuantised rounded{sizeof rounded,
                             &q8.c,
                             &k8.c,
                             &v8.c,
                             &vScales.c,
                             &qFactors.c,
                             &kFactors.c,
                             kLength,
                             SpargejitBFloat16,
                             0};
  expectOk(spargejit_quantise(&rounded, &halfQ.c, &halfK.c, &halfV.c, &config));
  rounded.qFactors = rounded.kFactors = nullptr;
  Halves again(kHalf, {kBatch, kHeads, kLength, kDim});
  SpargejitOutputs outputs{sizeof outputs, &lse.c, nullptr};
  expectOk(
      spargejit_attention_quantised(&again.c, &rounded, &config, &outputs));
  expectBits(again, *expected);
  for (const float value : lse.bytes)
    EXPECT_TRUE(std::isfinite(value));

  rounded.dtype = SpargejitFloat32;
  EXPECT_EQ(spargejit_attention_quantised(&again.c, &rounded, &config, nullptr),
            SpargejitInvalidArgument);
  EXPECT_EQ(std::string(spargejit_last_error()).find("tensors.dtype"), 0u)
      << spargejit_last_error();
  rounded.dtype = SpargejitBFloat16;
  outputs.lists = &lists;
  EXPECT_EQ(
      spargejit_attention_quantised(&again.c, &rounded, &config, &outputs),
      SpargejitUnsupported);
  config.precision = SpargejitPrecisionInputs;
  EXPECT_EQ(spargejit_attention_quantised(&again.c, &rounded, &config, nullptr),
            SpargejitInvalidArgument);
}

TEST(CAbiLibrary, TellsWhichMethodsHaveLists) {
  std::int32_t hasLists = -1;
  EXPECT_EQ(spargejit_method_has_lists("topk", &hasLists), SpargejitOk);
  EXPECT_EQ(hasLists, 1);
  EXPECT_EQ(spargejit_method_has_lists("dense", &hasLists), SpargejitOk);
  EXPECT_EQ(hasLists, 0);
  EXPECT_EQ(spargejit_method_has_lists("no_such_method", &hasLists),
            SpargejitInvalidArgument);
  EXPECT_EQ(hasLists, 0);
}

TEST_F(CAbiCalls, Gradients) {
  SpargejitOutputs outputs{sizeof outputs, &lse.c, &lists};
  expectOk(spargejit_attention(&o.c, &q.c, &k.c, &v.c, &config, &outputs));
  Floats dq(DataType::Float32, {kBatch, kHeads, kLength, kDim});
  Floats dk(DataType::Float32, {kBatch, kKvHeads, kLength, kDim});
  Floats dv(DataType::Float32, {kBatch, kKvHeads, kLength, kDim});
  const SpargejitGradients gradients{sizeof gradients, &dq.c, &dk.c, &dv.c};
  const SpargejitSaved saved{sizeof saved, &o.c, &lse.c, &lists};
  expectOk(spargejit_prepare_backward(&q.c, &k.c, &v.c, &config));
  const auto forward = attentionForward(q.view, k.view, v.view, cppConfig);
  ASSERT_TRUE(forward.ok());
  for (Floats *dLse : {static_cast<Floats *>(nullptr), &lse}) {
    expectOk(spargejit_attention_backward(&gradients, &q.c, &k.c, &v.c, &saved,
                                          &dO.c, &config,
                                          dLse ? &dLse->c : nullptr));
    const auto expected =
        attentionBackward(q.view, k.view, v.view, forward->saved(), dO.view,
                          cppConfig, dLse ? &dLse->view : nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    expectBits(dq, expected->dq);
    expectBits(dk, expected->dk);
    expectBits(dv, expected->dv);
  }
}

TEST_F(CAbiCalls, LossAndItsGradient) {
  Floats loss(DataType::Float32, {1}),
      gradient(DataType::Float32, {kBatch, kHeads, kLength, kDim});
  Floats cppLoss(DataType::Float32, {1}),
      cppGradient(DataType::Float32, {kBatch, kHeads, kLength, kDim});
  expectOk(spargejit_distillation_loss(&loss.c, &gradient.c, &q.c, &dO.c, 3,
                                       &config));
  ASSERT_TRUE(distillationLoss(cppLoss.view, &cppGradient.view, q.view, dO.view,
                               {.lossScale = 3})
                  .ok());
  EXPECT_EQ(loss.bytes, cppLoss.bytes);
  EXPECT_EQ(gradient.bytes, cppGradient.bytes);
  loss.bytes[0] = NAN;
  expectOk(
      spargejit_distillation_loss(&loss.c, nullptr, &q.c, &dO.c, 3, &config));
  EXPECT_EQ(loss.bytes, cppLoss.bytes);
}

TEST_F(CAbiCalls, TellsWorkspaceAndTuning) {
  std::int64_t bytes = -1;
  expectOk(spargejit_workspace_bytes(&q.c, &k.c, &v.c, &config, &bytes));
  EXPECT_EQ(bytes, *workspaceBytes(q.view, k.view, v.view, cppConfig));
  expectOk(
      spargejit_backward_workspace_bytes(&q.c, &k.c, &v.c, &config, &bytes));
  EXPECT_EQ(bytes, *backwardWorkspaceBytes(q.view, k.view, v.view, cppConfig));
  SpargejitTuning tuning{};
  tuning.structSize = sizeof tuning;
  expectOk(spargejit_tuning_of(&q.c, &k.c, &v.c, &config, &tuning));
  const auto expected = tuningOf(q.view, k.view, v.view, cppConfig);
  ASSERT_TRUE(expected.ok());
  EXPECT_STREQ(tuning.quality, matchQualityName(expected->quality));
  EXPECT_EQ(tuning.config, expected->config);
  EXPECT_EQ(tuning.structSize, sizeof tuning);
}

TEST_F(CAbiCalls, FailuresLeaveTheOutputAlone) {
  const std::vector<float> before = o.bytes;
  SpargejitTensor narrow = k.c;
  narrow.sizes[3] = 8;
  EXPECT_EQ(spargejit_attention(&o.c, &q.c, &narrow, &v.c, &config, nullptr),
            SpargejitInvalidArgument);
  EXPECT_NE(std::string(spargejit_last_error()).find("k.sizes[3]"),
            std::string::npos);
  config.method = "no_such_method";
  EXPECT_EQ(spargejit_attention(&o.c, &q.c, &k.c, &v.c, &config, nullptr),
            SpargejitInvalidArgument);
  EXPECT_EQ(spargejit_attention(nullptr, &q.c, &k.c, &v.c, &config, nullptr),
            SpargejitInvalidArgument);
  EXPECT_STREQ(spargejit_last_error(), "o: expected a tensor, got null");
  const SpargejitOutputs noLse{sizeof noLse, nullptr, &lists};
  EXPECT_EQ(spargejit_attention(&o.c, &q.c, &k.c, &v.c, &config, &noLse),
            SpargejitInvalidArgument);
  // Memory for lists, by the name that each function has for it.
  config.method = "spargeattention2";
  SpargejitLists small = lists;
  small.qLen += 1;
  const SpargejitOutputs outputs{sizeof outputs, &lse.c, &small};
  EXPECT_EQ(spargejit_attention(&o.c, &q.c, &k.c, &v.c, &config, &outputs),
            SpargejitInvalidArgument);
  EXPECT_EQ(std::string(spargejit_last_error()).find("outputs.lists"), 0u)
      << spargejit_last_error();
  EXPECT_EQ(spargejit_select_blocks(&small, &q.c, &k.c, &config),
            SpargejitInvalidArgument);
  EXPECT_EQ(std::string(spargejit_last_error()).find("into: expected lists"),
            0u)
      << spargejit_last_error();
  EXPECT_EQ(
      std::memcmp(before.data(), o.bytes.data(), before.size() * sizeof(float)),
      0);
}

TEST(CAbiLibrary, NamesTheDeviceThatThereIsNot) {
  EXPECT_EQ(spargejit_synchronise(5, 0), SpargejitInvalidArgument);
  EXPECT_STREQ(spargejit_last_error(),
               "deviceKind: expected 0 for the CPU or 1 for CUDA, got 5");
  EXPECT_EQ(spargejit_synchronise(SpargejitCpu, 4), SpargejitInvalidArgument);
}

TEST(CAbiLibrary, DescribesItself) {
  const std::string text = spargejit_describe();
  EXPECT_NE(text.find("\"methods\":[\"block_sparse\""), std::string::npos)
      << text;
  EXPECT_NE(text.find(spargejit_version()), std::string::npos);
}

TEST(CAbiLibrary, LogLinesArrive) {
  int lines = 0;
  spargejit_set_log_callback(
      [](void *user, std::int32_t, const char *line) {
        *static_cast<int *>(user) += std::strlen(line) > 0;
      },
      &lines);
  Floats x(DataType::Float32, {1, 1, 64, 8});
  for (float &value : x.bytes)
    value = 1;
  Floats o(DataType::Float32, {1, 1, 64, 8});
  SpargejitConfig config;
  ASSERT_EQ(spargejit_init_config(&config, sizeof config), SpargejitOk);
  config.method = "dense";
  EXPECT_EQ(spargejit_attention(&o.c, &x.c, &x.c, &x.c, &config, nullptr),
            SpargejitOk)
      << spargejit_last_error();
  spargejit_set_log_callback(nullptr, nullptr);
  EXPECT_GT(lines, 0); // of compiling
}

} // namespace
} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// Whole calls on a GPU, on the fake code generator and the fake driver. The
// driver's memory is the host's, and its kernel is the float64 reference, so
// that results show what the kernel was handed.
#pragma once

#include "runtime/api/Engine.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Elements.h"
#include "tests/reference/ReferenceAttention.h"
#include "tests/unit/runtime/FakeCodeGenerator.h"
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace spargejit::unit {

inline constexpr Device kGpu{DeviceKind::Cuda, 0};

/// The tensor at slot `first`, where there is one.
inline TensorView tensorAt(const std::int64_t *slots, int first, int rank,
                           DataType type) {
  TensorView view;
  view.data = std::bit_cast<void *>(slots[first]);
  view.dtype = type;
  view.rank = rank;
  for (int i = 0; i < rank; ++i) {
    view.sizes[i] = slots[first + 1 + i];
    view.strides[i] = slots[first + 1 + rank + i];
  }
  return view;
}

/// attention_fwd with mask blocks of 128 x 64: reads its slots as the kernel
/// does and writes o and lse.
inline void runAttention(const FakeLaunch &launch) {
  ASSERT_EQ(launch.entry, "attention_fwd");
  std::vector<std::int64_t> slots(launch.parameters[0].size() / 8);
  std::memcpy(slots.data(), launch.parameters[0].data(), 8 * slots.size());
  auto tensor = [&](int first, int rank = 4,
                    DataType type = DataType::BFloat16) {
    return tensorAt(slots.data(), first, rank, type);
  };
  reference::AttentionArguments arguments;
  arguments.q = tensor(0);
  arguments.k = tensor(9);
  arguments.v = tensor(18);
  arguments.maskBlockQ = 128;
  arguments.maskBlockKv = 64;
  arguments.softmaxScale =
      std::bit_cast<float>(static_cast<std::uint32_t>(slots[59]));
  reference::BlockMask mask;
  if (slots[27]) {
    mask = reference::maskOfLists(tensor(27, 4, DataType::Int32),
                                  tensor(36, 3, DataType::Int32),
                                  (arguments.k.sizes[2] + 63) / 64);
    arguments.mask = &mask;
  }
  reference::AttentionValues values = reference::referenceAttention(arguments);
  const TensorView o = tensor(43), lse = tensor(52, 3, DataType::Float32);
  std::size_t at = 0, row = 0;
  for (std::int64_t b = 0; b < o.sizes[0]; ++b)
    for (std::int64_t h = 0; h < o.sizes[1]; ++h)
      for (std::int64_t i = 0; i < o.sizes[2]; ++i, ++row) {
        for (std::int64_t d = 0; d < o.sizes[3]; ++d)
          reference::storeElement(reference::elementAddress(o, b, h, i, d),
                                  o.dtype, values.o[at++]);
        if (lse.data)
          reference::storeElement(reference::elementAddress(lse, b, h, i),
                                  lse.dtype, values.lse[row]);
      }
}

class CudaCallTest : public FakeCudaTest {
protected:
  CudaCallTest() {
    fake_.onLaunch = runAttention;
    config_.method = "dense";
    config_.stream = stream(0x50);
    auto random = numerics::randomForTest();
    for (auto *view : {&q_, &k_, &v_, &o_}) {
      *view = TensorView::contiguous(
          nullptr, DataType::BFloat16,
          {2, view == &q_ || view == &o_ ? 4 : 2, 200, 64}, kGpu);
      memory_.emplace_back(static_cast<std::size_t>(view->elementCount() + 8),
                           0x7fff);
      // 16-byte aligned, as the copy engine wants it.
      auto address = reinterpret_cast<std::uintptr_t>(memory_.back().data());
      view->data = reinterpret_cast<void *>((address + 15) / 16 * 16);
      for (std::int64_t i = 0; view != &o_ && i < view->elementCount(); ++i)
        reference::storeElement(static_cast<std::uint16_t *>(view->data) + i,
                                view->dtype, random.normal());
    }
    lse_ = TensorView::contiguous(lseMemory_.data(), DataType::Float32,
                                  {2, 4, 200}, kGpu);
    settings_.cudaDriver = fakeCudaPath();
    makeEngine();
  }

  void makeEngine() {
    engine_ = std::make_unique<api::Engine>(generator_, *texts_, settings_);
  }
  /// An engine whose texts have kernels of selection for the GPU as well.
  void addSelection() {
    textsWithSelection_.assign(fakeTexts().begin(), fakeTexts().end());
    for (auto [path, text] :
         {std::pair("kernels/sm90/pool.mlir", "text of pool for sm90"),
          std::pair("kernels/sm90/select_blocks.mlir",
                    "text of select_blocks for sm90")})
      textsWithSelection_.push_back({path, text});
    texts_ = &textsWithSelection_;
    makeEngine();
  }
  Status run() {
    return engine_->attentionInto(o_, q_, k_, v_, config_, outputs_);
  }
  Status prepare() { return engine_->prepare(q_, k_, v_, config_, outputs_); }
  void expectFailure(ErrorCode code, const std::string &message) {
    Status status = run();
    ASSERT_FALSE(status.ok()) << "expected: " << message;
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), message);
    EXPECT_TRUE(fake_.launches.empty());
  }
  /// Lists of a random mask in the fake device's memory.
  BlockLists randomLists() {
    auto random = numerics::randomForTest(1);
    mask_ = reference::BlockMask(2, 4, 2, 4, false);
    BlockLists lists{*engine_->allocate(DataType::Int32, {2, 4, 2, 4}, kGpu),
                     *engine_->allocate(DataType::Int32, {2, 4, 2}, kGpu),
                     128,
                     64,
                     200,
                     200};
    for (std::int64_t row = 0; row < 16; ++row) {
      std::int32_t count = 0;
      for (std::int32_t j = 0; j < 4; ++j) {
        mask_.bits[static_cast<std::size_t>(4 * row + j)] = random.chance(0.5);
        if (mask_.bits[static_cast<std::size_t>(4 * row + j)])
          lists.indices.data<std::int32_t>()[4 * row + count++] = j;
      }
      lists.counts.data<std::int32_t>()[row] = count;
    }
    return lists;
  }
  void expectReference(const reference::BlockMask *mask) {
    reference::AttentionArguments arguments{
        q_, k_, v_, mask, 128, 64, false, config_.softmaxScale.value_or(0.125),
        {}};
    auto expected = reference::referenceAttention(arguments);
    const auto *o = static_cast<const std::uint16_t *>(o_.data);
    for (std::size_t i = 0; i < expected.o.size(); ++i)
      ASSERT_NEAR(reference::loadElement(o + i, DataType::BFloat16),
                  expected.o[i], 0.02)
          << i;
    for (std::size_t i = 0; outputs_.lse && i < expected.lse.size(); ++i) {
      if (std::isinf(expected.lse[i]))
        ASSERT_EQ(lseMemory_[i], expected.lse[i]);
      else
        ASSERT_NEAR(lseMemory_[i], expected.lse[i], 1e-5);
    }
  }

  FakeCodeGenerator generator_;
  Environment settings_;
  std::vector<kernels_ir::EmbeddedText> textsWithSelection_;
  const std::vector<kernels_ir::EmbeddedText> *texts_ = &fakeTexts();
  std::unique_ptr<api::Engine> engine_;
  AttentionConfig config_;
  AttentionOutputs outputs_;
  std::vector<std::vector<std::uint16_t>> memory_;
  std::vector<float> lseMemory_ = std::vector<float>(2 * 4 * 200, NAN);
  TensorView q_, k_, v_, o_, lse_;
  reference::BlockMask mask_;
};

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// What calls on a GPU launch: the built-in compiler and kernels on the fake
// driver, whose kernels do nothing. That a plan, its tuning and its kernels fit
// each other is seen here without a card.
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/api/Engine.h"
#include "runtime/jit/CodeGenerator.h"
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spargejit::unit {
namespace {

constexpr Device kGpu{DeviceKind::Cuda, 0};
using Names = std::vector<std::string>;

class CudaPlans : public FakeCudaTest {
protected:
  CudaPlans() {
    settings_.cudaDriver = fakeCudaPath();
    // As the driver's log has it; neither stack nor spills.
    fake_.infoLog = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes "
                    "spill loads\nUsed 168 registers\n";
    fake_.onLaunch = [](const FakeLaunch &) {};
    engine_ = std::make_unique<api::Engine>(
        jit::builtInCodeGenerator(), kernels_ir::embeddedTexts(), settings_);
    for (Tensor *tensor : {&q_, &k_, &v_, &o_, &dO_, &dQ_, &dK_, &dV_})
      *tensor = *engine_->allocate(DataType::BFloat16, {1, 4, 1000, 128}, kGpu);
    lse_ = *engine_->allocate(DataType::Float32, {1, 4, 1000}, kGpu);
    lists_ = {*engine_->allocate(DataType::Int32, {1, 4, 8, 16}, kGpu),
              *engine_->allocate(DataType::Int32, {1, 4, 8}, kGpu),
              128,
              64,
              1000,
              1000};
    config_.stream = stream(0x50);
  }

  /// Entries of the kernels that were launched since the last call of this.
  Names launched() {
    Names names;
    for (const FakeLaunch &launch : fake_.launches)
      names.push_back(launch.entry);
    fake_.launches.clear();
    return names;
  }
  void expectAttention(const Names &names) {
    Status status = engine_->attentionInto(o_.view(), q_.view(), k_.view(),
                                           v_.view(), config_, {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(launched(), names);
  }
  void expectBackward(const Names &names) {
    Status status = engine_->attentionBackwardInto(
        {dQ_.view(), dK_.view(), dV_.view()}, q_.view(), k_.view(), v_.view(),
        {o_.view(), lse_.view(), config_.lists}, dO_.view(), config_, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(launched(), names);
  }

  Environment settings_;
  std::unique_ptr<api::Engine> engine_;
  Tensor q_, k_, v_, o_, dO_, dQ_, dK_, dV_, lse_;
  BlockLists lists_;
  AttentionConfig config_;
};

TEST_F(CudaPlans, Attention) {
  config_.method = "dense";
  expectAttention({"attention_fwd"});
  config_.method = "block_sparse";
  config_.lists = &lists_;
  expectAttention({"attention_fwd"});
  config_.lists = nullptr;
  for (const char *method : {"topk", "topp", "spargeattention2"}) {
    config_.method = method;
    expectAttention({"pool", "select_blocks", "attention_fwd"});
  }
}

// Pooling divides a multiprocessor's memory as the selection beside it does:
// all of it is shared where rows are long.
TEST_F(CudaPlans, LaunchesThatRunTogetherDivideMemoryAlike) {
  config_.method = "spargeattention2";
  config_.maskBlockKv = 16;
  for (auto [length, percent] : {std::pair(1000, 72), std::pair(75600, 100)}) {
    SCOPED_TRACE(length);
    Tensor q = *engine_->allocate(DataType::BFloat16, {1, 1, 128, 128}, kGpu);
    Tensor k =
        *engine_->allocate(DataType::BFloat16, {1, 1, length, 128}, kGpu);
    Tensor o = *engine_->allocate(DataType::BFloat16, {1, 1, 128, 128}, kGpu);
    Status status = engine_->attentionInto(o.view(), q.view(), k.view(),
                                           k.view(), config_, {});
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(fake_.launches.size(), 3u);
    EXPECT_EQ(fake_.launches[0].entry, "pool");
    EXPECT_EQ(fake_.launches[0].sharedPercent, percent);
    EXPECT_EQ(fake_.launches[1].sharedPercent, percent);
    fake_.launches.clear();
  }
}

TEST_F(CudaPlans, AttentionInEightBits) {
  for (Precision precision :
       {Precision::Fp8Exact, Precision::Fp8Balanced, Precision::Fp8Fast}) {
    SCOPED_TRACE(precisionName(precision));
    config_.precision = precision;
    config_.method = "dense";
    const Names rounding{"quantise_factors", "quantise", "quantise_again"};
    Names expected = rounding;
    expected.emplace_back("attention_fwd_fp8");
    expectAttention(expected);
    config_.method = "spargeattention2";
    expected = rounding;
    for (const char *name : {"select_blocks", "attention_fwd_fp8"})
      expected.emplace_back(name);
    expectAttention(expected);
  }
}

TEST_F(CudaPlans, BackwardPasses) {
  config_.method = "dense";
  expectBackward({"attention_bwd_q", "attention_bwd_kv"});
  config_.method = "block_sparse";
  config_.lists = &lists_;
  const Names again{"invert_blocks", "attention_bwd_q", "attention_bwd_kv"};
  expectBackward(again);
  // Too few for a head's share of its 8 x 16 blocks of 16 KiB.
  config_.keptBytes = 16384;
  expectBackward(again);
}

TEST_F(CudaPlans, BackwardPassesThatKeepScoreGradients) {
  config_.method = "block_sparse";
  config_.lists = &lists_;
  // All heads at once, and, with room for 6 % of two heads' blocks, in turns.
  for (auto [bytes, rounds] :
       {std::pair{std::int64_t{1} << 30, 1}, std::pair{16 * 16384L, 2}}) {
    SCOPED_TRACE(bytes);
    config_.keptBytes = bytes;
    Status status = engine_->attentionBackwardInto(
        {dQ_.view(), dK_.view(), dV_.view()}, q_.view(), k_.view(), v_.view(),
        {o_.view(), lse_.view(), config_.lists}, dO_.view(), config_, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    const Names names = launched();
    EXPECT_EQ(names.front(), "invert_blocks");
    for (const char *name : {"attention_bwd_kv", "attention_bwd_q_kept"})
      EXPECT_EQ(std::ranges::count(names, name), rounds) << name;
    EXPECT_EQ(std::ranges::count(names, "attention_bwd_delta"), 1);
  }
}

TEST_F(CudaPlans, NamesGradientsThatCannotBeWrittenBeforeAnyLaunch) {
  config_.method = "block_sparse";
  config_.lists = &lists_;
  auto expectRefused = [&](const AttentionGradientViews &gradients,
                           const std::string &message) {
    Status status = engine_->attentionBackwardInto(
        gradients, q_.view(), k_.view(), v_.view(),
        {o_.view(), lse_.view(), config_.lists}, dO_.view(), config_, nullptr);
    EXPECT_EQ(status.code(), ErrorCode::Unsupported);
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(launched(), Names{});
  };
  AttentionGradientViews gradients{dQ_.view(), dK_.view(), dV_.view()};
  gradients.dv.data = static_cast<std::uint16_t *>(gradients.dv.data) + 1;
  const auto address = reinterpret_cast<std::uintptr_t>(gradients.dv.data);
  expectRefused(gradients, fmt::format("gradients.dv.data: expected an address "
                                       "that is a multiple of 16 bytes on a "
                                       "GPU, got {:#x}",
                                       address));
}

TEST_F(CudaPlans, Losses) {
  Tensor loss = *engine_->allocate(DataType::Float32, {1}, kGpu);
  DistillationConfig config;
  config.stream = stream(0x50);
  const TensorView gradient = dQ_.view();
  Status status = engine_->distillationLoss(loss.view(), &gradient, q_.view(),
                                            k_.view(), config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(launched(), (Names{"squared_error", "scaled_total"}));
}

} // namespace
} // namespace spargejit::unit

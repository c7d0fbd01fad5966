// SPDX-License-Identifier: Apache-2.0
//
// A table of bad arguments of backward passes with the message of each.
#include "runtime/api/Validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace spargejit::api {
namespace {

/// A backward pass that is right: batch 2, 4 query heads, 2 key heads, qLen
/// 130, kvLen 100, headDim 16, mask blocks 64 × 16.
struct GoodCall {
  std::vector<float> memory = std::vector<float>(200000);
  std::size_t used = 0;
  TensorView q = make({2, 4, 130, 16});
  TensorView k = make({2, 2, 100, 16});
  TensorView v = make({2, 2, 100, 16});
  TensorView o = make({2, 4, 130, 16});
  TensorView lse = make({2, 4, 130});
  TensorView dO = make({2, 4, 130, 16});
  TensorView dLse = make({2, 4, 130});
  TensorView dQ = make({2, 4, 130, 16});
  TensorView dK = make({2, 2, 100, 16});
  TensorView dV = make({2, 2, 100, 16});
  BlockLists lists;
  bool hasLists = true;
  bool givesLists = true;

  GoodCall() {
    lists.indices = *Tensor::allocate(DataType::Int32, {2, 4, 3, 5});
    lists.counts = *Tensor::allocate(DataType::Int32, {2, 4, 3});
    lists.maskBlockQ = 64;
    lists.maskBlockKv = 16;
    lists.qLen = 130;
    lists.kvLen = 100;
  }

  TensorView make(const std::vector<std::int64_t> &sizes) {
    TensorView view =
        TensorView::contiguous(memory.data() + used, DataType::Float32, sizes);
    used += static_cast<std::size_t>(view.elementCount());
    return view;
  }

  Status validate() const {
    CallTensors tensors;
    tensors.q = &q;
    tensors.k = &k;
    tensors.v = &v;
    tensors.o = &o;
    tensors.lse = &lse;
    tensors.lists = givesLists ? &lists : nullptr;
    tensors.dO = &dO;
    tensors.dLse = &dLse;
    tensors.dQ = &dQ;
    tensors.dK = &dK;
    tensors.dV = &dV;
    AttentionConfig config;
    config.maskBlockQ = 64;
    config.maskBlockKv = 16;
    auto problem = validateInputs(tensors, config, MemoryUse::Used);
    if (!problem.ok())
      return problem.status();
    return validateBackward(tensors, *problem, "topk", hasLists,
                            MemoryUse::Used);
  }
};

TEST(ValidateBackward, TakesWhatIsRight) {
  GoodCall call;
  EXPECT_TRUE(call.validate().ok()) << call.validate().message();
  // dO of a sum: one element everywhere.
  call.dO.strides = {0, 0, 0, 0};
  EXPECT_TRUE(call.validate().ok()) << call.validate().message();
  call.hasLists = call.givesLists = false;
  EXPECT_TRUE(call.validate().ok()) << call.validate().message();
}

TEST(ValidateBackward, ValuesOfRowsLieSideBySideOnAGpu) {
  GoodCall call;
  call.hasLists = call.givesLists = false;
  for (TensorView *view : {&call.q, &call.k, &call.v, &call.o, &call.lse,
                           &call.dO, &call.dLse, &call.dQ, &call.dK, &call.dV})
    view->device = {DeviceKind::Cuda, 0};
  EXPECT_TRUE(call.validate().ok()) << call.validate().message();
  call.dLse.strides = {0, 0, 0}; // of the sum of lse
  EXPECT_EQ(call.validate().code(), ErrorCode::Unsupported);
  EXPECT_EQ(call.validate().message(),
            "dLse.strides[2]: expected 1 on a GPU, got 0");
  call.dLse.strides = {0, 0, 1};
  EXPECT_TRUE(call.validate().ok()) << call.validate().message();
  call.lse.strides[2] = 2;
  EXPECT_EQ(call.validate().message(),
            "saved.lse.strides[2]: expected 1 on a GPU, got 2");
}

struct BadCall {
  const char *message;
  std::function<void(GoodCall &)> spoil;
};

TEST(ValidateBackward, NamesWhatIsWrong) {
  const BadCall bad[] = {
      {"saved.o.rank: expected 4 ([batch, qHeads, qLen, headDim]), got 3",
       [](GoodCall &call) { call.o.rank = 3; }},
      {"saved.o.sizes[2]: expected length 130 as in q, got 129",
       [](GoodCall &call) { call.o.sizes[2] = 129; }},
      {"saved.o.strides[3]: expected 1 (the elements of a head's vector side "
       "by side), got 2",
       [](GoodCall &call) { call.o.strides[3] = 2; }},
      {"saved.lse.dtype: expected float32, got bfloat16",
       [](GoodCall &call) { call.lse.dtype = DataType::BFloat16; }},
      {"saved.lse.data: expected memory, got null",
       [](GoodCall &call) { call.lse.data = nullptr; }},
      {"dO.dtype: expected float32 as in q, got bfloat16",
       [](GoodCall &call) { call.dO.dtype = DataType::BFloat16; }},
      {"dO.sizes[1]: expected heads 4 as in q, got 2",
       [](GoodCall &call) { call.dO.sizes[1] = 2; }},
      {"dO.device: expected cpu as q, got cuda:1",
       [](GoodCall &call) { call.dO.device = {DeviceKind::Cuda, 1}; }},
      {"dLse.sizes[2]: expected qLen 130 as in q, got 1",
       [](GoodCall &call) { call.dLse.sizes[2] = 1; }},
      {"saved.lists: expected the lists of the forward pass, since method "
       "\"topk\" reads listed blocks, got none",
       [](GoodCall &call) { call.givesLists = false; }},
      {"saved.lists: expected none, since method \"topk\" reads every key, got "
       "some",
       [](GoodCall &call) { call.hasLists = false; }},
      {"saved.lists: expected lists for qLen 130 and kvLen 100 in mask blocks "
       "of 64x16 (3x7 blocks), got lists for qLen 130 and kvLen 100 in mask "
       "blocks of 64x32 (3x4 blocks)",
       [](GoodCall &call) { call.lists.maskBlockKv = 32; }},
      {"gradients.dq.sizes[3]: expected headDim 16 as in q, got 8",
       [](GoodCall &call) { call.dQ.sizes[3] = 8; }},
      {"gradients.dk.sizes[1]: expected heads 2 as in k, got 4",
       [](GoodCall &call) { call.dK.sizes[1] = 4; }},
      {"gradients.dv.strides: expected a place of its own for every element, "
       "got sizes [2, 2, 100, 16] and strides [3200, 0, 16, 1]",
       [](GoodCall &call) { call.dV.strides[1] = 0; }},
      {"gradients.dv: expected memory apart from gradients.dk, got an overlap",
       [](GoodCall &call) { call.dV.data = call.dK.data; }},
      {"gradients.dq: expected memory apart from q, got an overlap",
       [](GoodCall &call) { call.dQ.data = call.q.data; }},
      {"gradients.dk: expected memory apart from dO, got an overlap",
       [](GoodCall &call) { call.dK.data = call.dO.data; }},
      {"gradients.dq: expected memory apart from saved.o, got an overlap",
       [](GoodCall &call) { call.dQ.data = call.o.data; }}};
  for (const BadCall &one : bad) {
    GoodCall call;
    one.spoil(call);
    const Status status = call.validate();
    EXPECT_EQ(status.code(), ErrorCode::InvalidArgument) << one.message;
    EXPECT_EQ(status.message(), one.message);
  }
}

} // namespace
} // namespace spargejit::api

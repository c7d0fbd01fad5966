// SPDX-License-Identifier: Apache-2.0
//
// Whole calls on a GPU: what kernels are handed, what is refused, what is
// prepared.
#include "tests/unit/runtime/api/CudaCallFixture.h"

#include <cmath>
#include <thread>
#include <unistd.h>

namespace spargejit::unit {
namespace {

TEST_F(CudaCallTest, ComputesDenseAttention) {
  outputs_.lse = &lse_;
  ASSERT_EQ(run().message(), "");
  expectReference(nullptr);
  ASSERT_EQ(fake_.launches.size(), 1u);
  EXPECT_EQ(fake_.launches[0].stream, stream(0x50));
  EXPECT_EQ(fake_.launches[0].context, primaryContext(0));
  EXPECT_EQ(fake_.launches[0].parameters.size(), 5u);
  // 2 · 4 heads · 2 tiles on 132 multiprocessors.
  EXPECT_EQ(fake_.launches[0].grid[0], 16u);
}

TEST_F(CudaCallTest, MapsTheTensorsItIsGiven) {
  ASSERT_EQ(run().message(), "");
  const TensorView *views[] = {&q_, &k_, &v_, &o_};
  for (std::size_t i = 0; i < 4; ++i) {
    FakeTensorMap map;
    std::memcpy(&map, fake_.launches[0].parameters[1 + i].data(), sizeof map);
    EXPECT_EQ(map.address, reinterpret_cast<std::uintptr_t>(views[i]->data));
    EXPECT_EQ(map.sizes[2], static_cast<std::uint64_t>(views[i]->sizes[1]));
    EXPECT_EQ(map.elementType, cuda::tensor_map::kBFloat16);
  }
}

TEST_F(CudaCallTest, ComputesAttentionOverTheCallersLists) {
  BlockLists lists = randomLists();
  outputs_.lse = &lse_;
  config_.method = "block_sparse";
  config_.lists = &lists;
  config_.validateLists = true;
  ASSERT_EQ(run().message(), "");
  expectReference(&mask_);

  // Read back for the check, entry by entry.
  lists.counts.data<std::int32_t>()[9] = 1;
  lists.indices.data<std::int32_t>()[4 * 9] = 4;
  fake_.launches.clear();
  expectFailure(
      ErrorCode::InvalidArgument,
      "config.lists.indices, batch 1, head 0, row 1, slot 0: expected "
      "a key block from 0 to 3, got 4");
}

TEST_F(CudaCallTest, AllocatesAResultOnTheDevice) {
  auto o = engine_->attention(q_, k_, v_, config_, outputs_);
  ASSERT_TRUE(o.ok()) << o.status().message();
  EXPECT_EQ(o->view().device, kGpu);
  EXPECT_EQ(fake_.allocations.count(o->view().data), 1u);
  std::memcpy(o_.data, o->view().data,
              2 * static_cast<std::size_t>(o_.elementCount()));
  expectReference(nullptr);
}

TEST_F(CudaCallTest, ListsAllBlocksOfADenseCall) {
  BlockLists lists;
  outputs_.lists = &lists;
  ASSERT_EQ(run().message(), "");
  ASSERT_EQ(lists.indices.view().sizes,
            (std::array<std::int64_t, 4>{2, 4, 2, 4}));
  for (std::int32_t i = 0; i < 64; ++i)
    EXPECT_EQ(lists.indices.data<std::int32_t>()[i], i % 4);
  for (std::int32_t i = 0; i < 16; ++i)
    EXPECT_EQ(lists.counts.data<std::int32_t>()[i], 4);
}

TEST_F(CudaCallTest, WritesEmptyRowsWithoutKeys) {
  k_.sizes[2] = v_.sizes[2] = 0;
  outputs_.lse = &lse_;
  ASSERT_EQ(run().message(), "");
  EXPECT_TRUE(fake_.launches.empty());
  for (std::int64_t i = 0; i < o_.elementCount(); ++i)
    ASSERT_EQ(static_cast<std::uint16_t *>(o_.data)[i], 0);
  for (float value : lseMemory_)
    ASSERT_EQ(value, -INFINITY);
  o_.strides[2] = -64;
  o_.data = static_cast<std::uint16_t *>(o_.data) + 199 * 64;
  expectFailure(ErrorCode::Unsupported,
                "o.strides[2]: expected 0 or more on sm_90a, got -64");
}

TEST_F(CudaCallTest, RunsOnTheDeviceOfItsTensors) {
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->device.ordinal = 1;
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.launches[0].context, primaryContext(1));
  EXPECT_EQ(generator_.compiled, 1);
  // Another device of the kind has the code and loads it.
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->device.ordinal = 0;
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.launches[1].context, primaryContext(0));
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(fake_.callsOf("cuModuleLoadDataEx"), 2);
}

TEST_F(CudaCallTest, NamesATensorOnAnotherDevice) {
  o_.device.ordinal = 1;
  expectFailure(ErrorCode::InvalidArgument,
                "o.device: expected cuda:0 as q, got cuda:1");
  o_.device = {};
  expectFailure(ErrorCode::InvalidArgument,
                "o.device: expected cuda:0 as q, got cpu");
  o_.device = kGpu;
  v_.device = {};
  expectFailure(ErrorCode::InvalidArgument,
                "v.device: expected cuda:0 as q, got cpu");
  v_.device = kGpu;
  lse_.device = {};
  outputs_.lse = &lse_;
  expectFailure(ErrorCode::InvalidArgument,
                "outputs.lse.device: expected cuda:0 as q, got cpu");
  outputs_.lse = nullptr;
  auto indices = Tensor::allocate(DataType::Int32, {2, 4, 2, 4});
  auto counts = Tensor::allocate(DataType::Int32, {2, 4, 2});
  BlockLists lists{*indices, *counts, 128, 64, 200, 200};
  config_.method = "block_sparse";
  config_.lists = &lists;
  expectFailure(ErrorCode::InvalidArgument,
                "config.lists.indices.device: expected cuda:0 as q, got cpu");
}

TEST_F(CudaCallTest, NamesWhatItDoesNotImplement) {
  config_.softmaxScale = -0.125;
  expectFailure(ErrorCode::Unsupported,
                "config.softmaxScale: expected a number above 0 on sm_90a, got "
                "-0.125");
  config_.softmaxScale = 0;
  expectFailure(ErrorCode::Unsupported,
                "config.softmaxScale: expected a number above 0 on sm_90a, got "
                "0");
  config_.softmaxScale.reset();
  std::vector<std::uint8_t> bits(64, 1);
  config_.method = "block_sparse";
  config_.blockMask =
      TensorView::contiguous(bits.data(), DataType::Bool, {2, 4, 2, 4}, kGpu);
  config_.blockMask->strides = {32, 8, 4, 2};
  config_.blockMask->sizes[3] = 2;
  expectFailure(ErrorCode::Unsupported,
                "config.blockMask.strides[3]: expected 1 on sm_90a, got 2");
  config_.blockMask.reset();
  config_.method = "spargeattention2";
  expectFailure(ErrorCode::Unsupported,
                "kernel pool: expected one that is built in for sm_90a "
                "(attention_fwd)");
  config_.method = "dense";
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->dtype = DataType::Float32;
  expectFailure(ErrorCode::Unsupported,
                "q.dtype: expected bfloat16 or float16 on sm_90a, got float32");
}

TEST_F(CudaCallTest, NamesAViewThatTheCopyEngineCannotRead) {
  k_.strides[2] = 65;
  k_.sizes[3] = q_.sizes[3];
  expectFailure(ErrorCode::Unsupported,
                "k.strides[2]: expected a multiple of 16 bytes on a GPU, got "
                "130 (65 elements of 2 bytes): pad the rows to a multiple of 8 "
                "elements");
}

TEST_F(CudaCallTest, NamesAGpuThatIsNotThereOrHasNoKernels) {
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->device.ordinal = 5;
  expectFailure(ErrorCode::InvalidArgument,
                "q.device: expected a device from cuda:0 to cuda:1, got "
                "cuda:5");
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->device.ordinal = 0;
  fake_.capability = 120;
  expectFailure(ErrorCode::Unsupported,
                "q.device: cuda:0 is Fake GPU 0 of compute capability 12.0: "
                "expected 9.0 (sm_90a), for which alone this build has "
                "kernels");
}

TEST_F(CudaCallTest, SaysThatThereIsNoDriver) {
  settings_.cudaDriver = "/nowhere/libcuda.so.1";
  makeEngine();
  Status status = run();
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_EQ(status.message().rfind("q.device: the CUDA driver cannot be opened "
                                   "as /nowhere/libcuda.so.1 (",
                                   0),
            0u)
      << status.message();
}

TEST_F(CudaCallTest, LeavesTheCallersContextCurrent) {
  open();
  driver_->functions().contextPush(foreignContext());
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(current(), foreignContext());
  config_.softmaxScale = 0;
  EXPECT_FALSE(run().ok());
  EXPECT_EQ(current(), foreignContext());
  cuda::ContextHandle popped = nullptr;
  driver_->functions().contextPop(&popped);
}

TEST_F(CudaCallTest, PreparesAndThenOnlyLaunches) {
  ASSERT_EQ(prepare().message(), "");
  EXPECT_TRUE(fake_.launches.empty());
  fake_.calls.clear();
  fake_.capturing.insert(stream(0x50));
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(run().message(), "");
  for (const auto &[symbol, count] : fake_.calls)
    EXPECT_TRUE(
        symbol == "cuCtxGetCurrent" || symbol == "cuCtxPushCurrent_v2" ||
        symbol == "cuCtxPopCurrent_v2" || symbol == "cuTensorMapEncodeTiled" ||
        symbol == "cuLaunchKernelEx" || symbol == "cuStreamGetId" ||
        symbol == "cuStreamIsCapturing")
        << symbol;
  ASSERT_EQ(fake_.launches.size(), 10u);
  // All share their rows out by one counter, which is 0 between them.
  std::set<std::int64_t> tickets;
  for (const FakeLaunch &launch : fake_.launches) {
    std::int64_t slot = 0;
    std::memcpy(&slot, launch.parameters[0].data() + 8 * 60, 8);
    tickets.insert(slot);
  }
  ASSERT_EQ(tickets.size(), 1u);
  ASSERT_NE(*tickets.begin(), 0);
  EXPECT_EQ(*std::bit_cast<std::int32_t *>(*tickets.begin()), 0);
  EXPECT_FALSE(fake_.captureBroken);
}

TEST_F(CudaCallTest, AsksForPrepareDuringACapture) {
  fake_.capturing.insert(stream(0x50));
  expectFailure(ErrorCode::InvalidArgument,
                "config.stream: the stream is being captured, and this call "
                "would have to compile and load kernels: expected a prepare() "
                "with these arguments before the capture");
  EXPECT_EQ(generator_.compiled, 0);
  EXPECT_FALSE(fake_.captureBroken);
  // The refusal is not remembered.
  fake_.capturing.clear();
  EXPECT_EQ(run().message(), "");

  // Nothing is measured in a capture: the call has the default.
  fake_.capturing.insert(stream(0x50));
  const int compiled = generator_.compiled;
  config_.tune = TuneMode::OnFirstUse;
  EXPECT_EQ(run().message(), "");
  EXPECT_EQ(generator_.compiled, compiled);
  EXPECT_FALSE(fake_.captureBroken);

  auto o = engine_->attention(q_, k_, v_, config_, outputs_);
  ASSERT_FALSE(o.ok());
  EXPECT_EQ(o.status().message(),
            "o: config.stream: the stream is being captured, and this call "
            "would have to allocate memory for a result: expected a prepare() "
            "with these arguments before the capture");
  EXPECT_FALSE(fake_.captureBroken);
}

/// list_blocks on the fake device.
void runListBlocks(const FakeLaunch &launch) {
  std::vector<std::int64_t> slots(launch.parameters[0].size() / 8);
  std::memcpy(slots.data(), launch.parameters[0].data(), 8 * slots.size());
  ASSERT_EQ(slots.size(), 25u);
  const TensorView mask = tensorAt(slots.data(), 0, 4, DataType::Bool);
  const TensorView indices = tensorAt(slots.data(), 9, 4, DataType::Int32);
  const TensorView counts = tensorAt(slots.data(), 18, 3, DataType::Int32);
  for (std::int64_t b = 0; b < mask.sizes[0]; ++b)
    for (std::int64_t h = 0; h < mask.sizes[1]; ++h)
      for (std::int64_t i = 0; i < mask.sizes[2]; ++i) {
        std::int32_t count = 0;
        for (std::int64_t j = 0; j < mask.sizes[3]; ++j)
          if (*static_cast<std::uint8_t *>(
                  reference::elementAddress(mask, b, h, i, j)))
            *static_cast<std::int32_t *>(reference::elementAddress(
                indices, b, h, i, count++)) = static_cast<std::int32_t>(j);
        *static_cast<std::int32_t *>(
            reference::elementAddress(counts, b, h, i)) = count;
      }
}

// The lists of a mask are made by a launch before the attention's, which a
// prepared call can be captured with.
TEST_F(CudaCallTest, MakesListsOfTheCallersMask) {
  std::vector<kernels_ir::EmbeddedText> texts = fakeTexts();
  texts.push_back(
      {"kernels/sm90/list_blocks.mlir", "text of list_blocks for sm90"});
  texts_ = &texts;
  makeEngine();
  fake_.onLaunch = [](const FakeLaunch &launch) {
    launch.entry == "list_blocks" ? runListBlocks(launch)
                                  : runAttention(launch);
  };
  randomLists(); // draws mask_
  std::vector<std::uint8_t> bits(mask_.bits.begin(), mask_.bits.end());
  config_.method = "block_sparse";
  config_.blockMask =
      TensorView::contiguous(bits.data(), DataType::Bool, {2, 4, 2, 4}, kGpu);
  // Not while it is captured,
  fake_.capturing.insert(stream(0x50));
  expectFailure(ErrorCode::InvalidArgument,
                "config.stream: the stream is being captured, and this call "
                "would have to compile and load kernels: expected a prepare() "
                "with these arguments before the capture");
  fake_.capturing.clear();
  ASSERT_EQ(prepare().message(), "");
  EXPECT_TRUE(fake_.launches.empty());
  // but then with nothing allocated or loaded.
  fake_.calls.clear();
  fake_.capturing.insert(stream(0x50));
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 0);
  EXPECT_EQ(fake_.callsOf("cuModuleLoadDataEx"), 0);
  EXPECT_FALSE(fake_.captureBroken);
  ASSERT_EQ(fake_.launches.size(), 2u);
  EXPECT_EQ(fake_.launches[0].entry, "list_blocks");
  EXPECT_FALSE(fake_.launches[1].isEarly);
  expectReference(&mask_);
}

// Pooling has counted, and the selection that would have cleared the counters
// does not start.
TEST_F(CudaCallTest, ClearsTheCountersOfACallThatFails) {
  addSelection();
  fake_.onLaunch = nullptr;
  config_.method = "spargeattention2";
  ASSERT_EQ(run().message(), "");
  ASSERT_EQ(fake_.launches.size(), 3u);
  std::int64_t address = 0; // of the attention's argument "tickets"
  std::memcpy(&address, fake_.launches[2].parameters[0].data() + 8 * 60, 8);
  auto *counters = std::bit_cast<std::int32_t *>(address);
  ASSERT_NE(counters, nullptr);
  fake_.onLaunch = [&](const FakeLaunch &launch) {
    EXPECT_EQ(launch.entry, "pool");
    counters[kFirstProgressCounter] = 3;
  };
  fake_.failures["cuLaunchKernelEx"] = {0, 700};
  EXPECT_NE(run().message(), "");
  EXPECT_EQ(fake_.launches.size(), 4u);
  EXPECT_EQ(counters[kFirstProgressCounter], 0);
}

// Attention waits for the rows that selection counts, and clears the counters;
// a selection alone, and an attention with lists, count nothing.
TEST_F(CudaCallTest, CountsSelectedRowsForTheAttentionBehind) {
  addSelection();
  fake_.onLaunch = nullptr;
  auto counterOf = [&](const FakeLaunch &launch) {
    std::int64_t address = 0; // of the last argument: data, size, stride
    std::memcpy(&address,
                launch.parameters[0].data() + launch.parameters[0].size() - 24,
                8);
    return address;
  };
  config_.method = "spargeattention2";
  ASSERT_EQ(run().message(), "");
  ASSERT_EQ(fake_.launches.size(), 3u);
  EXPECT_EQ(fake_.launches[1].entry, "select_blocks");
  EXPECT_NE(counterOf(fake_.launches[1]), 0);
  EXPECT_EQ(counterOf(fake_.launches[1]), counterOf(fake_.launches[2]));
  ASSERT_EQ(engine_->selectBlocks(q_, k_, config_).status().message(), "");
  ASSERT_EQ(fake_.launches.size(), 5u);
  EXPECT_EQ(fake_.launches[4].entry, "select_blocks");
  EXPECT_EQ(counterOf(fake_.launches[4]), 0);
  config_.method = "dense";
  ASSERT_EQ(run().message(), "");
  ASSERT_EQ(fake_.launches.size(), 6u);
  EXPECT_EQ(counterOf(fake_.launches[5]), 0);
}

TEST_F(CudaCallTest, ReservesTheWorkspaceOfASelection) {
  addSelection();
  fake_.onLaunch = nullptr; // the launches are looked at, not run
  config_.method = "spargeattention2";
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->sizes[2] = 100;
  ASSERT_EQ(prepare().message(), "");
  fake_.calls.clear();
  fake_.capturing.insert(stream(0x50));
  ASSERT_EQ(run().message(), "");
  // Nothing is allocated, loaded or waited for.
  for (const auto &[symbol, count] : fake_.calls)
    EXPECT_TRUE(
        symbol == "cuCtxGetCurrent" || symbol == "cuCtxPushCurrent_v2" ||
        symbol == "cuCtxPopCurrent_v2" || symbol == "cuTensorMapEncodeTiled" ||
        symbol == "cuLaunchKernelEx" || symbol == "cuStreamGetId" ||
        symbol == "cuStreamIsCapturing")
        << symbol;
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 0);
  ASSERT_EQ(fake_.launches.size(), 3u);
  EXPECT_EQ(fake_.launches[1].entry, "select_blocks");
  // The same memory goes from launch to launch: pooled q, and the lists.
  auto slot = [&](std::size_t launch, std::size_t index) {
    std::int64_t value = 0;
    std::memcpy(&value, fake_.launches[launch].parameters[0].data() + 8 * index,
                8);
    return value;
  };
  EXPECT_EQ(slot(0, 18), slot(1, 0));
  EXPECT_EQ(slot(0, 27), slot(1, 9));
  EXPECT_EQ(slot(1, 18), slot(2, 27));
  EXPECT_NE(slot(1, 18), 0);
  // A longer call takes more than was reserved, and a capture on another
  // stream memory of its own.
  for (TensorView *view : {&q_, &k_, &v_, &o_})
    view->sizes[2] = 200;
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 1);
  EXPECT_NE(slot(4, 18), slot(1, 18));
  fake_.capturing = {stream(0x60)};
  config_.stream = stream(0x60);
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 2);
  EXPECT_NE(slot(7, 18), slot(4, 18));
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 2);
  EXPECT_EQ(slot(10, 18), slot(7, 18));
  EXPECT_EQ(fake_.capturedFills, 0);
  EXPECT_FALSE(fake_.captureBroken);
}

// Each of these costs a warm call time.
TEST_F(CudaCallTest, AsksTheDriverForLittleWhenWarm) {
  ASSERT_EQ(run().message(), "");
  std::map<std::string, int> expected = {
      {"cuCtxGetCurrent", 2},    {"cuCtxPushCurrent_v2", 2},
      {"cuCtxPopCurrent_v2", 2}, {"cuStreamIsCapturing", 1},
      {"cuStreamGetId", 1},      {"cuLaunchKernelEx", 1}};
  fake_.calls.clear();
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.calls, expected);
  // And with the context current already.
  expected.erase("cuCtxPushCurrent_v2");
  expected.erase("cuCtxPopCurrent_v2");
  open();
  cuda::CurrentContext current(*device_);
  fake_.calls.clear();
  ASSERT_EQ(run().message(), "");
  EXPECT_EQ(fake_.calls, expected);
}

TEST_F(CudaCallTest, ServesManyThreadsAtOnce) {
  fake_.onLaunch = nullptr;
  std::vector<std::thread> threads;
  for (std::uintptr_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      AttentionConfig config = config_;
      config.stream = stream(0x100 * (1 + i));
      for (int repeat = 0; repeat < 50; ++repeat)
        EXPECT_EQ(engine_->attentionInto(o_, q_, k_, v_, config, {}).message(),
                  "");
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake_.launches.size(), 400u);
  EXPECT_EQ(generator_.compiled, 1);
  EXPECT_EQ(fake_.callsOf("cuModuleLoadDataEx"), 1);
}

} // namespace
} // namespace spargejit::unit

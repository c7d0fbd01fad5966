// SPDX-License-Identifier: Apache-2.0
//
// A table of bad arguments with the exact message of each.
#include "runtime/api/Engine.h"
#include "tests/unit/runtime/FakeCodeGenerator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace spargejit::api {
namespace {

/// A call that is right: batch 2, 4 query heads, 2 key heads, qLen 130, kvLen
/// 100, headDim 16, mask blocks 64 × 16.
struct GoodCall {
  std::vector<float> qData = std::vector<float>(2 * 4 * 130 * 16, 0.25f);
  std::vector<float> kData = std::vector<float>(2 * 2 * 100 * 16, 0.25f);
  std::vector<float> vData = std::vector<float>(2 * 2 * 100 * 16, 0.25f);
  std::vector<float> oData = std::vector<float>(2 * 4 * 130 * 16, NAN);
  std::vector<float> lseData = std::vector<float>(2 * 4 * 130, NAN);
  std::vector<std::uint8_t> maskData =
      std::vector<std::uint8_t>(2 * 4 * 3 * 7, 1);
  TensorView q =
      TensorView::contiguous(qData.data(), DataType::Float32, {2, 4, 130, 16});
  TensorView k =
      TensorView::contiguous(kData.data(), DataType::Float32, {2, 2, 100, 16});
  TensorView v =
      TensorView::contiguous(vData.data(), DataType::Float32, {2, 2, 100, 16});
  TensorView o =
      TensorView::contiguous(oData.data(), DataType::Float32, {2, 4, 130, 16});
  TensorView lse =
      TensorView::contiguous(lseData.data(), DataType::Float32, {2, 4, 130});
  TensorView mask =
      TensorView::contiguous(maskData.data(), DataType::Bool, {2, 4, 3, 7});
  BlockLists lists;
  AttentionConfig config;
  AttentionOutputs outputs;

  GoodCall() {
    config.method = "dense";
    config.maskBlockQ = 64;
    config.maskBlockKv = 16;
    outputs.lse = &lse;
    lists.indices = *Tensor::allocate(DataType::Int32, {2, 4, 3, 5});
    lists.counts = *Tensor::allocate(DataType::Int32, {2, 4, 3});
    std::fill_n(lists.indices.data<std::int32_t>(), 2 * 4 * 3 * 5, -1);
    std::fill_n(lists.counts.data<std::int32_t>(), 2 * 4 * 3, 0);
    lists.maskBlockQ = 64;
    lists.maskBlockKv = 16;
    lists.qLen = 130;
    lists.kvLen = 100;
  }

  void useMask() {
    config.method = "block_sparse";
    config.blockMask = mask;
  }
  void useLists() {
    config.method = "block_sparse";
    config.lists = &lists;
    config.validateLists = true;
  }
};

Environment plainSettings() { return Environment(); }

class Validate : public testing::Test {
protected:
  Status run(GoodCall &call) {
    return engine_.attentionInto(call.o, call.q, call.k, call.v, call.config,
                                 call.outputs);
  }

  /// Spoils a good call and expects this failure.
  void expectFailure(const std::function<void(GoodCall &)> &spoil,
                     const std::string &message,
                     ErrorCode code = ErrorCode::InvalidArgument) {
    GoodCall call;
    spoil(call);
    Status status = run(call);
    ASSERT_FALSE(status.ok()) << "expected: " << message;
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(status.code(), code) << message;
    for (float value : call.oData)
      ASSERT_TRUE(std::isnan(value)) << "o was written after: " << message;
  }

  unit::FakeCodeGenerator generator_;
  Engine engine_{generator_, unit::fakeTexts(), plainSettings()};
};

TEST_F(Validate, AcceptsTheCallsThatTheTablesSpoil) {
  GoodCall dense, masked, listed;
  EXPECT_EQ(run(dense).message(), "");
  masked.useMask();
  EXPECT_EQ(run(masked).message(), "");
  listed.useLists();
  EXPECT_EQ(run(listed).message(), "");
}

TEST_F(Validate, ChecksTheQuery) {
  expectFailure([](auto &c) { c.q.rank = 3; },
                "q.rank: expected 4 ([batch, qHeads, qLen, headDim]), got 3");
  expectFailure([](auto &c) { c.q.rank = 5; },
                "q.rank: expected 4 ([batch, qHeads, qLen, headDim]), got 5");
  expectFailure([](auto &c) { c.q.sizes[2] = -1; },
                "q.sizes[2]: expected 0 or more, got -1");
  expectFailure([](auto &c) { c.q.dtype = DataType::Int32; },
                "q.dtype: expected float32, bfloat16 or float16, got int32");
  expectFailure([](auto &c) { c.q.sizes[1] = 0; },
                "q.sizes[1]: expected at least 1 head, got 0");
  expectFailure([](auto &c) { c.q.strides[3] = 2; },
                "q.strides[3]: expected 1 (the elements of a head's vector "
                "side by side), got 2");
  expectFailure([](auto &c) { c.q.data = nullptr; },
                "q.data: expected memory, got null");
  expectFailure(
      [](auto &c) { c.q.data = reinterpret_cast<void *>(0x1001); },
      "q.data: expected an address that is a multiple of 4 (float32), got "
      "0x1001");
  expectFailure([](auto &c) { c.q.device = {DeviceKind::Cuda, 1}; },
                "k.device: expected cuda:1 as q, got cpu");
  expectFailure(
      [](auto &c) { c.q.strides[0] = std::int64_t{1} << 62; },
      "q.strides: expected offsets of less than 2^63 bytes, got sizes [2, 4, "
      "130, 16] and strides [4611686018427387904, 2080, 16, 1]");
}

TEST_F(Validate, ListsTheHeadDimensionsThatItHas) {
  for (std::int64_t headDim : {0, 1, 4, 12, 65, 72 + 1, 264, 384})
    expectFailure(
        [&](auto &c) {
          c.q.sizes[3] = c.k.sizes[3] = c.v.sizes[3] = c.o.sizes[3] = headDim;
        },
        "q.sizes[3]: expected a headDim that is a multiple of 8 from 8 to "
        "256, got " +
            std::to_string(headDim));
}

TEST_F(Validate, ChecksKeyAndValueAgainstTheQuery) {
  expectFailure([](auto &c) { c.k.rank = 2; },
                "k.rank: expected 4 ([batch, kvHeads, kvLen, headDim]), got 2");
  expectFailure([](auto &c) { c.k.dtype = DataType::BFloat16; },
                "k.dtype: expected float32 as in q, got bfloat16");
  expectFailure([](auto &c) { c.k.sizes[0] = 1; },
                "k.sizes[0]: expected batch 2 as in q, got 1");
  expectFailure([](auto &c) { c.k.sizes[1] = 3; },
                "k.sizes[1]: expected a number of heads that divides the 4 of "
                "q, got 3");
  expectFailure([](auto &c) { c.k.sizes[1] = 0; },
                "k.sizes[1]: expected a number of heads that divides the 4 of "
                "q, got 0");
  expectFailure([](auto &c) { c.k.sizes[3] = 8; },
                "k.sizes[3]: expected headDim 16 as in q, got 8");
  expectFailure([](auto &c) { c.k.strides[3] = 0; },
                "k.strides[3]: expected 1 (the elements of a head's vector "
                "side by side), got 0");
  expectFailure([](auto &c) { c.v.dtype = DataType::Float16; },
                "v.dtype: expected float32 as in q, got float16");
  expectFailure([](auto &c) { c.v.sizes[1] = 4; },
                "v.sizes[1]: expected kvHeads 2 as in k, got 4");
  expectFailure([](auto &c) { c.v.sizes[2] = 99; },
                "v.sizes[2]: expected kvLen 100 as in k, got 99");
  expectFailure([](auto &c) { c.v.data = nullptr; },
                "v.data: expected memory, got null");
}

TEST_F(Validate, ChecksTheOutputs) {
  expectFailure([](auto &c) { c.o.dtype = DataType::BFloat16; },
                "o.dtype: expected float32 as in q, got bfloat16");
  expectFailure([](auto &c) { c.o.sizes[2] = 129; },
                "o.sizes[2]: expected qLen 130 as in q, got 129");
  expectFailure([](auto &c) { c.o.strides[1] = 0; },
                "o.strides: expected a place of its own for every element, got "
                "sizes [2, 4, 130, 16] and strides [8320, 0, 16, 1]");
  expectFailure([](auto &c) { c.o.data = nullptr; },
                "o.data: expected memory, got null");
  expectFailure([](auto &c) { c.lse.rank = 4; },
                "outputs.lse.rank: expected 3 ([batch, qHeads, qLen]), got 4");
  expectFailure([](auto &c) { c.lse.dtype = DataType::Float16; },
                "outputs.lse.dtype: expected float32, got float16");
  expectFailure([](auto &c) { c.lse.sizes[1] = 2; },
                "outputs.lse.sizes[1]: expected qHeads 4 as in q, got 2");
  expectFailure([](auto &c) { c.lse.strides[2] = 0; },
                "outputs.lse.strides: expected a place of its own for every "
                "element, got sizes [2, 4, 130] and strides [520, 130, 0]");
}

TEST_F(Validate, RefusesOutputsThatOverlapInputs) {
  expectFailure([](auto &c) { c.q.data = c.o.data; },
                "o: expected memory apart from q, got an overlap");
  expectFailure(
      [](auto &c) { c.k.data = c.oData.data() + 2 * 4 * 130 * 16 - 1; },
      "o: expected memory apart from k, got an overlap");
  expectFailure([](auto &c) { c.v.data = c.o.data; },
                "o: expected memory apart from v, got an overlap");
  expectFailure([](auto &c) { c.lse.data = c.oData.data() + 5; },
                "outputs.lse: expected memory apart from o, got an overlap");
  expectFailure([](auto &c) { c.lse.data = c.vData.data(); },
                "outputs.lse: expected memory apart from v, got an overlap");
  expectFailure(
      [](auto &c) {
        c.useMask();
        c.config.blockMask->data = c.o.data;
      },
      "o: expected memory apart from config.blockMask, got an overlap");
}

TEST_F(Validate, ChecksTheSettings) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  expectFailure([&](auto &c) { c.config.topK = nan; },
                "config.topK: expected a share from 0 to 1, got nan");
  expectFailure([](auto &c) { c.config.topK = 1.5; },
                "config.topK: expected a share from 0 to 1, got 1.5");
  expectFailure([](auto &c) { c.config.topP = -0.25; },
                "config.topP: expected a mass from 0 to 1, got -0.25");
  expectFailure([&](auto &c) { c.config.topP = nan; },
                "config.topP: expected a mass from 0 to 1, got nan");
  expectFailure([&](auto &c) { c.config.softmaxScale = inf; },
                "config.softmaxScale: expected a finite float32, got inf");
  expectFailure([&](auto &c) { c.config.softmaxScale = nan; },
                "config.softmaxScale: expected a finite float32, got nan");
  expectFailure([](auto &c) { c.config.softmaxScale = 1e39; },
                "config.softmaxScale: expected a finite float32, got 1e+39");
  expectFailure([](auto &c) { c.config.maskBlockQ = 32; },
                "config.maskBlockQ: expected 64 or 128, got 32");
  expectFailure([](auto &c) { c.config.maskBlockKv = 8; },
                "config.maskBlockKv: expected 16, 32, 64 or 128, got 8");
  expectFailure([](auto &c) { c.config.maskBlockKv = 0; },
                "config.maskBlockKv: expected 16, 32, 64 or 128, got 0");
  expectFailure([](auto &c) { c.config.threads = -1; },
                "config.threads: expected 0 (all) or more, got -1");
  expectFailure([](auto &c) { c.config.keptBytes = -1; },
                "config.keptBytes: expected at least 0, got -1");
  expectFailure([](auto &c) { c.config.tune = static_cast<TuneMode>(7); },
                "config.tune: expected a TuneMode, got the number 7");
}

TEST_F(Validate, ChecksTheDevice) {
  auto moved = [](GoodCall &call, Device device) {
    for (TensorView *view : {&call.q, &call.k, &call.v, &call.o, &call.lse})
      view->device = device;
  };
  expectFailure([&](auto &c) { moved(c, {DeviceKind::Cpu, 1}); },
                "q.device: expected ordinal 0, since there is one CPU, got 1");
  expectFailure([&](auto &c) { moved(c, {DeviceKind::Cpu, -1}); },
                "q.device: expected ordinal 0, since there is one CPU, got -1");
  expectFailure([&](auto &c) { moved(c, {static_cast<DeviceKind>(9), 0}); },
                "q.device: expected a DeviceKind, got the number 9");
  expectFailure([](auto &c) { c.k.device.ordinal = 1; },
                "k.device: expected cpu as q, got cpu:1");
}

/// Strides of 0 make more elements than can be counted of a few bytes.
TEST_F(Validate, RefusesMoreElementsThanCanBeCounted) {
  constexpr std::int64_t kMany = std::int64_t{1} << 32;
  expectFailure(
      [](auto &c) {
        for (TensorView *view : {&c.q, &c.k, &c.v}) {
          view->sizes = {kMany, 2, kMany, 16};
          view->strides = {0, 0, 0, 1};
        }
      },
      "q.sizes: expected fewer than 2^60 elements, got sizes [4294967296, 2, "
      "4294967296, 16]");
  // None, however large the other sizes are.
  GoodCall none;
  for (TensorView *view : {&none.q, &none.o})
    view->sizes = {0, 4, kMany * (kMany / 4), 16};
  none.lse.sizes = {0, 4, kMany * (kMany / 4)};
  for (TensorView *view : {&none.k, &none.v})
    view->sizes[0] = 0;
  none.q.strides = {0, 0, 0, 1};
  none.o.strides = {0, 0, 0, 1};
  none.lse.strides = {0, 0, 0};
  EXPECT_EQ(run(none).message(), "");
}

TEST_F(Validate, RefusesListMemoryThatOverlapsTheCall) {
  GoodCall call;
  call.config.method = "spargeattention2";
  AttentionForward into;
  auto borrow = [](void *memory) {
    return std::shared_ptr<void>(std::shared_ptr<void>(), memory);
  };
  into.o = Tensor::adopt(borrow(call.oData.data()), DataType::Float32,
                         {2, 4, 130, 16});
  into.lse = Tensor::adopt(borrow(call.lseData.data()), DataType::Float32,
                           {2, 4, 130});
  into.lists = call.lists;
  auto expectOverlap = [&](float *memory, const std::string &name) {
    into.lists.indices =
        Tensor::adopt(borrow(memory), DataType::Int32, {2, 4, 3, 7});
    EXPECT_EQ(
        engine_.attentionForwardInto(into, call.q, call.k, call.v, call.config)
            .message(),
        "into.lists.indices: expected memory apart from " + name +
            ", got an overlap");
  };
  expectOverlap(call.oData.data(), "o");
  expectOverlap(call.lseData.data(), "lse");
  expectOverlap(call.vData.data(), "v");
  std::vector<float> shares(2 * 4 * 3 * 7, 0.5f);
  call.config.topKByHead =
      TensorView::contiguous(shares.data(), DataType::Float32, {4});
  expectOverlap(shares.data(), "config.topKByHead");
}

TEST_F(Validate, ChecksValuesByHead) {
  static float values[8] = {};
  auto flat = [](std::int64_t size) {
    return TensorView::contiguous(values, DataType::Float32, {size});
  };
  expectFailure([&](auto &c) { c.config.topKByHead = flat(3); },
                "config.topKByHead.sizes[0]: expected qHeads 4 as in q, got 3");
  expectFailure(
      [&](auto &c) {
        c.config.topPByHead =
            TensorView::contiguous(values, DataType::Float32, {4, 2});
      },
      "config.topPByHead.sizes[0]: expected batch 2 as in q, got 4");
  expectFailure(
      [&](auto &c) {
        c.config.topPByHead =
            TensorView::contiguous(values, DataType::Float32, {2, 1});
      },
      "config.topPByHead.sizes[1]: expected qHeads 4 as in q, got 1");
  expectFailure(
      [&](auto &c) {
        c.config.topKByHead =
            TensorView::contiguous(values, DataType::Float32, {1, 2, 4});
      },
      "config.topKByHead.rank: expected 1 ([1] or [qHeads]; or 2, [batch, "
      "qHeads]), got 3");
  expectFailure(
      [&](auto &c) {
        c.config.topKByHead =
            TensorView::contiguous(values, DataType::Int32, {4});
      },
      "config.topKByHead.dtype: expected float32, got int32");
  expectFailure(
      [&](auto &c) {
        c.config.topKByHead = flat(4);
        c.config.topKByHead->device = {DeviceKind::Cuda, 0};
      },
      "config.topKByHead.device: expected cpu as q, got cuda:0");
  expectFailure([&](auto &c) { c.config.topKByHead = TensorView(); },
                "config.topKByHead.rank: expected 1 ([1] or [qHeads]; or 2, "
                "[batch, qHeads]), got 0");
  expectFailure(
      [&](auto &c) {
        c.config.topKByHead = flat(4);
        c.config.topKByHead->data = nullptr;
      },
      "config.topKByHead.data: expected memory, got null");
  // Only where the method reads the setting.
  expectFailure([&](auto &c) { c.config.topKByHead = flat(1); },
                "config.topKByHead: expected none, since method \"dense\" has "
                "no top_k, got a tensor");
  expectFailure([&](auto &c) { c.config.topPByHead = flat(4); },
                "config.topPByHead: expected none, since method \"dense\" has "
                "no top_p, got a tensor");
  expectFailure(
      [&](auto &c) {
        c.config.method = "spargeattention2";
        c.config.topKByHead =
            TensorView::contiguous(c.oData.data(), DataType::Float32, {4});
      },
      "o: expected memory apart from config.topKByHead, got an overlap");
}

TEST_F(Validate, ChecksRangesOfDenseTokens) {
  expectFailure([](auto &c) { c.config.denseKeys = {-1, 4}; },
                "config.denseKeys: expected 0 <= begin <= end <= 100 (kvLen), "
                "got -1 to 4");
  expectFailure([](auto &c) { c.config.denseKeys = {5, 4}; },
                "config.denseKeys: expected 0 <= begin <= end <= 100 (kvLen), "
                "got 5 to 4");
  expectFailure([](auto &c) { c.config.denseKeys = {0, 101}; },
                "config.denseKeys: expected 0 <= begin <= end <= 100 (kvLen), "
                "got 0 to 101");
  expectFailure([](auto &c) { c.config.denseRows = {0, 131}; },
                "config.denseRows: expected 0 <= begin <= end <= 130 (qLen), "
                "got 0 to 131");
  expectFailure([](auto &c) { c.config.denseKeys = {0, 1}; },
                "config.denseKeys: expected no tokens, since method \"dense\" "
                "selects nothing, got a range");
  expectFailure([](auto &c) { c.config.denseRows = {129, 130}; },
                "config.denseRows: expected no tokens, since method \"dense\" "
                "selects nothing, got a range");
  GoodCall empty;
  empty.config.denseKeys = {7, 7};
  EXPECT_EQ(run(empty).message(), "");
}

TEST_F(Validate, ChecksTheMethod) {
  expectFailure([](auto &c) { c.config.method = "nonsense"; },
                "config.method: expected one of \"block_sparse\", \"broken\", "
                "\"dense\", \"spargeattention2\", or the path of a method file "
                "(ends in .mlir), got \"nonsense\"");
  expectFailure([](auto &c) { c.config.method = "broken"; },
                "while planning method broken: methods/broken.mlir:1:1: no "
                "method",
                ErrorCode::CompileFailed);
}

TEST_F(Validate, WantsAMaskOrListsExactlyWhereTheMethodDoes) {
  expectFailure([](auto &c) { c.config.method = "block_sparse"; },
                "config.blockMask: expected a mask here or lists in "
                "config.lists for method \"block_sparse\", got neither");
  expectFailure(
      [](auto &c) {
        c.useMask();
        c.useLists();
      },
      "config.blockMask: expected either a mask or config.lists, got both");
  expectFailure(
      [](auto &c) {
        c.useMask();
        c.config.method = "dense";
      },
      "config.blockMask: expected none, since method \"dense\" takes no mask, "
      "got one");
  expectFailure(
      [](auto &c) {
        c.useLists();
        c.config.method = "spargeattention2";
      },
      "config.lists: expected none, since method \"spargeattention2\" takes no "
      "lists, got some");
}

TEST_F(Validate, ChecksTheMask) {
  auto withMask = [](auto spoil) {
    return [spoil](GoodCall &call) {
      call.useMask();
      spoil(*call.config.blockMask);
    };
  };
  expectFailure(withMask([](TensorView &mask) { mask.rank = 3; }),
                "config.blockMask.rank: expected 4 ([batch, qHeads, qBlocks, "
                "kvBlocks]), got 3");
  expectFailure(
      withMask([](TensorView &mask) { mask.dtype = DataType::Int32; }),
      "config.blockMask.dtype: expected bool, got int32");
  expectFailure(withMask([](TensorView &mask) { mask.sizes[3] = 6; }),
                "config.blockMask.sizes: expected [2, 4, 3, 7] (batch, qHeads, "
                "ceil(130/64) query blocks, ceil(100/16) key blocks), got [2, "
                "4, 3, 6]");
  expectFailure(withMask([](TensorView &mask) { mask.data = nullptr; }),
                "config.blockMask.data: expected memory, got null");
}

TEST_F(Validate, ChecksListsAgainstTheProblem) {
  auto withLists = [](auto spoil) {
    return [spoil](GoodCall &call) {
      call.useLists();
      spoil(call.lists);
    };
  };
  expectFailure(withLists([](BlockLists &lists) { lists.qLen = 8192; }),
                "config.lists: expected lists for qLen 130 and kvLen 100 in "
                "mask blocks of 64x16 (3x7 blocks), got lists for qLen 8192 "
                "and kvLen 100 in mask blocks of 64x16 (128x7 blocks)");
  expectFailure(withLists([](BlockLists &lists) { lists.maskBlockKv = 64; }),
                "config.lists: expected lists for qLen 130 and kvLen 100 in "
                "mask blocks of 64x16 (3x7 blocks), got lists for qLen 130 and "
                "kvLen 100 in mask blocks of 64x64 (3x2 blocks)");
  expectFailure(withLists([](BlockLists &lists) { lists = BlockLists(); }),
                "config.lists: expected lists for qLen 130 and kvLen 100 in "
                "mask blocks of 64x16 (3x7 blocks), got lists for qLen 0 and "
                "kvLen 0 in mask blocks of 0x0 (0x0 blocks)");
  expectFailure(withLists([](BlockLists &lists) { lists.counts = Tensor(); }),
                "config.lists.counts.rank: expected 3 ([batch, qHeads, "
                "qBlocks]), got 0");
  expectFailure(withLists([](BlockLists &lists) {
                  lists.counts = *Tensor::allocate(DataType::Bool, {2, 4, 3});
                }),
                "config.lists.counts.dtype: expected int32, got bool");
  expectFailure(withLists([](BlockLists &lists) {
                  lists.indices =
                      *Tensor::allocate(DataType::Int32, {2, 2, 3, 5});
                }),
                "config.lists.indices.sizes: expected 2, 4, 3 in front (batch, "
                "qHeads, qBlocks), got 2, 2, 3, 5");
}

TEST_F(Validate, ChecksListEntriesWhereAsked) {
  auto row = [](std::size_t number, std::int32_t count,
                std::vector<std::int32_t> entries) {
    return [=](GoodCall &call) {
      call.useLists();
      call.lists.counts.data<std::int32_t>()[number] = count;
      std::copy(entries.begin(), entries.end(),
                call.lists.indices.data<std::int32_t>() + number * 5);
    };
  };
  // Row 17 is batch 1, head 1, row 2.
  expectFailure(row(17, 6, {}),
                "config.lists.counts, batch 1, head 1, row 2: expected 0 to 5 "
                "(the capacity of indices), got 6");
  expectFailure(row(17, -1, {}),
                "config.lists.counts, batch 1, head 1, row 2: expected 0 to 5 "
                "(the capacity of indices), got -1");
  expectFailure(row(0, 4, {3, -1, -1, -1}),
                "config.lists.indices, batch 0, head 0, row 0, slot 1: "
                "expected a key block from 0 to 6, got -1");
  expectFailure(row(4, 2, {6, 7}),
                "config.lists.indices, batch 0, head 1, row 1, slot 1: "
                "expected a key block from 0 to 6, got 7");
  expectFailure(row(4, 3, {6, 0, 6}),
                "config.lists.indices, batch 0, head 1, row 1, slot 2: "
                "expected a key block from 0 to 6 that is not in the row yet, "
                "got 6");
  GoodCall good;
  row(17, 1, {3, -1, 99, 99, 99})(good);
  EXPECT_EQ(run(good).message(), "") << "slots beyond the count are not read";
}

TEST_F(Validate, SelectsWithMethodsThatSelectAlone) {
  GoodCall call;
  for (const char *method : {"dense", "block_sparse"}) {
    call.config.method = method;
    auto lists = engine_.selectBlocks(call.q, call.k, call.config);
    ASSERT_FALSE(lists.ok());
    EXPECT_EQ(lists.status().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(lists.status().message(),
              std::string("config.method: expected a method that selects "
                          "blocks, got \"") +
                  method + "\"");
  }
}

TEST_F(Validate, LooksAtShapesAloneWhenPreparing) {
  GoodCall call;
  call.q.data = call.k.data = call.v.data = call.lse.data = nullptr;
  EXPECT_EQ(engine_.prepare(call.q, call.k, call.v, call.config, call.outputs)
                .message(),
            "");
  call.k.sizes[3] = 8;
  EXPECT_EQ(engine_.prepare(call.q, call.k, call.v, call.config, call.outputs)
                .message(),
            "k.sizes[3]: expected headDim 16 as in q, got 8");
}

} // namespace
} // namespace spargejit::api

// SPDX-License-Identifier: Apache-2.0
//
// What a call does not accept is refused with a message that names the
// argument, and nothing is written: never a silent dense or wrong result.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestBackend.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace spargejit::numerics {
namespace {

using Parts = std::vector<std::string>;

class Refusals : public BackendTest {
protected:
  /// Runs, and expects a failure that leaves o as it was.
  testing::AssertionResult refuses(AttentionTrial &trial, ErrorCode code,
                                   const Parts &parts) {
    const auto result = failedWith(trial.run(), code, parts);
    if (!result)
      return result;
    for (const std::byte byte : trial.o.bits())
      if (byte != std::byte{0xff})
        return testing::AssertionFailure() << "o was written all the same";
    return trial.memoryIsIntact();
  }
  Random random = randomForTest();
};
SPARGEJIT_ON_EVERY_BACKEND(Refusals);

// cases: 60
TEST_P(Refusals, HeadDimensionsOutsideTheList) {
  for (const std::int64_t headDim : {31, 65, 4, 260, 264, 384}) {
    AttentionTrial trial(backend(),
                         {.qLen = 70, .kvLen = 70, .headDim = headDim}, random);
    const Status status = trial.run();
    ASSERT_FALSE(status.ok()) << headDim;
    EXPECT_TRUE(status.code() == ErrorCode::InvalidArgument ||
                status.code() == ErrorCode::Unsupported);
    // What was found and what would do.
    EXPECT_TRUE(failedWith(status, status.code(),
                           {"q", std::to_string(headDim), "8", "256"}));
  }
}

// cases: 57
TEST_P(Refusals, LastStrideOtherThanOne) {
  AttentionTrial trial(backend(), {.qLen = 64, .kvLen = 64}, random);
  for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v, &trial.o})
    tensor->upload();
  const char *const names[] = {"o", "q", "k", "v"};
  for (std::size_t which = 0; which < 4; ++which) {
    TensorView views[] = {trial.o.view(), trial.q.view(), trial.k.view(),
                          trial.v.view()};
    views[which] = views[which].transposed(2, 3);
    EXPECT_TRUE(failedWith(
        attentionInto(views[0], views[1], views[2], views[3], trial.config),
        ErrorCode::InvalidArgument, {names[which], "stride", "64"}));
  }
}

TEST_P(Refusals, TensorsThatDoNotFitTogether) {
  AttentionTrial trial(
      backend(),
      {.batch = 2, .qHeads = 4, .kvHeads = 2, .qLen = 64, .kvLen = 96}, random);
  const auto refused = [&](const char *name, auto change) {
    TensorView o = trial.o.view();
    TensorView q = trial.q.view();
    TensorView k = trial.k.view();
    TensorView v = trial.v.view();
    change(o, q, k, v);
    return failedWith(attentionInto(o, q, k, v, trial.config),
                      ErrorCode::InvalidArgument, {name});
  };
  EXPECT_TRUE(refused("k", [](auto &, auto &, auto &k, auto &v) {
    k.sizes[3] = v.sizes[3] = 32;
  }));
  EXPECT_TRUE(
      refused("v", [](auto &, auto &, auto &, auto &v) { v.sizes[2] = 95; }));
  // Values narrower than queries and keys, as some models have.
  EXPECT_TRUE(
      refused("v", [](auto &, auto &, auto &, auto &v) { v.sizes[3] = 32; }));
  EXPECT_TRUE(
      refused("k", [](auto &, auto &, auto &k, auto &) { k.sizes[0] = 1; }));
  EXPECT_TRUE(refused("heads", [](auto &o, auto &q, auto &, auto &) {
    o.sizes[1] = q.sizes[1] = 3; // no multiple of two
  }));
  EXPECT_TRUE(refused("k", [](auto &, auto &, auto &k, auto &) {
    k.dtype = DataType::BFloat16;
  }));
  EXPECT_TRUE(refused("o", [](auto &o, auto &, auto &, auto &) {
    o.dtype = DataType::Float16;
  }));
  EXPECT_TRUE(
      refused("o", [](auto &o, auto &, auto &, auto &) { o.sizes[2] = 63; }));
  EXPECT_TRUE(
      refused("q", [](auto &, auto &q, auto &, auto &) { q.rank = 3; }));
  EXPECT_TRUE(
      refused("q", [](auto &, auto &q, auto &, auto &) { q.data = nullptr; }));
}

TEST_P(Refusals, DataTypesThatAreNotForInputs) {
  for (const DataType type : {DataType::Int32, DataType::Bool}) {
    AttentionTrial trial(backend(), {.qLen = 64, .kvLen = 64}, random);
    TensorView views[] = {trial.o.view(), trial.q.view(), trial.k.view(),
                          trial.v.view()};
    for (TensorView &view : views)
      view.dtype = type;
    EXPECT_TRUE(failedWith(
        attentionInto(views[0], views[1], views[2], views[3], trial.config),
        ErrorCode::InvalidArgument, {"q", dataTypeName(type)}));
  }
}

// A tensor on another device than the rest.
// cases: 70
TEST_P(Refusals, TensorsOnDifferentDevices) {
  AttentionTrial trial(backend(), {.qLen = 64, .kvLen = 64}, random);
  TensorView k = trial.k.view();
  k.device = {DeviceKind::Cuda, 7};
  const Status status = attentionInto(trial.o.view(), trial.q.view(), k,
                                      trial.v.view(), trial.config);
  ASSERT_FALSE(status.ok());
  // A build without that back end does not implement it; one with it is told of
  // a mixture that none accepts.
  EXPECT_TRUE(status.code() == ErrorCode::InvalidArgument ||
              status.code() == ErrorCode::Unsupported);
  EXPECT_TRUE(failedWith(status, status.code(), {"k", "cuda:7"}));
}

TEST_P(Refusals, ConfigurationsOutOfRange) {
  AttentionTrial trial(backend(), {.qLen = 64, .kvLen = 64}, random);
  const auto refused = [&](const char *name, auto change) {
    const AttentionConfig before = trial.config;
    trial.config.method = "spargeattention2";
    change(trial.config);
    const auto result = refuses(trial, ErrorCode::InvalidArgument, {name});
    trial.config = before;
    return result;
  };
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused("maskBlockQ", [](auto &c) { c.maskBlockQ = 32; }));
  EXPECT_TRUE(refused("maskBlockKv", [](auto &c) { c.maskBlockKv = 48; }));
  EXPECT_TRUE(refused("maskBlockKv", [](auto &c) { c.maskBlockKv = 0; }));
  for (const double value : {-0.1, 1.1, nan, infinity}) {
    EXPECT_TRUE(refused("topK", [&](auto &c) { c.topK = value; }));
    EXPECT_TRUE(refused("topP", [&](auto &c) { c.topP = value; }));
  }
  for (const double value : {nan, infinity, -infinity})
    EXPECT_TRUE(
        refused("softmaxScale", [&](auto &c) { c.softmaxScale = value; }));
  EXPECT_TRUE(refused("threads", [](auto &c) { c.threads = -1; }));
  EXPECT_TRUE(
      refused("no_such_method", [](auto &c) { c.method = "no_such_method"; }));
}

// A mask made for 8192 tokens, used with 1024.
// cases: 10
TEST_P(Refusals, MasksOfAnotherLength) {
  AttentionTrial trial(
      backend(), {.qLen = 1024, .kvLen = 1024, .maskBlockKv = 128}, random);
  AttentionCase larger = trial.shape;
  larger.qLen = larger.kvLen = 8192;
  trial.useMask(larger.fullMask());
  EXPECT_TRUE(
      refuses(trial, ErrorCode::InvalidArgument, {"blockMask", "64", "8"}));
  const BlockLists lists = makeLists(larger, larger.fullMask(), {}, random);
  trial.useLists(trial.shape.fullMask(), random);
  trial.config.lists = &lists;
  EXPECT_TRUE(refuses(trial, ErrorCode::InvalidArgument, {"lists", "8192"}));
}

// Lists of other mask blocks than the call's.
// cases: 25
TEST_P(Refusals, ListsOfAnotherMaskBlock) {
  AttentionTrial trial(backend(), {.qLen = 512, .kvLen = 512}, random);
  BlockLists lists = makeLists(trial.shape, trial.shape.fullMask(), {}, random);
  lists.maskBlockQ = 64;
  lists.maskBlockKv = 128;
  trial.config.method = "block_sparse";
  trial.config.lists = &lists;
  EXPECT_TRUE(refuses(trial, ErrorCode::InvalidArgument,
                      {"lists", "128x64", "64x128"}));
}

// cases: 69, 70
TEST_P(Refusals, ListsOfAnotherTypeOrShape) {
  AttentionTrial trial(backend(), {.qHeads = 2, .qLen = 300, .kvLen = 300},
                       random);
  const BlockLists right =
      makeLists(trial.shape, trial.shape.fullMask(), {}, random);
  trial.config.method = "block_sparse";
  const auto refused = [&](const Parts &parts, auto change) {
    BlockLists lists = right;
    change(lists);
    trial.config.lists = &lists;
    return refuses(trial, ErrorCode::InvalidArgument, parts);
  };
  const auto make = [](DataType type, const std::vector<std::int64_t> &sizes) {
    return Tensor::allocate(type, sizes).value();
  };
  EXPECT_TRUE(refused({"indices", "int32"}, [&](BlockLists &lists) {
    lists.indices = make(DataType::Float32, {1, 2, 3, 5});
  }));
  EXPECT_TRUE(refused({"counts", "int32"}, [&](BlockLists &lists) {
    lists.counts = make(DataType::Bool, {1, 2, 3});
  }));
  EXPECT_TRUE(refused({"indices"}, [&](BlockLists &lists) {
    lists.indices = make(DataType::Int32, {1, 1, 3, 5});
  }));
  EXPECT_TRUE(refused({"counts"}, [&](BlockLists &lists) {
    lists.counts = make(DataType::Int32, {1, 2, 4});
  }));
  EXPECT_TRUE(refused({"indices"},
                      [&](BlockLists &lists) { lists.indices = Tensor(); }));
  TestTensor map(backend(), DataType::Int32, {1, 2, 3, 5});
  trial.config.lists = nullptr;
  trial.config.blockMask = map.view();
  EXPECT_TRUE(
      refuses(trial, ErrorCode::InvalidArgument, {"blockMask", "bool"}));
}

TEST_P(Refusals, MaskAndMethodThatDoNotGoTogether) {
  AttentionTrial trial(backend(), {.qLen = 200, .kvLen = 200}, random);
  trial.config.method = "block_sparse"; // neither map nor lists
  EXPECT_TRUE(refuses(trial, ErrorCode::InvalidArgument, {"block_sparse"}));
  // A mask that the method would not look at must not be dropped silently.
  trial.useMask(trial.shape.fullMask());
  trial.config.method = "dense";
  EXPECT_TRUE(refuses(trial, ErrorCode::InvalidArgument, {"blockMask"}));
  const BlockLists lists =
      makeLists(trial.shape, trial.shape.fullMask(), {}, random);
  trial.config.method = "block_sparse"; // both
  trial.config.lists = &lists;
  EXPECT_TRUE(refuses(trial, ErrorCode::InvalidArgument, {"lists"}));
  for (const char *method : {"dense", "block_sparse"}) {
    trial.config.method = method;
    EXPECT_TRUE(failedWith(
        selectBlocks(trial.q.view(), trial.k.view(), trial.config).status(),
        ErrorCode::InvalidArgument, {method}));
  }
}

// Validation finds entries out of range, entries that come twice and counts
// that no list has room for; without it, stray entries are skipped.
// cases: 18, 110
TEST_P(Refusals, ValidationNamesTheBadEntry) {
  AttentionTrial trial(backend(), {.qHeads = 2, .qLen = 300, .kvLen = 300},
                       random);
  trial.config.method = "block_sparse";
  trial.config.validateLists = true;
  const auto check = [&](const Parts &parts, auto change) {
    BlockMask mask = trial.shape.emptyMask();
    mask.set(0, 1, 2, 3, true);
    BlockLists lists = makeLists(trial.shape, mask, {}, random);
    // Row (0, 1, 2) is the last of six, with five slots.
    change(lists.indices.data<std::int32_t>() + 25,
           lists.counts.data<std::int32_t>()[5]);
    trial.config.lists = &lists;
    if (parts.empty())
      return succeeded(trial.run());
    return refuses(trial, ErrorCode::InvalidArgument, parts);
  };
  EXPECT_TRUE(check({}, [](std::int32_t *, std::int32_t &) {}));
  EXPECT_TRUE(check({"-1"}, [](std::int32_t *, std::int32_t &n) { n = 4; }));
  EXPECT_TRUE(check({"5"}, [](std::int32_t *row, std::int32_t &) {
    row[0] = 5; // five blocks: 0 … 4
  }));
  EXPECT_TRUE(check({"3"}, [](std::int32_t *row, std::int32_t &n) {
    row[1] = 3;
    n = 2;
  }));
  EXPECT_TRUE(check({"6"}, [](std::int32_t *row, std::int32_t &n) {
    for (std::int32_t j = 0; j < 5; ++j)
      row[j] = j;
    n = 6;
  }));
  EXPECT_TRUE(check({"-2"}, [](std::int32_t *, std::int32_t &n) { n = -2; }));
  trial.config.validateLists = false;
  EXPECT_TRUE(check({}, [](std::int32_t *, std::int32_t &n) { n = 4; }));
}

TEST_P(Refusals, OutputsThatOverlapInputs) {
  AttentionTrial trial(backend(), {.qLen = 100, .kvLen = 100}, random);
  for (const TensorView &input :
       {trial.q.view(), trial.k.view(), trial.v.view()}) {
    EXPECT_TRUE(failedWith(attentionInto(input, trial.q.view(), trial.k.view(),
                                         trial.v.view(), trial.config),
                           ErrorCode::InvalidArgument, {"o"}));
  }
}

} // namespace
} // namespace spargejit::numerics

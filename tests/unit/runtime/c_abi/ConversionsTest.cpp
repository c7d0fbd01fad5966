// SPDX-License-Identifier: Apache-2.0
//
// What the C functions make of their structs, and refuse in them.
#include "runtime/c_abi/Conversions.h"

#include "runtime/c_abi/Errors.h"
#include "tests/unit/runtime/c_abi/FromC.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

namespace spargejit::c_abi {
namespace {

TEST(CAbiLayout, IsThatOfC) {
  const std::size_t here[8][2] = {
      {sizeof(SpargejitTensor), offsetof(SpargejitTensor, deviceOrdinal)},
      {sizeof(SpargejitLists), offsetof(SpargejitLists, kvLen)},
      {sizeof(SpargejitConfig), offsetof(SpargejitConfig, keptBytes)},
      {sizeof(SpargejitOutputs), offsetof(SpargejitOutputs, lists)},
      {sizeof(SpargejitSaved), offsetof(SpargejitSaved, lists)},
      {sizeof(SpargejitGradients), offsetof(SpargejitGradients, dv)},
      {sizeof(SpargejitTuning), offsetof(SpargejitTuning, problem)},
      {sizeof(SpargejitCounters),
       offsetof(SpargejitCounters, compileMilliseconds)}};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_EQ(kLayoutsInC[i][j], here[i][j]) << i << " " << j;
}

/// Version 1 for ever, but for what it grew by: programs that were compiled
/// with it are out there.
TEST(CAbiLayout, StaysThatOfVersionOne) {
  const std::size_t published[8][2] = {{88, 84}, {208, 200}, {168, 160},
                                       {24, 16}, {32, 24},   {32, 24},
                                       {40, 32}, {56, 48}};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_EQ(kLayoutsInC[i][j], published[i][j]) << i << " " << j;
}

TEST(CAbiConfig, FieldsArrive) {
  SpargejitConfig from = configFromC();
  int stream = 0;
  from.stream = &stream;
  from.hasSoftmaxScale = 1;
  from.softmaxScale = -0.5;
  from.denseKeys[0] = 3;
  from.denseKeys[1] = 8;
  from.denseRows[1] = 2;
  from.threads = 5;
  from.validateLists = 1;
  from.tune = 1;
  from.precision = SpargejitPrecisionFp8Fast;
  from.keptBytes = std::int64_t{5} << 31;
  from.customSource = "float score();";
  CallConfig to;
  Status status = toConfig(&from, to);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(to.config.method, "topk");
  EXPECT_EQ(to.config.customSource, "float score();");
  EXPECT_EQ(to.config.topK, 0.5);
  EXPECT_EQ(to.config.topP, 0.25);
  EXPECT_EQ(to.config.maskBlockQ, 64);
  EXPECT_EQ(to.config.maskBlockKv, 32);
  EXPECT_TRUE(to.config.causal);
  EXPECT_TRUE(to.config.validateLists);
  EXPECT_EQ(to.config.softmaxScale, -0.5);
  EXPECT_EQ(to.config.denseKeys.begin, 3);
  EXPECT_EQ(to.config.denseKeys.end, 8);
  EXPECT_EQ(to.config.denseRows.end, 2);
  EXPECT_EQ(to.config.threads, 5);
  EXPECT_EQ(to.config.stream, &stream);
  EXPECT_EQ(to.config.tune, TuneMode::OnFirstUse);
  EXPECT_EQ(to.config.keptBytes, std::int64_t{5} << 31);
  EXPECT_FALSE(to.config.blockMask || to.config.lists || to.config.topKByHead);
}

TEST(CAbiConfig, DefaultsAreThoseOfCpp) {
  SpargejitConfig from;
  ASSERT_EQ(spargejit_init_config(&from, sizeof from), SpargejitOk);
  CallConfig to;
  ASSERT_TRUE(toConfig(&from, to).ok());
  const AttentionConfig defaults;
  EXPECT_EQ(to.config.method, defaults.method);
  EXPECT_EQ(to.config.topK, defaults.topK);
  EXPECT_EQ(to.config.topP, defaults.topP);
  EXPECT_EQ(to.config.maskBlockQ, defaults.maskBlockQ);
  EXPECT_EQ(to.config.maskBlockKv, defaults.maskBlockKv);
  EXPECT_EQ(to.config.causal, defaults.causal);
  EXPECT_FALSE(to.config.softmaxScale.has_value());
}

/// A caller that was compiled with a later version, whose config has more.
struct LaterConfig {
  SpargejitConfig known;
  std::int64_t later;
};

TEST(CAbiConfig, FieldsOfALaterVersionMustBeZero) {
  LaterConfig config{configFromC(), 0};
  config.known.structSize = sizeof config;
  CallConfig to;
  EXPECT_TRUE(toConfig(&config.known, to).ok());
  config.later = 1;
  CallConfig other;
  Status status = toConfig(&config.known, other);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_NE(status.message().find("later"), std::string::npos);
  config.later = 0;
  config.known.precision = 4;
  status = toConfig(&config.known, other);
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_EQ(status.message().find("config.precision"), 0u) << status.message();

  std::memset(static_cast<void *>(&config), 0xff, sizeof config);
  ASSERT_EQ(spargejit_init_config(&config.known, sizeof config), SpargejitOk);
  EXPECT_EQ(config.later, 0);
  EXPECT_EQ(config.known.structSize, sizeof config);
}

TEST(CAbiConfig, RefusesSizesThatNoVersionHad) {
  SpargejitConfig config = configFromC();
  for (std::size_t size :
       {std::size_t{0}, offsetof(SpargejitConfig, keptBytes) - 8,
        ~std::size_t{0}}) {
    config.structSize = size;
    CallConfig to;
    Status status = toConfig(&config, to);
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_EQ(status.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(status.message().find("config.structSize"), std::string::npos);
  }
  CallConfig to;
  EXPECT_FALSE(toConfig(nullptr, to).ok());
  for (std::size_t size : {offsetof(SpargejitConfig, keptBytes) - 8,
                           std::size_t{1} << 20, ~std::size_t{0}}) {
    EXPECT_EQ(spargejit_init_config(&config, size), SpargejitInvalidArgument);
    EXPECT_NE(std::string(spargejit_last_error()).find(std::to_string(size)),
              std::string::npos);
  }
  EXPECT_EQ(spargejit_init_config(nullptr, sizeof config),
            SpargejitInvalidArgument);
}

/// A caller that was compiled before keptBytes was there.
TEST(CAbiConfig, FieldsThatAnEarlierVersionLacksAreNotGiven) {
  constexpr std::size_t size = offsetof(SpargejitConfig, keptBytes);
  SpargejitConfig config;
  std::memset(&config, 0xff, sizeof config);
  ASSERT_EQ(spargejit_init_config(&config, size), SpargejitOk);
  EXPECT_EQ(config.structSize, size);
  EXPECT_EQ(config.keptBytes, -1) << "written beyond the caller's struct";
  config.causal = 1;
  CallConfig to;
  Status status = toConfig(&config, to);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(to.config.causal);
  EXPECT_EQ(to.config.keptBytes, 0);
}

TEST(CAbiTensors, RefuseWhatThereIsNot) {
  float data[6];
  const SpargejitTensor good{data,   SpargejitFloat32, 2, {2, 3},
                             {3, 1}, SpargejitCpu,     0};
  auto view = toView("x", &good);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->data, data);
  EXPECT_EQ(view->sizes[1], 3);
  EXPECT_EQ(view->strides[0], 3);
  auto refused = [](const SpargejitTensor *tensor, const char *what) {
    auto result = toView("x", tensor);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(result.status().message().find(what), 0u)
        << result.status().message();
  };
  refused(nullptr, "x: ");
  SpargejitTensor bad = good;
  bad.dtype = 6;
  refused(&bad, "x.dtype: ");
  bad = good;
  bad.rank = 5;
  refused(&bad, "x.rank: ");
  bad = good;
  bad.deviceKind = 2;
  refused(&bad, "x.deviceKind: ");
  bad = good;
  bad.deviceOrdinal = 1; // there is one CPU
  refused(&bad, "x.deviceOrdinal: ");
  bad.deviceKind = SpargejitCuda;
  EXPECT_TRUE(toView("x", &bad).ok());
  bad.deviceOrdinal = -1;
  refused(&bad, "x.deviceOrdinal: ");
}

TEST(CAbiTensors, ListsAreDense) {
  std::int32_t data[64];
  SpargejitLists lists{};
  lists.indices = {data,           SpargejitInt32, 4, {1, 2, 3, 4},
                   {24, 12, 4, 1}, SpargejitCpu,   0};
  lists.counts = {data,      SpargejitInt32, 3, {1, 2, 3},
                  {6, 3, 1}, SpargejitCpu,   0};
  EXPECT_TRUE(toLists("lists", &lists).ok());
  lists.indices.strides[0] = 1000; // of one element: says nothing
  EXPECT_TRUE(toLists("lists", &lists).ok());
  lists.indices.strides[1] = 13;
  auto result = toLists("lists", &lists);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message().find("lists.indices.strides[1]"), 0u)
      << result.status().message();
}

TEST(CAbiErrors, BelongToTheirThread) {
  EXPECT_EQ(report(Status(ErrorCode::IoError, "here")), SpargejitIoError);
  std::thread([] {
    EXPECT_STREQ(spargejit_last_error(), "");
    EXPECT_EQ(report(Status(ErrorCode::Internal, "there")), SpargejitInternal);
  }).join();
  EXPECT_STREQ(spargejit_last_error(), "here");
  EXPECT_EQ(report(Status()), SpargejitOk);
  EXPECT_STREQ(spargejit_status_name(SpargejitOk), "Ok");
  EXPECT_STREQ(spargejit_status_name(SpargejitIoError), "IoError");
}

TEST(CAbiErrors, ExceptionsDoNotLeave) {
  EXPECT_EQ(guarded([]() -> Status { throw std::bad_alloc(); }),
            SpargejitOutOfResources);
  EXPECT_EQ(guarded([]() -> Status { throw std::runtime_error("odd"); }),
            SpargejitInternal);
  EXPECT_STREQ(spargejit_last_error(), "odd");
}

} // namespace
} // namespace spargejit::c_abi

// SPDX-License-Identifier: Apache-2.0
//
// Devices, and whose context is current when.
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <thread>

namespace spargejit::cuda {
namespace {

class DeviceContextTest : public unit::FakeDeviceTest {};

TEST_F(DeviceContextTest, KnowsItsDevice) {
  EXPECT_EQ(device_->ordinal(), 0);
  EXPECT_EQ(device_->name(), "Fake GPU 0");
  EXPECT_EQ(device_->capability(), 90);
  EXPECT_EQ(device_->multiprocessors(), 132);
  EXPECT_EQ(device_->sharedBytes(), 232448);
  EXPECT_EQ(device_->handle(), unit::primaryContext(0));
}

TEST_F(DeviceContextTest, LeavesNothingCurrent) {
  EXPECT_EQ(current(), nullptr);
}

TEST_F(DeviceContextTest, RefusesADeviceThatIsNotThere) {
  for (int ordinal : {-1, 2, 7}) {
    auto device = DeviceContext::open(*driver_, ordinal);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(device.status().message(),
              "expected a device from cuda:0 to cuda:1, got cuda:" +
                  std::to_string(ordinal));
  }
}

TEST_F(DeviceContextTest, GivesBackTheContextThatWasCurrent) {
  {
    CurrentContext scope(*device_);
    EXPECT_TRUE(scope.status().ok());
    EXPECT_EQ(current(), device_->handle());
  }
  EXPECT_EQ(current(), nullptr);

  driver_->functions().contextPush(unit::foreignContext());
  {
    CurrentContext scope(*device_);
    EXPECT_EQ(current(), device_->handle());
    // Another thread has its own.
    std::thread([&] { EXPECT_EQ(current(), nullptr); }).join();
  }
  EXPECT_EQ(current(), unit::foreignContext());
  ContextHandle popped = nullptr;
  driver_->functions().contextPop(&popped);
}

TEST_F(DeviceContextTest, PushesNothingWhereItIsCurrentAlready) {
  driver_->functions().contextPush(device_->handle());
  fake_.calls.clear();
  {
    CurrentContext scope(*device_);
  }
  EXPECT_EQ(fake_.callsOf("cuCtxPushCurrent_v2"), 0);
  EXPECT_EQ(fake_.callsOf("cuCtxPopCurrent_v2"), 0);
  EXPECT_EQ(current(), device_->handle());
  ContextHandle popped = nullptr;
  driver_->functions().contextPop(&popped);
}

TEST_F(DeviceContextTest, TellsWhenItCannotBeCurrent) {
  fake_.failures["cuCtxPushCurrent_v2"] = {999};
  {
    CurrentContext scope(*device_);
    EXPECT_EQ(scope.status().message(),
              "cuCtxPushCurrent failed: CUDA_ERROR_UNKNOWN (999): unknown "
              "error");
  }
  EXPECT_EQ(fake_.callsOf("cuCtxPopCurrent_v2"), 0);
}

TEST_F(DeviceContextTest, KnowsACapturedStream) {
  EXPECT_TRUE(expectNoCapture(*device_, stream(7), "do it").ok());
  fake_.capturing.insert(stream(7));
  Status status = expectNoCapture(*device_, stream(7), "do it");
  EXPECT_EQ(status.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(status.message(),
            "config.stream: the stream is being captured, and this call would "
            "have to do it: expected a prepare() with these arguments before "
            "the capture");
  EXPECT_TRUE(expectNoCapture(*device_, stream(8), "do it").ok());
  // The legacy stream would wait for the captured one.
  EXPECT_EQ(expectNoCapture(*device_, nullptr, "do it").code(),
            ErrorCode::InvalidArgument);
  fake_.failures["cuStreamIsCapturing"] = {999};
  EXPECT_EQ(expectNoCapture(*device_, stream(8), "do it").code(),
            ErrorCode::DriverError);
}

TEST_F(DeviceContextTest, RelaxesTheCaptureModeOfThisThreadAlone) {
  auto modeNow = [&] {
    int mode = kCaptureModeRelaxed;
    driver_->functions().exchangeCaptureMode(&mode);
    int before = mode;
    driver_->functions().exchangeCaptureMode(&mode);
    return before;
  };
  EXPECT_EQ(modeNow(), 0);
  {
    RelaxedCapture relaxed(*driver_);
    EXPECT_EQ(modeNow(), kCaptureModeRelaxed);
    std::thread([&] { EXPECT_EQ(modeNow(), 0); }).join();
  }
  EXPECT_EQ(modeNow(), 0);
}

} // namespace
} // namespace spargejit::cuda

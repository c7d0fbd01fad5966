// SPDX-License-Identifier: Apache-2.0
//
// Base of the suites that run on the fake driver.
#pragma once

#include "runtime/backend/cuda/DeviceContext.h"
#include "tests/unit/runtime/backend/cuda/FakeCuda.h"

#include <gtest/gtest.h>

#include <memory>

namespace spargejit::unit {

class FakeCudaTest : public testing::Test {
protected:
  FakeCudaTest() { fake_.reset(); }

  /// The driver's and device 0's calls so far are forgotten.
  void open() {
    auto driver = cuda::Driver::open(fakeCudaPath());
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    driver_ = *std::move(driver);
    auto device = cuda::DeviceContext::open(*driver_, 0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = *std::move(device);
    fake_.calls.clear();
  }
  /// The context that is current on this thread.
  cuda::ContextHandle current() const {
    cuda::ContextHandle context = nullptr;
    driver_->functions().contextCurrent(&context);
    return context;
  }
  static cuda::StreamHandle stream(std::uintptr_t number) {
    return reinterpret_cast<cuda::StreamHandle>(number);
  }

  FakeCuda &fake_ = fakeCuda();
  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<cuda::DeviceContext> device_;
};

/// A suite whose tests have a driver and a device.
class FakeDeviceTest : public FakeCudaTest {
protected:
  void SetUp() override { open(); }
};

} // namespace spargejit::unit

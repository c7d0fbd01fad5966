// SPDX-License-Identifier: Apache-2.0
//
// Opening drivers that are there, are not, or are not what they should be; and
// their errors in words.
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

namespace spargejit::cuda {
namespace {

class DriverTest : public unit::FakeCudaTest {};

TEST_F(DriverTest, SaysWhereItLookedForTheLibrary) {
  auto driver = Driver::open("libcuda_of_nobody.so.1");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), ErrorCode::Unsupported);
  const std::string &message = driver.status().message();
  EXPECT_EQ(message.rfind(
                "the CUDA driver cannot be opened as libcuda_of_nobody.so.1 "
                "(libcuda_of_nobody.so.1: cannot open shared object file",
                0),
            0u)
      << message;
  EXPECT_NE(message.find("SPARGEJIT_LIBCUDA"), std::string::npos);
}

TEST_F(DriverTest, NamesTheFunctionsThatAnOldDriverLacks) {
  auto driver = Driver::open(unit::oldFakeCudaPath());
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), ErrorCode::Unsupported);
  EXPECT_EQ(driver.status().message(),
            unit::oldFakeCudaPath() +
                ": expected a driver of CUDA 12.1 or later, got one without "
                "cuStreamGetId, cuTensorMapEncodeTiled");
}

TEST_F(DriverTest, KnowsItsVersionAndDevices) {
  fake_.version = 12080;
  fake_.deviceCount = 3;
  auto driver = Driver::open(unit::fakeCudaPath());
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  EXPECT_EQ((*driver)->version(), 12080);
  EXPECT_EQ((*driver)->versionText(), "12.8");
  EXPECT_EQ((*driver)->deviceCount(), 3);
  EXPECT_EQ((*driver)->path(), unit::fakeCudaPath());
  EXPECT_NE((*driver)->symbol("cuInit"), nullptr);
  EXPECT_EQ((*driver)->symbol("cuOfNobody"), nullptr);
}

TEST_F(DriverTest, SaysThatThereIsNoDevice) {
  fake_.failures["cuInit"] = {result::kNoDevice};
  auto driver = Driver::open(unit::fakeCudaPath());
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), ErrorCode::Unsupported);
  EXPECT_EQ(driver.status().message(),
            unit::fakeCudaPath() +
                ": the CUDA driver sees no device (CUDA_ERROR_NO_DEVICE (100): "
                "no CUDA-capable device is detected)");
}

TEST_F(DriverTest, SaysWhyItDoesNotStart) {
  fake_.failures["cuInit"] = {999};
  auto driver = Driver::open(unit::fakeCudaPath());
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), ErrorCode::DriverError);
  EXPECT_EQ(driver.status().message(),
            unit::fakeCudaPath() + ": cuInit failed: CUDA_ERROR_UNKNOWN (999): "
                                   "unknown error");
}

TEST_F(DriverTest, TellsErrorsInTheDriversWords) {
  open();
  EXPECT_TRUE(driver_->check(result::kSuccess, "cuAnything").ok());
  Status status = driver_->check(999, "cuAnything");
  EXPECT_EQ(status.code(), ErrorCode::DriverError);
  EXPECT_EQ(status.message(),
            "cuAnything failed: CUDA_ERROR_UNKNOWN (999): unknown error");
  EXPECT_EQ(driver_->check(12345, "cuAnything").message(),
            "cuAnything failed: unknown error (12345): the driver has no text "
            "for it");
}

TEST_F(DriverTest, TellsWhatAnEarlierLaunchLeft) {
  open();
  Status status = driver_->check(result::kIllegalAddress, "cuMemAlloc");
  EXPECT_EQ(status.code(), ErrorCode::DriverError);
  EXPECT_EQ(status.message(),
            "cuMemAlloc failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal "
            "memory access was encountered; an earlier asynchronous launch in "
            "this context left this error, not this call");
  for (ResultCode code : {result::kLaunchFailed, result::kLaunchTimeout,
                          result::kMisalignedAddress, result::kAssert})
    EXPECT_NE(driver_->check(code, "cuMemAlloc").message().find("earlier"),
              std::string::npos);
}

TEST_F(DriverTest, TellsWhenThereIsNotEnough) {
  open();
  for (ResultCode code : {result::kOutOfMemory, result::kLaunchOutOfResources})
    EXPECT_EQ(driver_->check(code, "cuMemAlloc").code(),
              ErrorCode::OutOfResources);
}

} // namespace
} // namespace spargejit::cuda

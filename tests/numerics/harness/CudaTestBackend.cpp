// SPDX-License-Identifier: Apache-2.0
//
// Device memory for tests, by the driver. Writing and reading wait for all work
// on the device, so that tests see what calls have left.
#include "tests/numerics/harness/CudaTestBackend.h"

#include "runtime/backend/cuda/DeviceMemory.h"
#include "runtime/base/Environment.h"

#include <bit>
#include <stdexcept>

namespace spargejit::numerics {
namespace {

void require(const Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.message());
}

class CudaTestBackend : public TestBackend {
public:
  CudaTestBackend(std::unique_ptr<cuda::Driver> driver,
                  std::unique_ptr<cuda::DeviceContext> device)
      : driver_(std::move(driver)), device_(std::move(device)),
        copyToDevice_(reinterpret_cast<CopyToDevice *>(
            driver_->symbol("cuMemcpyHtoD_v2"))) {}

  std::string name() const override { return "Cuda"; }
  Abilities abilities() const override {
    return {.float32 = false,
            .anyScale = false,
            .anyLayout = false,
            .anyEightBitWidth = false};
  }
  Device device() const override { return {DeviceKind::Cuda, 0}; }
  bool hasFences() const override { return false; }

  std::shared_ptr<std::byte> allocate(std::size_t size, Surroundings,
                                      bool) override {
    auto memory =
        cuda::allocateMemory(*device_, static_cast<std::int64_t>(size));
    require(memory.status());
    return std::static_pointer_cast<std::byte>(*memory);
  }
  void write(std::byte *to, const std::byte *from, std::size_t size) override {
    if (size == 0)
      return;
    cuda::CurrentContext current(*device_);
    require(current.status());
    waitForDevice();
    require(driver_->check(
        copyToDevice_(std::bit_cast<std::uintptr_t>(to), from, size),
        "cuMemcpyHtoD"));
  }
  void read(std::byte *to, const std::byte *from, std::size_t size) override {
    cuda::CurrentContext current(*device_);
    require(current.status());
    waitForDevice();
    require(cuda::copyToHost(*device_, from, to,
                             static_cast<std::int64_t>(size), nullptr));
  }

private:
  using CopyToDevice = cuda::ResultCode(cuda::DeviceAddress, const void *,
                                        std::size_t);

  void waitForDevice() {
    require(driver_->check(driver_->functions().contextSynchronize(),
                           "cuCtxSynchronize"));
  }

  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<cuda::DeviceContext> device_;
  CopyToDevice *copyToDevice_;
};

} // namespace

TestBackend *cudaTestBackend() {
  static const std::unique_ptr<CudaTestBackend> kBackend =
      []() -> std::unique_ptr<CudaTestBackend> {
    const Result<Environment> &settings = environment();
    if (!settings.ok())
      return nullptr;
    auto driver = cuda::Driver::open(settings->cudaDriver);
    if (!driver.ok())
      return nullptr;
    auto device = cuda::DeviceContext::open(**driver, 0);
    if (!device.ok() || (*device)->capability() != 90)
      return nullptr;
    return std::make_unique<CudaTestBackend>(*std::move(driver),
                                             *std::move(device));
  }();
  return kBackend.get();
}

} // namespace spargejit::numerics

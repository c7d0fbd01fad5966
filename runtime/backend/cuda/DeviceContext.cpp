// SPDX-License-Identifier: Apache-2.0
//
// Primary contexts, made current for the length of a call.
#include "runtime/backend/cuda/DeviceContext.h"

#include <fmt/format.h>

#include <array>

namespace spargejit::cuda {

Result<std::unique_ptr<DeviceContext>> DeviceContext::open(const Driver &driver,
                                                           int ordinal) {
  if (ordinal < 0 || ordinal >= driver.deviceCount())
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("expected a device from cuda:0 to cuda:{}, got "
                              "cuda:{}",
                              driver.deviceCount() - 1, ordinal));
  std::unique_ptr<DeviceContext> device(new DeviceContext(driver));
  device->ordinal_ = ordinal;
  const DriverFunctions &functions = driver.functions();
  DeviceNumber number = 0;
  if (Status status =
          driver.check(functions.deviceGet(&number, ordinal), "cuDeviceGet");
      !status)
    return status;
  std::array<char, 256> name{};
  if (Status status = driver.check(
          functions.deviceName(name.data(), static_cast<int>(name.size()) - 1,
                               number),
          "cuDeviceGetName");
      !status)
    return status;
  device->name_ = name.data();
  int major = 0;
  int minor = 0;
  for (auto [attribute, value] :
       {std::pair(device_attribute::kComputeCapabilityMajor, &major),
        std::pair(device_attribute::kComputeCapabilityMinor, &minor),
        std::pair(device_attribute::kMultiprocessorCount,
                  &device->multiprocessors_),
        std::pair(device_attribute::kMaxSharedBytesPerBlock,
                  &device->sharedBytes_)})
    if (Status status =
            driver.check(functions.deviceAttribute(value, attribute, number),
                         "cuDeviceGetAttribute");
        !status)
      return status;
  device->capability_ = 10 * major + minor;
  if (Status status =
          driver.check(functions.primaryContextRetain(&device->handle_, number),
                       "cuDevicePrimaryCtxRetain");
      !status)
    return status;
  return device;
}

CurrentContext::CurrentContext(const DeviceContext &device)
    : functions_(device.driver().functions()) {
  ContextHandle current = nullptr;
  if (functions_.contextCurrent(&current) == result::kSuccess &&
      current == device.handle())
    return;
  status_ = device.driver().check(functions_.contextPush(device.handle()),
                                  "cuCtxPushCurrent");
  pushed_ = status_.ok();
}

CurrentContext::~CurrentContext() {
  // Fails only with an error that an earlier launch left, which the calls in
  // the scope have reported; the context is popped all the same.
  ContextHandle popped = nullptr;
  if (pushed_)
    functions_.contextPop(&popped);
}

RelaxedCapture::RelaxedCapture(const Driver &driver)
    : functions_(driver.functions()) {
  functions_.exchangeCaptureMode(&mode_);
}

RelaxedCapture::~RelaxedCapture() { functions_.exchangeCaptureMode(&mode_); }

Result<bool> isCaptured(const DeviceContext &device, StreamHandle stream) {
  CurrentContext current(device); // whose legacy stream a null stream is
  if (!current.status().ok())
    return current.status();
  return isCaptured(device.driver(), stream);
}

Result<bool> isCaptured(const Driver &driver, StreamHandle stream) {
  int status = kCaptureNone;
  ResultCode code = driver.functions().streamIsCapturing(stream, &status);
  // So the legacy stream answers while another one is being captured that it
  // would have to wait for.
  if (code == result::kStreamCaptureImplicit)
    return true;
  if (Status failed = driver.check(code, "cuStreamIsCapturing"); !failed)
    return failed;
  return status != kCaptureNone;
}

Status expectNoCapture(const DeviceContext &device, StreamHandle stream,
                       const char *what) {
  auto captured = isCaptured(device, stream);
  if (!captured.ok() || !*captured)
    return captured.status();
  return Status(ErrorCode::InvalidArgument,
                fmt::format("config.stream: the stream is being captured, "
                            "and this call would have to {}: expected a "
                            "prepare() with these arguments before the "
                            "capture",
                            what));
}

} // namespace spargejit::cuda

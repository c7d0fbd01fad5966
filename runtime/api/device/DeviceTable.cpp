// SPDX-License-Identifier: Apache-2.0
//
// Opening devices.
#include "runtime/api/device/DeviceTable.h"

#include "runtime/api/device/CudaDevice.h"
#include "runtime/api/device/HostDevice.h"
#include "runtime/base/Log.h"

namespace spargejit::api {

DeviceTable::DeviceTable(jit::CodeGenerator &generator,
                         const std::vector<kernels_ir::EmbeddedText> &texts,
                         const Environment &settings)
    : generator_(generator), texts_(texts), settings_(settings),
      host_(std::make_unique<HostDevice>(generator, texts, settings)) {}

Result<DeviceTable::Entry *> DeviceTable::find(Device device) {
  if (device.kind == DeviceKind::Cpu)
    return &host_;
  std::lock_guard lock(mutex_);
  auto it = cuda_.find(device.ordinal);
  if (it != cuda_.end())
    return it->second.get();
  auto entry = openCuda(device.ordinal);
  if (!entry.ok())
    return entry.status();
  return (cuda_[device.ordinal] = *std::move(entry)).get();
}

Result<std::unique_ptr<DeviceTable::Entry>> DeviceTable::openCuda(int ordinal) {
  if (!driver_) {
    auto driver = cuda::Driver::open(settings_.cudaDriver);
    if (!driver.ok())
      return driver.status();
    driver_ = *std::move(driver);
  }
  auto context = cuda::DeviceContext::open(*driver_, ordinal);
  if (!context.ok())
    return context.status();
  auto target = targetOf(**context);
  if (!target.ok())
    return target.status();
  if (settings_.racecheck)
    target->features = kRacecheckFeature;
  logFormatted(LogLevel::Info, "cuda:{} is {}, driver CUDA {} ({})", ordinal,
               (*context)->name(), driver_->versionText(), driver_->path());
  std::unique_ptr<jit::DeviceJit> &jit = jits_[target->architecture];
  if (!jit)
    jit = std::make_unique<jit::DeviceJit>(generator_, texts_, settings_,
                                           *target);
  return std::make_unique<Entry>(
      std::make_unique<CudaDevice>(*std::move(context), *jit));
}

} // namespace spargejit::api

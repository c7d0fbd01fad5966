// SPDX-License-Identifier: Apache-2.0
//
// Opening devices.
#include "runtime/api/device/DeviceTable.h"

#include "autotune/db/ShippedRecords.h"
#include "runtime/api/Checks.h"
#include "runtime/api/device/CudaDevice.h"
#include "runtime/api/device/HostDevice.h"
#include "runtime/base/Log.h"
#include "runtime/base/ProcessorName.h"
#include "runtime/jit/AssembleWithPtxas.h"

namespace spargejit::api {

namespace {

autotune::TuningEnvironment hostEnvironment() {
  autotune::TuningEnvironment here;
  here.device = processorName();
  here.assembler = "none";
  return here;
}

autotune::TuningEnvironment gpuEnvironment(const cuda::DeviceContext &context,
                                           const cuda::Driver &driver,
                                           const Environment &settings) {
  autotune::TuningEnvironment here;
  here.device = context.name();
  here.driver = "CUDA " + driver.versionText();
  here.assembler = "the driver's";
  if (!settings.ptxas.empty())
    if (auto identity = jit::assemblerIdentity(settings.ptxas); identity.ok())
      here.assembler = *identity;
  return here;
}

} // namespace

DeviceTable::DeviceTable(jit::CodeGenerator &generator,
                         const std::vector<kernels_ir::EmbeddedText> &texts,
                         const Environment &settings)
    : generator_(generator), texts_(texts), settings_(settings),
      host_(std::make_unique<HostDevice>(generator, texts, settings),
            tuningTable(Target(), hostEnvironment())) {}

std::unique_ptr<autotune::TuningTable>
DeviceTable::tuningTable(const Target &target,
                         autotune::TuningEnvironment here) const {
  here.target = target.architecture;
  // Without a compiler, what runs was made elsewhere: all records are as good.
  if (jit::hasBuiltInCompiler())
    here.generator = generator_.identity();
  return std::make_unique<autotune::TuningTable>(
      autotune::knownRecords(settings_), std::move(here),
      jit::kernelTextDigests(texts_, target));
}

Result<DeviceTable::Entry *> DeviceTable::find(Device device) {
  if (device.kind == DeviceKind::Cpu && device.ordinal == 0)
    return &host_;
  const auto number = static_cast<std::size_t>(device.ordinal);
  const bool isFirst =
      device.kind == DeviceKind::Cuda && number < opened_.size();
  if (Entry *opened =
          isFirst ? opened_[number].load(std::memory_order_acquire) : nullptr)
    return opened;
  Checks checks;
  checks.that(device.kind != DeviceKind::Cpu,
              "expected ordinal 0, since there is one CPU, got {}",
              device.ordinal);
  checks.that(device.kind == DeviceKind::Cpu || device.kind == DeviceKind::Cuda,
              "expected a DeviceKind, got the number {}",
              static_cast<int>(device.kind));
  if (!checks.ok())
    return std::move(checks).status();
  std::lock_guard lock(mutex_);
  auto it = cuda_.find(device.ordinal);
  if (it != cuda_.end())
    return it->second.get();
  auto entry = openCuda(device.ordinal);
  if (!entry.ok())
    return entry.status();
  Entry *opened = (cuda_[device.ordinal] = *std::move(entry)).get();
  if (isFirst)
    opened_[number].store(opened, std::memory_order_release);
  return opened;
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
  autotune::TuningEnvironment here =
      gpuEnvironment(**context, *driver_, settings_);
  return std::make_unique<Entry>(
      std::make_unique<CudaDevice>(*std::move(context), *jit),
      tuningTable(*target, std::move(here)));
}

} // namespace spargejit::api

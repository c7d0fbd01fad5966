// SPDX-License-Identifier: Apache-2.0
//
// The devices that a process has used so far, each with its prepared plans.
#pragma once

#include "autotune/db/TuningTable.h"
#include "runtime/api/PreparedPlans.h"
#include "runtime/api/device/CallDevice.h"
#include "runtime/backend/cuda/Driver.h"
#include "runtime/jit/DeviceJit.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace spargejit::api {

/// Thread-safe.
class DeviceTable {
public:
  struct Entry {
    Entry(std::unique_ptr<CallDevice> callDevice,
          std::unique_ptr<autotune::TuningTable> tuningTable)
        : device(std::move(callDevice)), tuning(std::move(tuningTable)),
          prepared(*device) {}
    std::unique_ptr<CallDevice> device;
    /// What the records advise on this device.
    std::unique_ptr<autotune::TuningTable> tuning;
    PreparedPlans prepared;
  };

  /// `generator` and `texts` must outlive the table.
  DeviceTable(jit::CodeGenerator &generator,
              const std::vector<kernels_ir::EmbeddedText> &texts,
              const Environment &settings);

  /// The entry of a device, which stays where it is. The driver and the device
  /// are opened at the first use; one that does not open is tried again at the
  /// next.
  /// Errors: Unsupported without a driver, or for a GPU without kernels here;
  /// InvalidArgument for a device that is not there; DriverError.
  Result<Entry *> find(Device device);

private:
  Result<std::unique_ptr<Entry>> openCuda(int ordinal);
  std::unique_ptr<autotune::TuningTable>
  tuningTable(const Target &target, autotune::TuningEnvironment here) const;

  jit::CodeGenerator &generator_;
  const std::vector<kernels_ir::EmbeddedText> &texts_;
  const Environment settings_;
  Entry host_;
  std::mutex mutex_;
  std::unique_ptr<cuda::Driver> driver_;
  /// By architecture: devices of one kind share their code.
  std::map<std::string, std::unique_ptr<jit::DeviceJit>> jits_;
  std::map<int, std::unique_ptr<Entry>> cuda_;
  /// The entries of the first devices, for calls to read without the lock.
  std::array<std::atomic<Entry *>, 16> opened_{};
};

} // namespace spargejit::api

// SPDX-License-Identifier: Apache-2.0
//
// Step 8 of 9 in the life of a call (runtime/README.md): a kernel that is
// loaded into one context, and its launches.
#pragma once

#include "runtime/backend/cuda/DeviceContext.h"
#include "runtime/base/KernelSpec.h"

#include <memory>
#include <string>

namespace spargejit::cuda {

/// What the driver says of a kernel's machine code.
struct KernelResources {
  /// A thread's registers at entry.
  int registers = 0;
  /// A thread's memory for what found no register, and its stack.
  int localBytes = 0;
  /// A CTA's static shared memory.
  int sharedBytes = 0;
  /// CTAs that run on one multiprocessor at once.
  int residentCtas = 0;
};

/// When a kernel starts after the one before it on its stream: when that has
/// ended, or as soon as all CTAs of that one allow it or have ended, with the
/// rest of the waiting left to the kernel (griddepcontrol.wait).
enum class LaunchOrder : std::uint8_t { AfterEnd, Early };

/// Thread-safe.
class LoadedKernel {
public:
  /// Loads `image` (PTX, or a cubin) into the device's context and readies the
  /// entry info.entryName for launches: all code is on the device and nothing
  /// is left to do at the first launch. `device` must outlive the kernel.
  /// `log`, where wanted, receives what the driver's assembler says, as by
  /// `ptxas -v`; it stays empty for a cubin, and for PTX whose code the driver
  /// has kept from an earlier process.
  /// Errors: CompileFailed with the assembler's text for code that it refuses,
  /// Unsupported for PTX that is newer than the driver, OutOfResources for a
  /// kernel that needs more shared memory than the device has, Internal when
  /// the code does not take the parameters that `info` describes, DriverError.
  static Result<std::shared_ptr<const LoadedKernel>>
  load(const DeviceContext &device, const LaunchInfo &info,
       const std::string &image, std::string *log = nullptr);

  ~LoadedKernel();
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;

  const LaunchInfo &launch() const { return info_; }
  const KernelResources &resources() const { return resources_; }

  /// Launches on `stream` and returns without waiting. `slots` holds
  /// launch().slotCount() argument slots; no program, no launch. Allocates
  /// nothing and waits for nothing, so that it can be captured.
  /// `order`: whether the kernel may start before the one launched last on the
  /// stream has ended. `allShared`: what runs beside it wants all of a
  /// multiprocessor's memory shared.
  /// Errors: Unsupported for tensors that a tensor map cannot describe
  /// (TensorMaps.h) or more than 2^31 - 1 CTAs; OutOfResources, also where a
  /// tensor needs more shared memory than there is; DriverError.
  Status run(const std::int64_t *slots, StreamHandle stream,
             LaunchOrder order = LaunchOrder::AfterEnd,
             bool allShared = false) const;

  /// Whether its CTAs stay, and leave room for those of the launch after it,
  /// which waits for its signals.
  bool leavesRoom() const { return sharesMultiprocessors_ && info_.persistent; }
  /// Whether a launch with `slots` runs beside another and wants all of a
  /// multiprocessor's memory shared.
  bool wantsAllShared(const std::int64_t *slots) const;

private:
  LoadedKernel(const DeviceContext &device, const LaunchInfo &info);

  Status loadModule(const std::string &image, std::string *log);
  Status findEntry();
  Status checkParameters() const;
  Status readResources();
  Result<unsigned> gridSize(const std::int64_t *slots) const;
  /// Dynamic shared memory of a launch. Unsupported where not even the least
  /// share of its scratch fits.
  Result<unsigned> sharedBytes(const std::int64_t *slots) const;

  const DeviceContext &device_;
  /// Of no other kernel of this process; 0 for one without tensor maps. Those
  /// of kernels that are loaded one after the other follow each other.
  const std::uint64_t serial_;
  const LaunchInfo info_;
  /// Runs beside the launch before or after it, by argument "progress".
  const bool sharesMultiprocessors_;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr;
  KernelResources resources_;
};

} // namespace spargejit::cuda

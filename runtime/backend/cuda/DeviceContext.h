// SPDX-License-Identifier: Apache-2.0
//
// One GPU and its primary context: the one that every library of a process
// shares, so that memory of other libraries can be used as it is.
#pragma once

#include "runtime/backend/cuda/Driver.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spargejit::cuda {

/// Retains the context when it is made and keeps it for good: others may still
/// use it while the process ends.
class DeviceContext {
public:
  /// `driver` must outlive the object.
  /// Errors: InvalidArgument for an ordinal that the driver does not have,
  /// DriverError.
  static Result<std::unique_ptr<DeviceContext>> open(const Driver &driver,
                                                     int ordinal);

  const Driver &driver() const { return driver_; }
  ContextHandle handle() const { return handle_; }
  int ordinal() const { return ordinal_; }
  const std::string &name() const { return name_; }
  /// Compute capability, 90 for 9.0.
  int capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Most shared memory that a CTA can have.
  std::int64_t sharedBytes() const { return sharedBytes_; }

private:
  explicit DeviceContext(const Driver &driver) : driver_(driver) {}

  const Driver &driver_;
  ContextHandle handle_ = nullptr;
  int ordinal_ = 0;
  std::string name_;
  int capability_ = 0;
  int multiprocessors_ = 0;
  int sharedBytes_ = 0;
};

/// Makes a device's context current while it lives, and then again the one that
/// was current before, or none.
class CurrentContext {
public:
  explicit CurrentContext(const DeviceContext &device);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

  /// Whether the context could be made current.
  const Status &status() const { return status_; }

private:
  const DriverFunctions &functions_;
  bool pushed_ = false;
  Status status_;
};

/// Lets this thread load and allocate while a stream of some other thread is
/// being captured: in the usual capture mode such a call would fail and break
/// that capture, though it has no part in it.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const DriverFunctions &functions_;
  int mode_ = kCaptureModeRelaxed;
};

/// Whether `stream` is being captured into a graph. May be asked during a
/// capture.
Result<bool> isCaptured(const DeviceContext &device, StreamHandle stream);
/// The same where the stream's context is current.
Result<bool> isCaptured(const Driver &driver, StreamHandle stream);

/// Success unless `stream` is being captured into a graph. Then
/// InvalidArgument: `what`, which a captured call must not do, has to be done
/// by prepare() before.
Status expectNoCapture(const DeviceContext &device, StreamHandle stream,
                       const char *what);

} // namespace spargejit::cuda

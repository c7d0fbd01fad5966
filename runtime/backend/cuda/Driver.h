// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, opened at run time: nothing of CUDA is linked.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"
#include "spargejit/status.h"

#include <memory>
#include <string>

namespace spargejit::cuda {

/// Thread-safe. The library stays open until the process ends.
class Driver {
public:
  /// Opens the library `path` ("libcuda.so.1", or a path), looks up what
  /// DriverApi.h lists, and initialises it.
  /// Errors: Unsupported when there is no such library (with the loader's
  /// reason), it lacks a function, or it sees no device; DriverError when it
  /// does not start.
  static Result<std::unique_ptr<Driver>> open(const std::string &path);

  const DriverFunctions &functions() const { return functions_; }
  /// Any other function of the library, or null.
  void *symbol(const char *name) const;

  /// Major · 1000 + minor · 10 of the newest CUDA that the driver knows.
  int version() const { return version_; }
  /// "13.0".
  std::string versionText() const;
  /// Number of devices.
  int deviceCount() const { return deviceCount_; }
  const std::string &path() const { return path_; }

  /// Success, or what `call` gave back with the driver's name and text for it:
  /// OutOfResources when memory or the resources of a launch were not enough,
  /// else DriverError. An error that an earlier launch left in the context is
  /// said to be such.
  Status check(ResultCode code, const char *call) const {
    return code == result::kSuccess ? Status() : describe(code, call);
  }
  /// "CUDA_ERROR_INVALID_VALUE (1): invalid argument".
  std::string errorText(ResultCode code) const;

private:
  Driver() = default;
  Status lookUp();
  Status start();
  Status describe(ResultCode code, const char *call) const;

  std::string path_;
  void *library_ = nullptr;
  DriverFunctions functions_;
  int version_ = 0;
  int deviceCount_ = 0;
};

} // namespace spargejit::cuda

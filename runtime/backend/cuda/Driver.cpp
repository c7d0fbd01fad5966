// SPDX-License-Identifier: Apache-2.0
//
// Opening the driver's library, and its errors in words.
#include "runtime/backend/cuda/Driver.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace spargejit::cuda {

namespace {

/// True for errors of work on the device, which any later call reports: they
/// stay in the context for good.
bool comesFromEarlierLaunch(ResultCode code) {
  switch (code) {
  case result::kEccUncorrectable:
  case result::kNvlinkUncorrectable:
  case result::kContained:
  case result::kIllegalAddress:
  case result::kLaunchTimeout:
  case result::kAssert:
  case result::kHardwareStackError:
  case result::kIllegalInstruction:
  case result::kMisalignedAddress:
  case result::kInvalidAddressSpace:
  case result::kInvalidPc:
  case result::kLaunchFailed:
    return true;
  default:
    return false;
  }
}

} // namespace

Result<std::unique_ptr<Driver>> Driver::open(const std::string &path) {
  std::unique_ptr<Driver> driver(new Driver);
  driver->path_ = path;
  driver->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->library_) {
    const char *reason = dlerror();
    return Status(ErrorCode::Unsupported,
                  fmt::format("the CUDA driver cannot be opened as {} ({}): "
                              "expected it in the loader's path or in "
                              "SPARGEJIT_LIBCUDA",
                              path, reason ? reason : "no reason given"));
  }
  if (Status status = driver->lookUp(); !status)
    return status;
  if (Status status = driver->start(); !status)
    return status;
  return driver;
}

void *Driver::symbol(const char *name) const { return dlsym(library_, name); }

Status Driver::lookUp() {
  std::string missing;
  auto find = [this](auto &member, const char *name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
        symbol(name));
    return member != nullptr;
  };
#define SPARGEJIT_FIND(member, name, parameters)                               \
  if (!find(functions_.member, name))                                          \
    missing += std::string(missing.empty() ? "" : ", ") + (name);
  SPARGEJIT_CUDA_FUNCTIONS(SPARGEJIT_FIND)
#undef SPARGEJIT_FIND
#define SPARGEJIT_FIND(member, name, parameters) find(functions_.member, name);
  SPARGEJIT_CUDA_OPTIONAL_FUNCTIONS(SPARGEJIT_FIND)
#undef SPARGEJIT_FIND
  if (missing.empty())
    return Status();
  return Status(ErrorCode::Unsupported,
                fmt::format("{}: expected a driver of CUDA 12.1 or later, got "
                            "one without {}",
                            path_, missing));
}

Status Driver::start() {
  ResultCode code = functions_.init(0);
  if (code == result::kNoDevice)
    return Status(ErrorCode::Unsupported,
                  fmt::format("{}: the CUDA driver sees no device ({})", path_,
                              errorText(code)));
  if (Status status = check(code, "cuInit"); !status)
    return std::move(status).withContext(path_);
  if (Status status =
          check(functions_.driverVersion(&version_), "cuDriverGetVersion");
      !status)
    return status;
  return check(functions_.deviceCount(&deviceCount_), "cuDeviceGetCount");
}

std::string Driver::versionText() const {
  return fmt::format("{}.{}", version_ / 1000, version_ % 1000 / 10);
}

std::string Driver::errorText(ResultCode code) const {
  // Both leave the pointer null for a code that they do not know.
  const char *name = nullptr;
  const char *text = nullptr;
  functions_.errorName(code, &name);
  functions_.errorText(code, &text);
  return fmt::format("{} ({}): {}", name ? name : "unknown error", code,
                     text ? text : "the driver has no text for it");
}

Status Driver::describe(ResultCode code, const char *call) const {
  bool lacks =
      code == result::kOutOfMemory || code == result::kLaunchOutOfResources;
  return Status(
      lacks ? ErrorCode::OutOfResources : ErrorCode::DriverError,
      fmt::format("{} failed: {}{}", call, errorText(code),
                  comesFromEarlierLaunch(code)
                      ? "; an earlier asynchronous launch in this context left "
                        "this error, not this call"
                      : ""));
}

} // namespace spargejit::cuda

// SPDX-License-Identifier: Apache-2.0
//
// The few calls of libcuda that a kernel trial needs, opened at run time, so
// that the programs run where there is a driver and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::gpu_trial {

using DevicePointer = std::uint64_t;

/// A TMA descriptor as the driver fills it.
struct alignas(128) TensorMapData {
  unsigned char bytes[128];
};

/// What cuTensorMapEncodeTiled needs; dimensions innermost first.
struct TensorMapRequest {
  bool isBfloat16 = true;
  bool isBytes = false; // 8-bit elements, of whatever kind
  DevicePointer data = 0;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> strideBytes; // of dimensions 1, 2, …
  std::vector<std::uint32_t> box;
  int swizzleBytes = 128;
};

/// One device with its primary context current. Every call ends the program
/// with the driver's message when it fails: a trial has nothing to clean up.
class CudaDriver {
public:
  CudaDriver();

  std::string deviceName() const { return deviceName_; }
  int multiprocessors() const { return multiprocessors_; }
  int driverVersion() const { return driverVersion_; }

  DevicePointer allocate(std::size_t bytes);
  void release(DevicePointer pointer);
  void toDevice(DevicePointer to, const void *from, std::size_t bytes);
  void toHost(void *to, DevicePointer from, std::size_t bytes);
  void fill(DevicePointer pointer, unsigned char byte, std::size_t bytes);

  /// Loads a cubin, or PTX that the driver assembles; returns the function.
  void *load(const std::string &image, const std::string &entry,
             std::size_t sharedBytes, std::string &log);
  TensorMapData encode(const TensorMapRequest &request);
  /// `isEarly`: may start while the launch before it still runs.
  void launch(void *function, unsigned ctas, unsigned threads,
              std::size_t sharedBytes, std::vector<void *> &parameters,
              bool isEarly = false);
  /// CTAs of `function` that run on a multiprocessor at once.
  int residentCtas(void *function, unsigned threads, std::size_t sharedBytes);
  void synchronise();
  /// Milliseconds of each of `count` launches of `run`, by events.
  std::vector<float> time(int count, void (*run)(void *), void *context);

private:
  void *symbol(const char *name);
  void check(int result, const char *call);

  void *library_ = nullptr;
  std::string deviceName_;
  int multiprocessors_ = 0;
  int driverVersion_ = 0;
};

} // namespace spargejit::gpu_trial

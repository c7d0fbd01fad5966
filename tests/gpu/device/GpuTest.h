// SPDX-License-Identifier: Apache-2.0
//
// Base of the suites that need a GPU, and the calls of the driver that tests
// make and the library does not: streams, events, graphs, copies.
#pragma once

#include "runtime/backend/cuda/DeviceContext.h"
#include "runtime/backend/cuda/LoadedKernel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace spargejit::gpu {

/// The driver and device 0, opened once. Null, with the reason, where there is
/// none with kernels.
struct Gpu {
  static Gpu *find(std::string *reason = nullptr);

  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::DeviceContext> device;

  /// Calls a function of the driver by its name; ends the program with the
  /// driver's words when it fails.
  template <typename... Arguments>
  void call(const char *symbol, Arguments... arguments) const {
    using Function = cuda::ResultCode(Arguments...);
    auto *function = reinterpret_cast<Function *>(driver->symbol(symbol));
    require(function ? function(arguments...) : -1, symbol);
  }
  void require(cuda::ResultCode code, const char *symbol) const;
};

/// Device memory with the device's context current while it is used.
template <typename T>
class DeviceArray {
public:
  DeviceArray(const Gpu &gpu, std::size_t count);
  DeviceArray(const Gpu &gpu, const std::vector<T> &values)
      : DeviceArray(gpu, values.size()) {
    write(values);
  }

  T *data() const { return static_cast<T *>(memory_.get()); }
  cuda::DeviceAddress address() const {
    return reinterpret_cast<std::uintptr_t>(memory_.get());
  }
  std::size_t size() const { return count_; }
  /// After all work on the device.
  std::vector<T> read() const;
  void write(const std::vector<T> &values) const;

private:
  const Gpu &gpu_;
  std::size_t count_;
  std::shared_ptr<void> memory_;
};

/// A stream that does not wait for the legacy one.
class Stream {
public:
  explicit Stream(const Gpu &gpu);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  cuda::StreamHandle handle() const { return handle_; }
  void synchronise() const;
  /// Starts a capture that allows no unsafe call on any thread.
  void beginCapture() const;
  /// Ends it, and gives the graph ready to launch.
  class Graph endCapture() const;

private:
  const Gpu &gpu_;
  cuda::StreamHandle handle_ = nullptr;
};

class Graph {
public:
  Graph(const Gpu &gpu, void *graph);
  ~Graph();
  Graph(Graph &&other) noexcept;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch(const Stream &stream) const;

private:
  const Gpu &gpu_;
  void *graph_ = nullptr;
  void *executable_ = nullptr;
};

/// A suite whose tests need a GPU: skipped without one, with the reason; failed
/// with SPARGEJIT_REQUIRE_GPU=1.
class GpuTest : public testing::Test {
protected:
  void SetUp() override;
  const Gpu &gpu() const { return *gpu_; }
  const cuda::DeviceContext &device() const { return *gpu_->device; }
  cuda::ContextHandle current() const;

  Gpu *gpu_ = nullptr;
};

} // namespace spargejit::gpu

// SPDX-License-Identifier: Apache-2.0
//
// Device memory, by the driver.
#include "runtime/backend/cuda/DeviceMemory.h"

#include "runtime/base/AlignedMemory.h"
#include "runtime/base/CounterStore.h"
#include "runtime/base/KernelSpec.h"
#include "runtime/base/Log.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <thread>

namespace spargejit::cuda {

namespace {

DeviceAddress addressOf(const void *data) {
  return std::bit_cast<std::uintptr_t>(data);
}

void freeMemory(const DeviceContext &device, void *data) {
  CurrentContext current(device);
  RelaxedCapture relaxed(device.driver());
  ResultCode code = device.driver().functions().memoryFree(addressOf(data));
  // At the end of a process the driver may have gone first.
  if (code != result::kSuccess && code != result::kDeinitialized)
    logFormatted(LogLevel::Warning, "cuMemFree: {}",
                 device.driver().errorText(code));
}

/// Starts a copy, of `bytes`, by `start` and waits for its stream.
template <typename Start>
Status copyAndWait(const DeviceContext &device, std::int64_t bytes,
                   StreamHandle stream, const char *name, Start &&start) {
  if (bytes == 0)
    return Status();
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device.driver();
  if (Status status = driver.check(start(), name); !status)
    return status;
  return driver.check(driver.functions().streamSynchronize(stream),
                      "cuStreamSynchronize");
}

/// What stands behind a workspace, for its counters.
constexpr std::int64_t kCounterBytes = 4 * kCounters;

Status zeroCounters(const DeviceContext &device, void *counters,
                    StreamHandle stream) {
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device.driver();
  return driver.check(driver.functions().fillWords(addressOf(counters), 0,
                                                   kCounterBytes / 4, stream),
                      "cuMemsetD32Async");
}

/// The same now, and not as part of a graph: on a stream that no capture knows.
Status zeroCountersBesideCapture(const DeviceContext &device, void *counters) {
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  RelaxedCapture relaxed(device.driver());
  const Driver &driver = device.driver();
  const DriverFunctions &functions = driver.functions();
  StreamHandle own = nullptr;
  Status status = driver.check(functions.streamCreate(&own, kStreamNonBlocking),
                               "cuStreamCreate");
  if (!status.ok())
    return status;
  status = zeroCounters(device, counters, own);
  if (status.ok())
    status =
        driver.check(functions.streamSynchronize(own), "cuStreamSynchronize");
  Status ended = driver.check(functions.streamDestroy(own), "cuStreamDestroy");
  return status.ok() ? ended : status;
}

} // namespace

Result<std::shared_ptr<void>> allocateMemory(const DeviceContext &device,
                                             std::int64_t bytes) {
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  RelaxedCapture relaxed(device.driver());
  DeviceAddress address = 0;
  // The driver refuses 0 bytes.
  ResultCode code = device.driver().functions().memoryAllocate(
      &address, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (Status status = device.driver().check(code, "cuMemAlloc"); !status)
    return std::move(status).withContext(
        fmt::format("{} bytes of memory on cuda:{}", bytes, device.ordinal()));
  return std::shared_ptr<void>(
      std::bit_cast<void *>(static_cast<std::uintptr_t>(address)),
      [&device](void *data) { freeMemory(device, data); });
}

Status copyToHost(const DeviceContext &device, const void *from, void *to,
                  std::int64_t bytes, StreamHandle stream) {
  return copyAndWait(device, bytes, stream, "cuMemcpyDtoHAsync", [&] {
    return device.driver().functions().copyToHost(
        to, addressOf(from), static_cast<std::size_t>(bytes), stream);
  });
}

Status copyFromHost(const DeviceContext &device, const void *from, void *to,
                    std::int64_t bytes, StreamHandle stream) {
  return copyAndWait(device, bytes, stream, "cuMemcpyHtoDAsync", [&] {
    return device.driver().functions().copyFromHost(
        addressOf(to), from, static_cast<std::size_t>(bytes), stream);
  });
}

Status synchronise(const DeviceContext &device) {
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  return device.driver().check(device.driver().functions().contextSynchronize(),
                               "cuCtxSynchronize");
}

Status fillWords(const DeviceContext &device, const TensorView &view,
                 std::uint32_t bits, StreamHandle stream) {
  if (view.elementCount() == 0)
    return Status();
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device.driver();
  for (std::int64_t i = 0; i < view.sizes[0]; ++i)
    for (std::int64_t j = 0; j < view.sizes[1]; ++j) {
      const auto *row = static_cast<std::uint32_t *>(view.data) +
                        i * view.strides[0] + j * view.strides[1];
      // A column of words, or one run of them.
      bool dense = view.strides[2] == 1 || view.sizes[2] == 1;
      auto count = static_cast<std::size_t>(view.sizes[2]);
      ResultCode code =
          dense ? driver.functions().fillWords(addressOf(row), bits, count,
                                               stream)
                : driver.functions().fillWordRows(
                      addressOf(row),
                      static_cast<std::size_t>(view.strides[2]) * sizeof bits,
                      bits, 1, count, stream);
      if (Status status = driver.check(code, "cuMemsetD32Async"); !status)
        return status;
    }
  return Status();
}

Status fillZeros(const DeviceContext &device, const TensorView &view,
                 StreamHandle stream) {
  if (view.elementCount() == 0)
    return Status();
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device.driver();
  const auto element = static_cast<std::int64_t>(dataTypeSize(view.dtype));
  const auto width = static_cast<std::size_t>(view.sizes[3] * element);
  for (std::int64_t i = 0; i < view.sizes[0]; ++i)
    for (std::int64_t j = 0; j < view.sizes[1]; ++j) {
      const auto *first = static_cast<std::byte *>(view.data) +
                          (i * view.strides[0] + j * view.strides[1]) * element;
      // The pitch of one row is not used, and callers have anything there.
      auto pitch = view.sizes[2] == 1
                       ? width
                       : static_cast<std::size_t>(view.strides[2] * element);
      ResultCode code = driver.functions().fillByteRows(
          addressOf(first), pitch, 0, width,
          static_cast<std::size_t>(view.sizes[2]), stream);
      if (Status status = driver.check(code, "cuMemsetD2D8Async"); !status)
        return status;
    }
  return Status();
}

Status fillCounting(const DeviceContext &device, const TensorView &view,
                    StreamHandle stream) {
  if (view.elementCount() == 0)
    return Status();
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device.driver();
  const std::int64_t columns = view.sizes[3];
  const auto rows = static_cast<std::size_t>(view.elementCount() / columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    ResultCode code = driver.functions().fillWordRows(
        addressOf(static_cast<std::int32_t *>(view.data) + j),
        static_cast<std::size_t>(columns) * sizeof(std::int32_t),
        static_cast<unsigned>(j), 1, rows, stream);
    if (Status status = driver.check(code, "cuMemsetD2D32Async"); !status)
      return status;
  }
  return Status();
}

Result<Workspaces::Lease> Workspaces::take(std::int64_t bytes,
                                           StreamHandle stream) {
  Workspace &workspace = find(stream);
  std::unique_lock lock(workspace.mutex);
  Status status = adopt(workspace, stream);
  if (status.ok() && (workspace.blocks.empty() || workspace.bytes < bytes))
    status = grow(workspace, bytes, stream);
  if (!status.ok())
    return status;
  auto *base = static_cast<std::byte *>(workspace.blocks.back().get());
  return Lease{base, base + workspace.bytes, std::move(lock)};
}

Workspaces::Workspace &Workspaces::find(StreamHandle stream) {
  auto key = std::bit_cast<std::size_t>(stream);
  if (key == kStreamPerThread)
    key ^= std::hash<std::thread::id>()(std::this_thread::get_id());
  std::lock_guard lock(mutex_);
  std::unique_ptr<Workspace> &workspace = workspaces_[key];
  if (!workspace)
    workspace = std::make_unique<Workspace>();
  return *workspace;
}

/// A stream that was destroyed may still have work on the device when its
/// handle is given to the next one; that work must not lose its workspace. A
/// capture cannot ask for the identity, and breaks when it tries; there it was
/// prepare() on this stream that did, or nobody.
Status Workspaces::adopt(Workspace &workspace, StreamHandle stream) {
  // Handles of the driver's own streams are never used again.
  if (std::bit_cast<std::uintptr_t>(stream) <= kStreamPerThread)
    return Status();
  CurrentContext current(device_);
  if (!current.status().ok())
    return current.status();
  const Driver &driver = device_.driver();
  auto captured = isCaptured(driver, stream);
  if (!captured.ok() || *captured)
    return captured.status();
  unsigned long long id = 0;
  Status status =
      driver.check(driver.functions().streamId(stream, &id), "cuStreamGetId");
  if (!status.ok() || id == workspace.streamId)
    return status;
  if (!workspace.blocks.empty())
    status = driver.check(driver.functions().contextSynchronize(),
                          "cuCtxSynchronize");
  if (status.ok())
    workspace.streamId = id;
  return status;
}

Status Workspaces::grow(Workspace &workspace, std::int64_t bytes,
                        StreamHandle stream) {
  auto captured = isCaptured(device_, stream);
  if (!captured.ok())
    return captured.status();
  // The legacy stream is never captured itself; it would wait for a capture.
  if (*captured && !stream)
    return expectNoCapture(device_, stream, "allocate a workspace");
  Status status;
  // Doubling, so that all blocks together take less than twice the last one's
  // size and what it holds.
  std::int64_t size = alignUp(std::max(bytes, 2 * workspace.bytes));
  auto block = allocateMemory(device_, size + kCounterBytes);
  if (!block.ok() && size > alignUp(bytes)) {
    size = alignUp(bytes);
    block = allocateMemory(device_, size + kCounterBytes);
  }
  if (block.ok()) {
    auto *counters = static_cast<std::byte *>(block->get()) + size;
    status = *captured ? zeroCountersBesideCapture(device_, counters)
                       : zeroCounters(device_, counters, stream);
  }
  if (!block.ok() || !status.ok())
    return Status(block.ok() ? status : block.status())
        .withContext("workspace");
  workspace.blocks.push_back(*std::move(block));
  workspace.bytes = size;
  countAllocation(size + kCounterBytes);
  return Status();
}

} // namespace spargejit::cuda

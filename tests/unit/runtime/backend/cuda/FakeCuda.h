// SPDX-License-Identifier: Apache-2.0
//
// A CUDA driver of the tests' own (FakeCuda.cpp, a shared library with the
// driver's symbols): its memory is host memory, its launches are recorded and
// handed to the test, and every call can be made to fail.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace spargejit::unit {

/// What a tensor map was made of; lies in the first bytes of a map that the
/// fake driver has written.
struct FakeTensorMap {
  std::uint64_t address;
  std::uint64_t sizes[4];
  std::uint64_t strides[3];
  std::uint16_t boxColumns, boxRows, boxHeads, boxBatch;
  std::uint8_t elementType, rank, swizzle, promotion;
};
static_assert(sizeof(FakeTensorMap) <= sizeof(cuda::TensorMapBits));

struct FakeLaunch {
  std::string entry;
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void *stream;
  void *context;
  /// The bytes of each parameter.
  std::vector<std::vector<std::byte>> parameters;
  /// It may start before the launch before it has ended.
  bool isEarly = false;
  /// Shared memory's part of a multiprocessor's memory, or -1.
  int sharedPercent = -1;
};

/// What the fake driver is like. Code is loaded from text: "// entry NAME BYTES
/// BYTES …" lines name its entries and the sizes of their parameters.
struct FakeCudaBehaviour {
  int deviceCount = 2;
  int capability = 90;
  int version = 13000;
  int multiprocessors = 132;
  int sharedBytes = 232448;
  // What it says of every function.
  int registers = 168;
  int localBytes = 0;
  int staticSharedBytes = 0;
  int residentCtas = 1;
  /// What its assembler says.
  std::string infoLog;
  int assemblerLevel = -1; // of the last module
  std::string errorLog;
  /// Results that the next calls of a symbol give in place of doing anything.
  std::map<std::string, std::deque<int>> failures;
  /// Streams that are being captured.
  std::set<void *> capturing;
  /// The identity of a stream's handle, where it is not the handle itself.
  std::map<void *, unsigned long long> streamIds;
  /// Called for each launch, without a lock.
  std::function<void(const FakeLaunch &)> onLaunch;
};

/// What the fake driver has seen.
struct FakeCudaRecord {
  std::map<std::string, int> calls;
  std::vector<FakeLaunch> launches;
  std::string lastImage;
  int dynamicSharedBytes = 0; ///< of the last cuFuncSetAttribute
  bool captureBroken = false; ///< by a call that a capture does not allow
  int capturedFills = 0;      ///< of words, on a stream that is captured
};

struct FakeCuda : FakeCudaBehaviour, FakeCudaRecord {
  std::map<void *, std::size_t> allocations; ///< address -> bytes, not freed
  int modules = 0;                           ///< loaded and not unloaded
  std::mutex mutex;

  /// Behaves as at first, and has seen nothing; memory and modules stay.
  void reset() {
    std::lock_guard lock(mutex);
    static_cast<FakeCudaBehaviour &>(*this) = FakeCudaBehaviour();
    static_cast<FakeCudaRecord &>(*this) = FakeCudaRecord();
  }
  int callsOf(const std::string &symbol) {
    std::lock_guard lock(mutex);
    return calls[symbol];
  }
};

/// The library's path, for Driver::open().
std::string fakeCudaPath();
/// A driver that lacks what came with CUDA 12.
std::string oldFakeCudaPath();
/// The state of the library at fakeCudaPath().
FakeCuda &fakeCuda();
/// A context that is not a device's primary one.
cuda::ContextHandle foreignContext();
/// The primary context of a fake device.
cuda::ContextHandle primaryContext(int device);

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// 64-byte aligned memory: owned blocks for tensors, workspaces and scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace spargejit {

/// One cache line, and one vector register of the widest CPUs.
inline constexpr std::int64_t kMemoryAlignment = 64;

/// `bytes` rounded up to a multiple of `multiple` (> 0).
constexpr std::int64_t alignUp(std::int64_t bytes,
                               std::int64_t multiple = kMemoryAlignment) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Frees what AlignedMemory::release() gave.
void freeAligned(void *data);

/// Owns one block; movable. Uninitialised.
class AlignedMemory {
public:
  AlignedMemory() = default;
  /// At least `bytes` (>= 0) bytes; data() is null when they cannot be had and
  /// never null otherwise, even for 0 bytes.
  static AlignedMemory allocate(std::int64_t bytes);

  AlignedMemory(AlignedMemory &&other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedMemory &operator=(AlignedMemory &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;
  ~AlignedMemory() { freeAligned(data_); }

  void *data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  /// Gives the block up to the caller, who frees it with freeAligned.
  void *release() {
    bytes_ = 0;
    return std::exchange(data_, nullptr);
  }

private:
  void *data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// A block that is kept between uses and only ever grows.
class GrowingMemory {
public:
  /// At least `bytes` bytes, contents undefined; null when they cannot be had.
  /// Valid until the next call.
  void *require(std::int64_t bytes);

private:
  AlignedMemory memory_;
};

} // namespace spargejit

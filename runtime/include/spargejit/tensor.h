// SPDX-License-Identifier: Apache-2.0
//
// TensorView: a typed, strided window on memory that somebody else owns.
// Tensor: the same with its own memory, for results.
#pragma once

#include "spargejit/export.h"
#include "spargejit/status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace spargejit {

/// Element types at the public surface. Float8E4M3 has four bits of exponent
/// and three of mantissa, no infinity, and 448 for its largest number (OCP
/// 8-bit Floating Point Specification, revision 1.0).
enum class DataType : std::uint8_t {
  Float32,
  BFloat16,
  Float16,
  Int32,
  Bool,
  Float8E4M3
};

/// Bytes of one element: 4, 2, 2, 4, 1, 1.
SPARGEJIT_API std::size_t dataTypeSize(DataType type);
/// "float32", "bfloat16", "float16", "int32", "bool", "float8_e4m3fn".
SPARGEJIT_API const char *dataTypeName(DataType type);

enum class DeviceKind : std::uint8_t { Cpu, Cuda };

/// Where memory lives. `ordinal` counts CUDA devices as the driver does; it is
/// 0 for the CPU.
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int ordinal = 0;
  friend bool operator==(const Device &, const Device &) = default;
};

/// A window on `rank` dimensions of somebody else's memory. Element
/// (i0, …) is at data + (i0·strides[0] + …)·dataTypeSize(dtype) bytes; sizes
/// and strides count elements. The memory must outlive every call that uses
/// the view.
struct TensorView {
  static constexpr int kMaxRank = 4;

  void *data = nullptr;
  DataType dtype = DataType::Float32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> sizes{};
  std::array<std::int64_t, kMaxRank> strides{};
  Device device;

  /// A dense row-major view. A view of more than kMaxRank sizes keeps their
  /// number in `rank` alone and is refused by every call.
  SPARGEJIT_API static TensorView
  contiguous(void *data, DataType dtype, const std::vector<std::int64_t> &sizes,
             Device device = {});
  /// A view with explicit strides, in elements.
  SPARGEJIT_API static TensorView
  strided(void *data, DataType dtype, const std::vector<std::int64_t> &sizes,
          const std::vector<std::int64_t> &strides, Device device = {});

  /// The view with dimensions a and b exchanged: [batch, length, heads, dim]
  /// memory becomes [batch, heads, length, dim] by transposed(1, 2). Copies
  /// nothing. With a dimension that is not there, a view that every call
  /// refuses.
  SPARGEJIT_API TensorView transposed(int a, int b) const;

  /// Product of the sizes.
  SPARGEJIT_API std::int64_t elementCount() const;
};

/// Memory of its own with a dense row-major view on it. Copies share memory.
class Tensor {
public:
  Tensor() = default;
  /// Uninitialised memory on the CPU, 64-byte aligned. OutOfResources when it
  /// cannot be had.
  SPARGEJIT_API static Result<Tensor>
  allocate(DataType dtype, const std::vector<std::int64_t> &sizes);
  /// The same on any device. On a GPU the memory comes from the driver, which
  /// may wait for the device when it is taken and when it is freed. Also
  /// Unsupported where there is no such device.
  SPARGEJIT_API static Result<Tensor>
  allocate(DataType dtype, const std::vector<std::int64_t> &sizes,
           Device device);
  /// A tensor on memory that is there already: dense, of these sizes, at
  /// memory.get(), on `device`. The memory is kept while the tensor or a copy
  /// of it lives; give a shared_ptr that frees nothing where it is somebody
  /// else's.
  SPARGEJIT_API static Tensor adopt(std::shared_ptr<void> memory,
                                    DataType dtype,
                                    const std::vector<std::int64_t> &sizes,
                                    Device device = {});

  /// A dense copy on `device`, made when all work given to both devices is
  /// done; it waits for that, and cannot be captured in a graph.
  /// InvalidArgument for an empty tensor; errors of allocate().
  SPARGEJIT_API Result<Tensor> copyTo(Device device) const;

  bool empty() const { return view_.data == nullptr; }
  const TensorView &view() const { return view_; }
  template <typename T>
  T *data() const {
    return static_cast<T *>(view_.data);
  }

private:
  std::shared_ptr<void> storage_;
  TensorView view_;
};

/// Waits until all work given to `device` is done (on the CPU: nothing is left
/// to wait for when a call returns). Reports errors that earlier launches left;
/// Unsupported where there is no such device.
SPARGEJIT_API Status synchronise(Device device);

} // namespace spargejit

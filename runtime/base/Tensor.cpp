// SPDX-License-Identifier: Apache-2.0
//
// Views, and tensors that own their memory.
#include "spargejit/tensor.h"

#include "runtime/base/AlignedMemory.h"
#include "runtime/base/TensorBytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spargejit {

std::size_t dataTypeSize(DataType type) {
  switch (type) {
  case DataType::Float32:
  case DataType::Int32:
    return 4;
  case DataType::BFloat16:
  case DataType::Float16:
    return 2;
  case DataType::Bool:
  case DataType::Float8E4M3:
    return 1;
  }
  return 0;
}

const char *dataTypeName(DataType type) {
  switch (type) {
  case DataType::Float32:
    return "float32";
  case DataType::BFloat16:
    return "bfloat16";
  case DataType::Float16:
    return "float16";
  case DataType::Int32:
    return "int32";
  case DataType::Bool:
    return "bool";
  case DataType::Float8E4M3:
    return "float8_e4m3fn";
  }
  return "a data type out of range";
}

namespace {

/// The common part of both kinds of view; strides stay 0.
TensorView viewOf(void *data, DataType dtype,
                  const std::vector<std::int64_t> &sizes, Device device) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(sizes.size());
  view.device = device;
  std::copy_n(sizes.begin(),
              std::min<std::size_t>(sizes.size(), TensorView::kMaxRank),
              view.sizes.begin());
  return view;
}

} // namespace

TensorView TensorView::contiguous(void *data, DataType dtype,
                                  const std::vector<std::int64_t> &sizes,
                                  Device device) {
  TensorView view = viewOf(data, dtype, sizes, device);
  std::int64_t stride = 1;
  for (int i = std::min(view.rank, kMaxRank) - 1; i >= 0; --i) {
    view.strides[i] = stride;
    stride *= view.sizes[i];
  }
  return view;
}

TensorView TensorView::strided(void *data, DataType dtype,
                               const std::vector<std::int64_t> &sizes,
                               const std::vector<std::int64_t> &strides,
                               Device device) {
  TensorView view = viewOf(data, dtype, sizes, device);
  // One stride for each size, else no call accepts the view.
  if (strides.size() != sizes.size())
    view.rank = -1;
  std::copy_n(strides.begin(), std::min<std::size_t>(strides.size(), kMaxRank),
              view.strides.begin());
  return view;
}

TensorView TensorView::transposed(int a, int b) const {
  TensorView view = *this;
  const int known = std::min(rank, kMaxRank);
  if (std::min(a, b) < 0 || std::max(a, b) >= known) {
    view.rank = -1; // no call accepts it
    return view;
  }
  std::swap(view.sizes[a], view.sizes[b]);
  std::swap(view.strides[a], view.strides[b]);
  return view;
}

std::int64_t TensorView::elementCount() const {
  std::int64_t count = 1;
  for (int i = 0; i < std::min(rank, kMaxRank); ++i)
    count *= sizes[i];
  return count;
}

Result<std::int64_t> tensorBytes(DataType dtype,
                                 const std::vector<std::int64_t> &sizes) {
  if (sizes.size() > TensorView::kMaxRank)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("sizes: expected at most {} dimensions, got {}",
                              TensorView::kMaxRank, sizes.size()));
  auto bytes = static_cast<std::int64_t>(dataTypeSize(dtype));
  if (bytes == 0)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("dtype: expected a DataType, got the number {}",
                              static_cast<int>(dtype)));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      return Status(
          ErrorCode::InvalidArgument,
          fmt::format("sizes[{}]: expected 0 or more, got {}", i, sizes[i]));
    if (__builtin_mul_overflow(bytes, sizes[i], &bytes))
      return Status(ErrorCode::OutOfResources,
                    fmt::format("expected a {} tensor of less than 2^63 bytes, "
                                "got sizes [{}]",
                                dataTypeName(dtype), fmt::join(sizes, ", ")));
  }
  return bytes;
}

Result<Tensor> Tensor::allocate(DataType dtype,
                                const std::vector<std::int64_t> &sizes) {
  auto bytes = tensorBytes(dtype, sizes);
  if (!bytes.ok())
    return bytes.status();
  AlignedMemory memory = AlignedMemory::allocate(*bytes);
  if (!memory.data())
    return Status(
        ErrorCode::OutOfResources,
        fmt::format("{} bytes for a {} tensor of sizes [{}] cannot be had",
                    *bytes, dataTypeName(dtype), fmt::join(sizes, ", ")));
  return adopt(std::shared_ptr<void>(memory.release(), &freeAligned), dtype,
               sizes);
}

Tensor Tensor::adopt(std::shared_ptr<void> memory, DataType dtype,
                     const std::vector<std::int64_t> &sizes, Device device) {
  Tensor tensor;
  tensor.view_ = TensorView::contiguous(memory.get(), dtype, sizes, device);
  tensor.storage_ = std::move(memory);
  return tensor;
}

} // namespace spargejit

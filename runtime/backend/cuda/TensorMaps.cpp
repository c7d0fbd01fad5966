// SPDX-License-Identifier: Apache-2.0
//
// Descriptors, innermost dimension first. The limits are those of
// cuTensorMapEncodeTiled (CUDA Driver API 13.0).
#include "runtime/backend/cuda/TensorMaps.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace spargejit::cuda {

namespace {

constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 32;
constexpr std::int64_t kStrideEnd = std::int64_t{1} << 40;

int elementCode(DataType type) {
  switch (type) {
  case DataType::Float16:
    return tensor_map::kFloat16;
  case DataType::BFloat16:
    return tensor_map::kBFloat16;
  case DataType::Float8E4M3:
  case DataType::Bool:
    return tensor_map::kUint8;
  default:
    return tensor_map::kFloat32;
  }
}

int swizzleCode(int bytes) {
  switch (bytes) {
  case 32:
    return tensor_map::kSwizzle32;
  case 64:
    return tensor_map::kSwizzle64;
  case 128:
    return tensor_map::kSwizzle128;
  default:
    return tensor_map::kSwizzleNone;
  }
}

Status unsupported(std::string message) {
  return Status(ErrorCode::Unsupported, std::move(message));
}

Status checkAddress(const std::string &name, std::int64_t address) {
  if (address % kAlignment == 0)
    return Status();
  return unsupported(fmt::format("{}.data: expected an address that is a "
                                 "multiple of {} bytes on a GPU, got {:#x}",
                                 name, kAlignment,
                                 static_cast<std::uint64_t>(address)));
}

Status checkSize(const std::string &name, int dimension, std::int64_t size) {
  if (size <= kMaxSize)
    return Status();
  return unsupported(
      fmt::format("{}.sizes[{}]: expected at most 2^32 on a GPU, got {}", name,
                  dimension, size));
}

Status checkStride(const std::string &name, int dimension, std::int64_t stride,
                   std::int64_t elementBytes) {
  std::int64_t bytes = 0;
  bool fits = !__builtin_mul_overflow(stride, elementBytes, &bytes) &&
              bytes >= 0 && bytes < kStrideEnd;
  if (fits && bytes % kAlignment == 0)
    return Status();
  if (fits)
    return unsupported(fmt::format(
        "{}.strides[{}]: expected a multiple of {} bytes on a GPU, got {} "
        "({} elements of {} bytes): pad the rows to a multiple of {} elements",
        name, dimension, kAlignment, bytes, stride, elementBytes,
        kAlignment / elementBytes));
  return unsupported(fmt::format(
      "{}.strides[{}]: expected from 0 to less than 2^40 bytes on a GPU, got "
      "{} elements of {} bytes",
      name, dimension, stride, elementBytes));
}

/// The first of these that the copy engine cannot address, from the innermost
/// dimension on, whose stride is 1 and not told. The stride of a dimension of
/// one element is never used, and callers have anything there.
Status checkAddressable(const std::string &name, std::int64_t address,
                        std::size_t rank, const std::int64_t *sizes,
                        const std::int64_t *strides,
                        std::int64_t elementBytes) {
  Status status = checkAddress(name, address);
  for (std::size_t i = rank; i-- > 0 && status.ok();) {
    status = checkSize(name, static_cast<int>(i), sizes[i]);
    if (status.ok() && i + 1 < rank && sizes[i] != 1)
      status = checkStride(name, static_cast<int>(i), strides[i], elementBytes);
  }
  return status;
}

} // namespace

Status checkCopied(const std::string &name, const TensorView &view) {
  return checkAddressable(name, std::bit_cast<std::int64_t>(view.data),
                          static_cast<std::size_t>(view.rank),
                          view.sizes.data(), view.strides.data(),
                          static_cast<std::int64_t>(dataTypeSize(view.dtype)));
}

Status encodeTensorMap(const Driver &driver, const TensorMap &map,
                       const KernelArgument &argument,
                       const std::int64_t *slots, TensorMapBits &bits) {
  constexpr std::size_t kMaxRank = TensorView::kMaxRank;
  const auto rank = static_cast<std::size_t>(argument.rank);
  const auto elementBytes =
      static_cast<std::int64_t>(dataTypeSize(map.elementType));
  std::array<std::uint64_t, kMaxRank> sizes{};
  std::array<std::uint64_t, kMaxRank> strides{};
  std::array<std::uint32_t, kMaxRank> box{};
  std::array<std::uint32_t, kMaxRank> steps{};
  if (Status status = checkAddressable(argument.name, slots[0], rank, slots + 1,
                                       slots + 1 + rank, elementBytes);
      !status)
    return status;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t dimension = rank - 1 - i;
    const std::int64_t size = slots[1 + dimension];
    const std::int64_t stride =
        size == 1 ? kAlignment / elementBytes : slots[1 + rank + dimension];
    sizes[i] = static_cast<std::uint64_t>(size);
    if (i > 0)
      strides[i - 1] = static_cast<std::uint64_t>(stride * elementBytes);
    box[i] = 1;
    steps[i] = 1;
  }
  box[0] = static_cast<std::uint32_t>(map.boxColumns);
  box[1] = static_cast<std::uint32_t>(map.boxRows);
  ResultCode code = driver.functions().encodeTensorMap(
      &bits, elementCode(map.elementType), static_cast<std::uint32_t>(rank),
      std::bit_cast<void *>(slots[0]), sizes.data(), strides.data(), box.data(),
      steps.data(), tensor_map::kInterleaveNone, swizzleCode(map.swizzleBytes),
      tensor_map::kPromotion256, tensor_map::kFillZeros);
  if (code == result::kSuccess)
    return Status();
  return Status(
      ErrorCode::Internal,
      fmt::format("{}: the driver refuses a tensor map of sizes [{}] "
                  "and strides [{}] bytes, innermost first, in boxes "
                  "of {}x{}: {}",
                  argument.name,
                  fmt::join(sizes.begin(), sizes.begin() + rank, ", "),
                  fmt::join(strides.begin(), strides.begin() + rank - 1, ", "),
                  map.boxRows, map.boxColumns, driver.errorText(code)));
}

} // namespace spargejit::cuda

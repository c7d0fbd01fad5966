// SPDX-License-Identifier: Apache-2.0
//
// Checks of one view.
#include "runtime/api/ViewChecks.h"

#include "runtime/api/ViewOverlap.h"

#include <bit>
#include <cstdlib>

namespace spargejit::api {

namespace {

/// What the sizes and strides of a view come to.
struct Extent {
  /// Some size is below 0.
  bool isNegative = false;
  /// Some size is 0.
  bool isEmpty = false;
  /// The elements are few enough for every sum and product of their number that
  /// a call forms; strides of 0 make many of little memory.
  bool elementsFit = true;
  /// Every element's offset fits 63 bits.
  bool offsetsFit = true;
};

Extent extentOf(const TensorView &view, std::int64_t elementBytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  Extent extent;
  std::int64_t count = 1, reach = elementBytes;
  bool overflows = false;
  for (std::size_t i = 0; i < TensorView::kMaxRank; ++i) {
    if (i == static_cast<std::size_t>(view.rank))
      break;
    const std::int64_t size = view.sizes[i], stride = view.strides[i];
    extent.isNegative |= size < 0;
    extent.isEmpty |= size == 0;
    overflows |= __builtin_mul_overflow(count, size, &count);
    if (size <= 1)
      continue;
    std::int64_t bytes = 0;
    if (stride == INT64_MIN ||
        __builtin_mul_overflow(size - 1, std::abs(stride), &bytes) ||
        __builtin_mul_overflow(bytes, elementBytes, &bytes) ||
        __builtin_add_overflow(reach, bytes, &reach))
      extent.offsetsFit = false;
  }
  extent.elementsFit = extent.isEmpty || (!overflows && count < kMost);
  return extent;
}

} // namespace

std::string deviceName(Device device) {
  if (device == Device{})
    return "cpu";
  const char *kind = device.kind == DeviceKind::Cpu    ? "cpu"
                     : device.kind == DeviceKind::Cuda ? "cuda"
                                                       : "(no DeviceKind)";
  return fmt::format("{}:{}", kind, device.ordinal);
}

void checkView(Checks &checks, const char *name, const TensorView &view,
               int rank, const char *shape, MemoryUse use) {
  const std::size_t elementBytes = dataTypeSize(view.dtype);
  checks.that(view.rank == rank, "{}.rank: expected {} ({}), got {}", name,
              rank, shape, view.rank);
  checks.that(elementBytes > 0,
              "{}.dtype: expected a DataType, got the number {}", name,
              static_cast<int>(view.dtype));
  if (!checks.ok())
    return; // the rest counts on them
  const Extent extent = extentOf(view, static_cast<std::int64_t>(elementBytes));
  for (std::size_t i = 0; extent.isNegative && i < sizesOf(view).size(); ++i)
    checks.that(view.sizes[i] >= 0, "{}.sizes[{}]: expected 0 or more, got {}",
                name, i, view.sizes[i]);
  checks.that(extent.elementsFit,
              "{}.sizes: expected fewer than 2^60 elements, got sizes [{}]",
              name, fmt::join(sizesOf(view), ", "));
  checks.that(extent.offsetsFit,
              "{}.strides: expected offsets of less than 2^63 bytes, got sizes "
              "[{}] and strides [{}]",
              name, fmt::join(sizesOf(view), ", "),
              fmt::join(stridesOf(view), ", "));
  if (!checks.ok() || use == MemoryUse::Ignored || extent.isEmpty)
    return;
  auto address = std::bit_cast<std::uintptr_t>(view.data);
  checks.that(view.data != nullptr, "{}.data: expected memory, got null", name);
  // Sizes of elements are powers of two.
  checks.that((address & (elementBytes - 1)) == 0,
              "{}.data: expected an address that is a multiple of {} ({}), got "
              "{:#x}",
              name, elementBytes, view.dtype, address);
}

void checkRowValues(Checks &checks, const char *name, const TensorView &view) {
  const auto last = static_cast<std::size_t>(view.rank - 1);
  checks.supported(view.device.kind == DeviceKind::Cpu ||
                       view.strides[last] == 1 || view.sizes[last] <= 1,
                   "{}.strides[{}]: expected 1 on a GPU, got {}", name, last,
                   view.strides[last]);
}

void checkDistinct(Checks &checks, const char *name, const TensorView &view) {
  checks.that(elementsAreDistinct(view),
              "{}.strides: expected a place of its own for every element, got "
              "sizes [{}] and strides [{}]",
              name, fmt::join(sizesOf(view), ", "),
              fmt::join(stridesOf(view), ", "));
}

void checkThreads(Checks &checks, int threads) {
  checks.that(threads >= 0, "config.threads: expected 0 (all) or more, got {}",
              threads);
}

} // namespace spargejit::api

// SPDX-License-Identifier: Apache-2.0
//
// Checks of one view.
#include "runtime/api/ViewChecks.h"

#include "runtime/api/ViewOverlap.h"

#include <bit>
#include <cstdlib>
#include <string>

namespace spargejit::api {

namespace {

std::string deviceName(Device device) {
  if (device == Device{})
    return "cpu";
  const char *kind = device.kind == DeviceKind::Cpu    ? "cpu"
                     : device.kind == DeviceKind::Cuda ? "cuda"
                                                       : "(no DeviceKind)";
  return fmt::format("{}:{}", kind, device.ordinal);
}

/// True when every element's offset fits 63 bits.
bool offsetsFit(const TensorView &view) {
  std::int64_t reach = static_cast<std::int64_t>(dataTypeSize(view.dtype));
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    std::int64_t bytes = 0;
    if (view.sizes[i] > 1 &&
        (view.strides[i] == INT64_MIN ||
         __builtin_mul_overflow(view.sizes[i] - 1, std::abs(view.strides[i]),
                                &bytes) ||
         __builtin_mul_overflow(
             bytes, static_cast<std::int64_t>(dataTypeSize(view.dtype)),
             &bytes) ||
         __builtin_add_overflow(reach, bytes, &reach)))
      return false;
  }
  return true;
}

/// True when the elements are few enough for every sum and product of their
/// number that a call forms; strides of 0 make many of little memory.
bool elementsFit(const TensorView &view) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t count = 1;
  bool fits = true;
  for (std::int64_t size : sizesOf(view)) {
    if (size == 0)
      return true;
    fits &= !__builtin_mul_overflow(count, size, &count) && count < kMost;
  }
  return fits;
}

} // namespace

std::span<const std::int64_t> sizesOf(const TensorView &view) {
  return {view.sizes.data(), static_cast<std::size_t>(view.rank)};
}

std::span<const std::int64_t> stridesOf(const TensorView &view) {
  return {view.strides.data(), static_cast<std::size_t>(view.rank)};
}

void checkView(Checks &checks, const char *name, const TensorView &view,
               int rank, const char *shape, MemoryUse use) {
  checks.that(view.rank == rank, "{}.rank: expected {} ({}), got {}", name,
              rank, shape, view.rank);
  checks.that(dataTypeSize(view.dtype) > 0,
              "{}.dtype: expected a DataType, got the number {}", name,
              static_cast<int>(view.dtype));
  if (!checks.ok())
    return; // the rest counts on them
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i)
    checks.that(view.sizes[i] >= 0, "{}.sizes[{}]: expected 0 or more, got {}",
                name, i, view.sizes[i]);
  checks.that(elementsFit(view),
              "{}.sizes: expected fewer than 2^60 elements, got sizes [{}]",
              name, fmt::join(sizesOf(view), ", "));
  checks.that(offsetsFit(view),
              "{}.strides: expected offsets of less than 2^63 bytes, got sizes "
              "[{}] and strides [{}]",
              name, fmt::join(sizesOf(view), ", "),
              fmt::join(stridesOf(view), ", "));
  if (!checks.ok() || use == MemoryUse::Ignored || view.elementCount() == 0)
    return;
  auto address = std::bit_cast<std::uintptr_t>(view.data);
  checks.that(view.data != nullptr, "{}.data: expected memory, got null", name);
  checks.that(address % dataTypeSize(view.dtype) == 0,
              "{}.data: expected an address that is a multiple of {} ({}), got "
              "{:#x}",
              name, dataTypeSize(view.dtype), dataTypeName(view.dtype),
              address);
}

void checkDevice(Checks &checks, const char *name, const TensorView &view,
                 Device expected, const char *like) {
  // The names are made on failure only: this runs on every call.
  if (view.device != expected)
    checks.that(false, "{}.device: expected {} as {}, got {}", name,
                deviceName(expected), like, deviceName(view.device));
}

void checkLastStride(Checks &checks, const char *name, const TensorView &view) {
  auto last = static_cast<std::size_t>(view.rank - 1);
  checks.that(view.strides[last] == 1 || view.sizes[last] <= 1,
              "{}.strides[{}]: expected 1 (the elements of a head's vector "
              "side by side), got {}",
              name, last, view.strides[last]);
}

void checkRowValues(Checks &checks, const char *name, const TensorView &view) {
  const auto last = static_cast<std::size_t>(view.rank - 1);
  checks.supported(view.device.kind == DeviceKind::Cpu ||
                       view.strides[last] == 1 || view.sizes[last] <= 1,
                   "{}.strides[{}]: expected 1 on a GPU, got {}", name, last,
                   view.strides[last]);
}

void checkSize(Checks &checks, const char *name, const TensorView &view,
               std::size_t dimension, const char *meaning,
               std::int64_t expected, const char *like) {
  checks.that(view.sizes[dimension] == expected,
              "{}.sizes[{}]: expected {} {} as in {}, got {}", name, dimension,
              meaning, expected, like, view.sizes[dimension]);
}

void checkDistinct(Checks &checks, const char *name, const TensorView &view) {
  checks.that(elementsAreDistinct(view),
              "{}.strides: expected a place of its own for every element, got "
              "sizes [{}] and strides [{}]",
              name, fmt::join(sizesOf(view), ", "),
              fmt::join(stridesOf(view), ", "));
}

void checkApart(Checks &checks, const char *name, const TensorView &view,
                const char *otherName, const TensorView *other) {
  checks.that(!other || !viewsOverlap(view, *other),
              "{}: expected memory apart from {}, got an overlap", name,
              otherName);
}

void checkThreads(Checks &checks, int threads) {
  checks.that(threads >= 0, "config.threads: expected 0 (all) or more, got {}",
              threads);
}

} // namespace spargejit::api

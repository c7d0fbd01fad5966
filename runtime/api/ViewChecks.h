// SPDX-License-Identifier: Apache-2.0
//
// Checks of one view, for every argument alike. `name` is what the caller knows
// the argument by.
#pragma once

#include "runtime/api/Checks.h"
#include "runtime/api/Validate.h"
#include "runtime/api/ViewOverlap.h"
#include "spargejit/tensor.h"

#include <span>
#include <string>

namespace spargejit::api {

/// The first `rank` sizes and strides.
inline std::span<const std::int64_t> sizesOf(const TensorView &view) {
  return {view.sizes.data(), static_cast<std::size_t>(view.rank)};
}
inline std::span<const std::int64_t> stridesOf(const TensorView &view) {
  return {view.strides.data(), static_cast<std::size_t>(view.rank)};
}

/// "cuda:0", for messages.
std::string deviceName(Device device);

/// What holds for every tensor: rank, sizes, reach and, where the memory is
/// used, address. `shape` names the dimensions.
void checkView(Checks &checks, const char *name, const TensorView &view,
               int rank, const char *shape, MemoryUse use);

/// The view is on `expected`, where the argument `like` is.
inline void checkDevice(Checks &checks, const char *name,
                        const TensorView &view, Device expected,
                        const char *like = "q") {
  // The names are made on failure only: this runs on every call.
  if (view.device != expected) [[unlikely]]
    checks.that(false, "{}.device: expected {} as {}, got {}", name,
                deviceName(expected), like, deviceName(view.device));
}

/// The last dimension has stride 1.
inline void checkLastStride(Checks &checks, const char *name,
                            const TensorView &view) {
  const auto last = static_cast<std::size_t>(view.rank - 1);
  checks.that(view.strides[last] == 1 || view.sizes[last] <= 1,
              "{}.strides[{}]: expected 1 (the elements of a head's vector "
              "side by side), got {}",
              name, last, view.strides[last]);
}

/// On a GPU, whose kernels step from row to row by one float, the last
/// dimension of a value for each row has stride 1; else Unsupported.
void checkRowValues(Checks &checks, const char *name, const TensorView &view);

/// sizes[dimension] is `expected`, the `meaning` of the argument `like`.
inline void checkSize(Checks &checks, const char *name, const TensorView &view,
                      std::size_t dimension, const char *meaning,
                      std::int64_t expected, const char *like) {
  checks.that(view.sizes[dimension] == expected,
              "{}.sizes[{}]: expected {} {} as in {}, got {}", name, dimension,
              meaning, expected, like, view.sizes[dimension]);
}

/// No two elements share memory.
void checkDistinct(Checks &checks, const char *name, const TensorView &view);

/// The view shares no memory with `other` (null: nothing to check).
inline void checkApart(Checks &checks, const char *name,
                       const SpannedView &spanned, const char *otherName,
                       const TensorView *other) {
  checks.that(!other || !viewsOverlap(spanned, *other),
              "{}: expected memory apart from {}, got an overlap", name,
              otherName);
}

/// A config's number of CPU threads.
void checkThreads(Checks &checks, int threads);

} // namespace spargejit::api

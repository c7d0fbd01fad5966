// SPDX-License-Identifier: Apache-2.0
//
// Checks of one view, for every argument alike. `name` is what the caller knows
// the argument by.
#pragma once

#include "runtime/api/Checks.h"
#include "runtime/api/Validate.h"
#include "spargejit/tensor.h"

#include <span>

namespace spargejit::api {

/// The first `rank` sizes and strides, for messages.
std::span<const std::int64_t> sizesOf(const TensorView &view);
std::span<const std::int64_t> stridesOf(const TensorView &view);

/// What holds for every tensor: rank, sizes, reach and, where the memory is
/// used, address. `shape` names the dimensions.
void checkView(Checks &checks, const char *name, const TensorView &view,
               int rank, const char *shape, MemoryUse use);

/// The view is on `expected`, where the argument `like` is.
void checkDevice(Checks &checks, const char *name, const TensorView &view,
                 Device expected, const char *like = "q");

/// The last dimension has stride 1.
void checkLastStride(Checks &checks, const char *name, const TensorView &view);

/// On a GPU, whose kernels step from row to row by one float, the last
/// dimension of a value for each row has stride 1; else Unsupported.
void checkRowValues(Checks &checks, const char *name, const TensorView &view);

/// sizes[dimension] is `expected`, the `meaning` of the argument `like`.
void checkSize(Checks &checks, const char *name, const TensorView &view,
               std::size_t dimension, const char *meaning,
               std::int64_t expected, const char *like);

/// No two elements share memory.
void checkDistinct(Checks &checks, const char *name, const TensorView &view);

/// The view shares no memory with `other` (null: nothing to check).
void checkApart(Checks &checks, const char *name, const TensorView &view,
                const char *otherName, const TensorView *other);

/// A config's number of CPU threads.
void checkThreads(Checks &checks, int threads);

} // namespace spargejit::api

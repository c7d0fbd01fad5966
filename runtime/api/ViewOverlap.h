// SPDX-License-Identifier: Apache-2.0
//
// Do two strided views share memory? Exact for what callers pass (slices of one
// packed buffer do not overlap though their ranges interleave).
#pragma once

#include "spargejit/tensor.h"

namespace spargejit::api {

/// True when some element of `a` and some element of `b` share a byte. Decided
/// exactly, except that views so irregular that the search takes more than
/// kOverlapSteps steps count as overlapping.
bool viewsOverlap(const TensorView &a, const TensorView &b);
inline constexpr int kOverlapSteps = 10000;

/// True when no two elements of the view can be shown to share memory: ordered
/// by stride, each dimension steps over all of the smaller ones.
bool elementsAreDistinct(const TensorView &view);

} // namespace spargejit::api

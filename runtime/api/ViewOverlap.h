// SPDX-License-Identifier: Apache-2.0
//
// Do two strided views share memory? Exact for what callers pass (slices of one
// packed buffer do not overlap though their ranges interleave).
#pragma once

#include "spargejit/tensor.h"

#include <cstdint>

namespace spargejit::api {

/// The first and the last byte's address that a view touches; the last is
/// before the first for a view without elements.
struct ByteRange {
  std::int64_t first;
  std::int64_t last;
};
ByteRange byteRange(const TensorView &view);

/// A view with its bytes, which are worked out once for all that it is compared
/// with.
struct SpannedView {
  // NOLINTNEXTLINE(google-explicit-constructor): a view is one
  SpannedView(const TensorView &spanned)
      : view(spanned), bytes(byteRange(spanned)) {}
  const TensorView &view;
  ByteRange bytes;
};

/// True when some element of `a` and some element of `b` share a byte. Decided
/// exactly, except that views so irregular that the search takes more than
/// kOverlapSteps steps count as overlapping.
bool viewsOverlap(const SpannedView &a, const SpannedView &b);
inline constexpr int kOverlapSteps = 10000;

/// True when no two elements of the view can be shown to share memory: ordered
/// by stride, each dimension steps over all of the smaller ones.
bool elementsAreDistinct(const TensorView &view);

} // namespace spargejit::api

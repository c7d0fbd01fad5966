// SPDX-License-Identifier: Apache-2.0
//
// Gradients of block-sparse attention in float64 by their definition: plain
// loops over pairs of a row and a key. Shares no code with the product.
#pragma once

#include "tests/reference/ReferenceAttention.h"

#include <optional>
#include <vector>

namespace spargejit::reference {

/// Row-major, of the shapes of q, k and v.
struct Gradients {
  std::vector<double> dq;
  std::vector<double> dk;
  std::vector<double> dv;
  /// L2 norms of all terms that the sums consist of, where each of them, dO·v
  /// and delta in it without cancelling, counts by itself: what rounding
  /// errors are to be measured by, also where the sums cancel.
  double dqTerms = 0;
  double dkTerms = 0;
  double dvTerms = 0;
};

/// Gradients with respect to q, k and v of
///
///   sum over all elements of dO · o + sum of dLse · lse over rows with keys
///
/// where o and lse are referenceAttention(arguments) of all rows. dO has q's
/// shape, dLse [batch, qHeads, qLen]; both in host memory, any strides. A row
/// without keys takes part in nothing.
Gradients referenceGradients(const AttentionArguments &arguments,
                             const TensorView &dO,
                             const std::optional<TensorView> &dLse);

} // namespace spargejit::reference

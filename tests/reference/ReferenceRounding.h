// SPDX-License-Identifier: Apache-2.0
//
// q, k and v rounded to eight bits by the definition of spargejit/quantised.h,
// in float64. Shares no code with the product.
#pragma once

#include "tests/reference/HostArray.h"
#include "tests/reference/ReferenceAttention.h"

#include <memory>
#include <vector>

namespace spargejit::reference {

struct RoundedInputs {
  /// Float8E4M3, of the sizes of q, k and v.
  std::unique_ptr<HostArray> q, k, v;
  /// [batch, qHeads], [batch, kvHeads], [batch, kvHeads, headDim].
  std::vector<double> qFactors, kFactors, vScales;
  /// [batch, kvHeads]: whether the factors are those of all rows, since those
  /// of the sample were too large.
  std::vector<bool> roundedAgain;
};

/// As spargejit::quantise(): a NaN counts for no maximum.
RoundedInputs roundInputs(const AttentionArguments &arguments);

/// referenceAttention() of the rounded inputs, each channel of v in its scale;
/// of `arguments` mask, blocks, causality and rows count.
AttentionValues attentionOfRounded(const RoundedInputs &rounded,
                                   const AttentionArguments &arguments);

} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// How close a sparse result comes to the dense one.
#pragma once

#include "spargejit/tensor.h"

namespace spargejit::problem {

/// With O the dense output and O' the sparse one, over all elements:
struct Quality {
  double relL1 = 0;  ///< sum |O - O'| / sum |O|
  double relL2 = 0;  ///< |O - O'|₂ / |O|₂
  double cosine = 0; ///< <O, O'> / (|O|₂ |O'|₂)
  /// Mean over query rows of the share of the dense softmax's mass that lies on
  /// the selected blocks, exp(lse' - lse). Rows that see no key at all (causal
  /// with qLen > kvLen) are left out.
  double recall = 0;
};

/// All tensors are float32 and dense in memory: `dense` and `sparse` in one
/// order, the lse tensors [batch, heads, length]. Sums are float64. Results
/// that are not numbers give NaN.
Quality compareWithDense(const Tensor &dense, const Tensor &denseLse,
                         const Tensor &sparse, const Tensor &sparseLse);

} // namespace spargejit::problem

// SPDX-License-Identifier: Apache-2.0
//
// Block-sparse attention in float64 by its definition: plain loops over rows
// and keys, one pass for the maximum and one for the sum. Shares no code with
// the product.
#pragma once

#include "tests/reference/BlockMask.h"

#include <cstdint>
#include <vector>

namespace spargejit::reference {

/// q [batch, qHeads, qLen, headDim]; k, v [batch, kvHeads, kvLen, headDim], in
/// host memory, already rounded to the tested dtype, any strides.
struct AttentionArguments {
  TensorView q;
  TensorView k;
  TensorView v;
  /// Key blocks of each query block; nullptr attends to every key.
  const BlockMask *mask = nullptr;
  std::int64_t maskBlockQ = 1;
  std::int64_t maskBlockKv = 1;
  /// Row i sees keys j <= i + kvLen - qLen only.
  bool causal = false;
  double softmaxScale = 1;
  /// Query rows to compute, in this order; empty means all.
  std::vector<std::int64_t> rows;
};

/// o [batch, qHeads, rows, headDim] and lse [batch, qHeads, rows], row-major.
/// A row without keys has o = 0 and lse = -inf.
struct AttentionValues {
  std::vector<std::int64_t> rows;
  std::vector<double> o;
  std::vector<double> lse;
};

AttentionValues referenceAttention(const AttentionArguments &arguments);

} // namespace spargejit::reference

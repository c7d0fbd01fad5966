// SPDX-License-Identifier: Apache-2.0
//
// Block selection in float64 by its definition (hybrid Top-k + Top-p of
// SpargeAttention2, arXiv 2602.13515, and its two halves): mean pooling, all
// scores, one full sort, one prefix. Shares no code with the product.
#pragma once

#include "tests/reference/BlockMask.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace spargejit::reference {

struct SelectionRules {
  /// Share of key blocks kept by rank: k = clamp(trunc(ratio·blocks), 1,
  /// blocks); not used when empty.
  std::optional<double> topK;
  /// Probability mass kept; not used when empty.
  std::optional<double> topP;
  /// The key block that holds the last key seen by the last row of a query
  /// block (bottom-right aligned) is always kept.
  bool keepDiagonal = false;
  /// So many first key blocks are always kept.
  std::int64_t keepFirstBlocks = 0;
  /// Key blocks [denseFirst, denseEnd) are always kept; blocks of rows
  /// [denseRowFirst, denseRowEnd) keep every key block.
  std::int64_t denseFirst = 0, denseEnd = 0;
  std::int64_t denseRowFirst = 0, denseRowEnd = 0;
  /// Key blocks that no row of a query block sees are never kept.
  bool causal = false;
  double softmaxScale = 1;
  std::int64_t maskBlockQ = 128;
  std::int64_t maskBlockKv = 64;
};

/// One row of the mask, and how far it was from coming out differently.
struct SelectedRow {
  /// Kept key blocks, ascending.
  std::vector<std::int32_t> blocks;
  /// Length of the ranked prefix, before forced blocks are added.
  std::int64_t prefix = 0;
  /// Score of the last block in the prefix minus that of the first block after
  /// it; infinite when nothing was cut off. Exactly 0 is a true tie, which the
  /// lower index wins.
  double scoreMargin = 0;
  /// Rounding error that float32 scores of this row may have.
  double scoreError = 0;
  /// Distance of topP from the nearer of the two prefix sums that decide the
  /// length; infinite without topP.
  double massMargin = 0;

  /// True when float32 arithmetic may rightly decide otherwise: a score gap or
  /// a prefix sum too close to call.
  bool isNearTie() const {
    return (scoreMargin > 0 && scoreMargin < scoreError) ||
           massMargin < kMassError;
  }
  /// Rounding of up to 4096 float32 exponentials and their prefix sums, with a
  /// reserve: 4096 · 2^-24 / 32.
  static constexpr double kMassError = 8e-6;
};

/// Rows [batch][qHeads][qBlocks], row-major. q and k in host memory.
std::vector<SelectedRow> referenceSelection(const TensorView &q,
                                            const TensorView &k,
                                            const SelectionRules &rules);

/// The mask that the rows spell.
BlockMask maskOfRows(const std::vector<SelectedRow> &rows, std::int64_t batch,
                     std::int64_t qHeads, std::int64_t qBlocks,
                     std::int64_t kvBlocks);

} // namespace spargejit::reference

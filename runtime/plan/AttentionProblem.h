// SPDX-License-Identifier: Apache-2.0
//
// AttentionProblem: what the caller asked, checked and without tensors' memory.
#pragma once

#include "spargejit/attention.h"

#include <array>
#include <cstdint>

namespace spargejit::plan {

/// ceil(length / block).
constexpr std::int64_t blockCount(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

/// How many rows of blocks a CTA selects from, by their number and length.
enum class SelectionRows {
  Usual,
  /// Twice as many: so many rows that there are enough such CTAs, of at most so
  /// many blocks that CTAs that pool fit beside two of them.
  Many,
  /// Fewer: eight rows of scores and what lies beside them (two flags for each
  /// score, 32 rows of the head dimension) no longer fit the shared memory of a
  /// CTA of Hopper, 227 KiB.
  Long,
};
inline constexpr std::array<const char *, 3> kSelectionRowsNames = {
    "usual", "many", "long"};

/// Of a call with so many rows of blocks, over all batches and heads, of which
/// a head has `qBlocks`. What is many is from
/// bench/results/2026-11-30-h200-selection.md.
constexpr SelectionRows selectionRows(std::int64_t rows, std::int64_t qBlocks,
                                      std::int64_t kvBlocks,
                                      std::int64_t headDim) {
  if (kvBlocks > (headDim > 128 ? 5120 : 6144))
    return SelectionRows::Long;
  const bool isMany = rows >= 2048 && qBlocks >= 128 && kvBlocks <= 768;
  return isMany && headDim == 128 ? SelectionRows::Many : SelectionRows::Usual;
}

/// Peaks of q, k and v that 64 warps of a head find
/// (kernels_ir/kernels/sm90/quantise_again.mlir); on the CPU one row, of one
/// number (kernels_ir/kernels/portable/quantise_again.mlir).
inline constexpr std::int64_t kPeakRows = 3 * 64;

/// Keys of a column of core matrices in the image of v that Hopper's tensor
/// cores read (kernels_ir/kernels/sm90/quantise.mlir), and its bytes.
inline constexpr std::int64_t kImageKeys = 16;
inline constexpr std::int64_t kImageCoreBytes = 128;

/// The part of a problem that decides code. Problems of one class share their
/// plan and its kernels, whatever their lengths.
struct ProblemClass {
  DataType dtype = DataType::Float32;
  std::int64_t headDim = 0;
  std::int64_t maskBlockQ = 0;
  std::int64_t maskBlockKv = 0;
  bool causal = false;
  /// selectionRows().
  SelectionRows rows = SelectionRows::Usual;
  /// Some blocks are kept whatever is selected (AttentionProblem::dense).
  bool hasDense = false;
  /// Of the attention; selection has one.
  Precision precision = Precision::Inputs;

  bool isEightBit() const { return precision != Precision::Inputs; }

  friend bool operator==(const ProblemClass &, const ProblemClass &) = default;
};

struct AttentionProblem {
  ProblemClass kind;
  /// Where all tensors of the call are.
  Device device;
  std::int64_t batch = 0;
  std::int64_t qHeads = 0;
  std::int64_t kvHeads = 0;
  std::int64_t qLen = 0;
  std::int64_t kvLen = 0;
  float softmaxScale = 0;
  /// Selection: share of key blocks kept by rank, and probability mass kept.
  double topK = 0;
  double topP = 0;
  /// Blocks that are kept whatever is selected: with these four numbers a, b,
  /// c, d, key blocks [a, b) for all rows, and for blocks of rows [c, d) all
  /// key blocks.
  std::array<std::int64_t, 4> dense{};

  /// Of a backward pass that keeps score gradients (KeptGradients.h): heads of
  /// k at a time, and blocks of the mask for each head of q; 0 for none.
  std::int64_t keptHeads = 0;
  std::int64_t keptRoom = 0;

  std::int64_t qBlocks() const { return blockCount(qLen, kind.maskBlockQ); }
  std::int64_t kvBlocks() const { return blockCount(kvLen, kind.maskBlockKv); }
};

/// The number of key blocks that a share of them means:
/// clamp(trunc(share · kvBlocks), 1, kvBlocks), or 0 where there are none.
std::int64_t keptBlocks(double share, std::int64_t kvBlocks);

} // namespace spargejit::plan

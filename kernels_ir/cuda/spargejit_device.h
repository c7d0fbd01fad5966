// SPDX-License-Identifier: Apache-2.0
//
// What a stage written in CUDA C++ sees (docs/your_own_selection_rule.md). It
// is included before the stage's text, which defines one or both of
//
//   float score(const spargejit::BlockPair &pair)
//   bool keep(const spargejit::ScoredPair &pair)
//
// and whatever these call. No other header is needed or found; the functions
// of <math.h> are there, and every function is one of the device.
#pragma once

namespace spargejit {

/// Fixed when the stage is compiled.
inline constexpr int kHeadDim = SPARGEJIT_HEAD_DIM;
inline constexpr int kMaskBlockQ = SPARGEJIT_MASK_BLOCK_Q;
inline constexpr int kMaskBlockKv = SPARGEJIT_MASK_BLOCK_KV;
inline constexpr bool kCausal = SPARGEJIT_CAUSAL;

/// A block of query rows and a block of keys, of one head of one batch entry.
struct BlockPair {
  int batch;
  /// Of the query, and of the key that it reads.
  int head;
  int kvHead;
  /// Numbers of the two blocks, and how many of each there are.
  int qBlock;
  int kvBlock;
  int qBlocks;
  int kvBlocks;
  /// Tokens.
  int qLen;
  int kvLen;
  /// Mean of the rows of each block that exist: kHeadDim numbers.
  const float *q;
  const float *k;
  float softmaxScale;
  /// softmaxScale · q · k, float32.
  float score;
  /// clamp(trunc(topK · kvBlocks), 1, kvBlocks) where the op names top_k, else
  /// 0; top_p where it names that, else 0.
  int keptBlocks;
  float topP;

  /// Rows [firstRow, endRow) of the query block, keys [firstKey, endKey) of the
  /// key block; the last block of each may be shorter than the others.
  int firstRow() const { return qBlock * kMaskBlockQ; }
  int endRow() const {
    int end = firstRow() + kMaskBlockQ;
    return end < qLen ? end : qLen;
  }
  int firstKey() const { return kvBlock * kMaskBlockKv; }
  int endKey() const {
    int end = firstKey() + kMaskBlockKv;
    return end < kvLen ? end : kvLen;
  }
  /// Position of a query row among the keys: the last row stands at the last
  /// key. Below 0 for rows before all keys.
  int keyOf(int row) const { return row + kvLen - qLen; }
};

/// A pair with the final scores of its row of blocks at hand. `score` is what
/// score() gave, NaN as -inf.
struct ScoredPair : BlockPair {
  /// Over the key blocks that causality leaves: the largest score, and the sum
  /// of exp(score - rowMax), which is 0 where all scores are -inf.
  float rowMax;
  float rowSum;

  /// softmax of the row's scores at this block; 0 for a score of -inf.
  float probability() const {
    return score == rowMax ? (rowSum > 0 ? 1 / rowSum : 0)
                           : expf(score - rowMax) / rowSum;
  }
};

} // namespace spargejit

// SPDX-License-Identifier: Apache-2.0
//
// From q and k to block lists: pooling, scores, selection, transposition.
#ifndef SPARGE_SELECTION_OPS_TD
#define SPARGE_SELECTION_OPS_TD

include "compiler/Dialect/Sparge/SpargeTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sparge_PoolOp : Sparge_Op<"pool",
    [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "mean of each block of rows";
  let description = [{
    pooled[b, h, i, :] = (1 / n_i) · sum of x[b, h, t, :] over the n_i rows t of
    block i that exist.

    Sums and results are float32. A block of q has maskBlockQ rows, a block of k
    maskBlockKv.

    Shapes: x [batch, heads, length, headDim]; pooled
    [batch, heads, blocks, headDim].

    Empty rows: a block has at least one row that exists.

    Constraints:
    - C1: x is a `tensor<query>` or a `tensor<key>`.
    - C2: pooled has the role of x.

    Example: tests/lit/Dialect/Sparge/pool.mlir.
  }];
  let arguments = (ins Sparge_TensorType:$x);
  let results = (outs Sparge_PooledType:$pooled);
  let assemblyFormat = "$x attr-dict `:` qualified(type($x))";
}

def Sparge_BlockScoresOp : Sparge_Op<"block_scores", [Pure]> {
  let summary = "score of each block of query rows with each key block";
  let description = [{
    scores[b, h, i, j] = softmaxScale · pooled_q[b, h, i, :] ·
    pooled_k[b, g, j, :], with g the key head of query head h. float32.

    Shapes: pooled_q [batch, qHeads, qBlocks, headDim]; pooled_k
    [batch, kvHeads, kvBlocks, headDim]; scores
    [batch, qHeads, qBlocks, kvBlocks].

    Empty rows: none; every pair of blocks has a score, hidden by causality or
    not.

    Constraints:
    - C1: pooled_q has the role query.
    - C2: pooled_k has the role key.

    Example: tests/lit/Dialect/Sparge/block_scores.mlir.
  }];
  let arguments = (ins Sparge_PooledType:$pooled_q, Sparge_PooledType:$pooled_k);
  let results = (outs Sparge_ScoresType:$scores);
  let assemblyFormat = [{
    $pooled_q `,` $pooled_k attr-dict `:` qualified(type($pooled_q)) `,`
    qualified(type($pooled_k))
  }];
  let hasVerifier = 1;
}

def Sparge_SelectBlocksOp : Sparge_Op<"select_blocks",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "the key blocks to attend to, from their scores";
  let description = [{
    For each row of scores, over the key blocks that causality does not hide:

    - rank by score, descending; equal scores by ascending number; NaN ranks as
      -inf;
    - w = softmax(scores); n_p = the fewest leading blocks whose w sum to at
      least top_p (the crossing block included), 0 without `top_p`;
    - k = clamp(trunc(top_k · kvBlocks), 1, kvBlocks), 0 without `top_k`;
    - keep the leading max(1, k, n_p) blocks: the union of the Top-k and the
      Top-p set, since both are prefixes of one ranking;
    - with `keep_diagonal` also the block that holds the last key which the last
      existing row of the query block sees, min(row + kvLen - qLen, kvLen - 1),
      at least 0, whether the call is causal or not;
    - also the first `keep_first` blocks.

    A block that causality hides from every row of the query block is never in
    the list, forced or not. Lists are ascending.

    Shapes: scores [batch, qHeads, qBlocks, kvBlocks]; indices
    [batch, qHeads, qBlocks, capacity], counts [batch, qHeads, qBlocks].

    Empty rows: a row of blocks from which causality hides every key block has
    count 0; every other row keeps at least one block.

    Constraints:
    - C1: there is a rule: `top_k`, `top_p`, `keep_diagonal` or a positive
      `keep_first`.
    - C2: `keep_first` >= 0.

    Example: tests/lit/Dialect/Sparge/select_blocks.mlir.
  }];
  let arguments = (ins Sparge_ScoresType:$scores,
                       Optional<Sparge_Scalar>:$top_k,
                       Optional<Sparge_Scalar>:$top_p,
                       UnitAttr:$keep_diagonal,
                       DefaultValuedAttr<I64Attr, "0">:$keep_first);
  let results = (outs Sparge_ListsType:$lists);
  let assemblyFormat = [{
    $scores (`top_k` `(` $top_k^ `)`)? (`top_p` `(` $top_p^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Sparge_ScoreAndSelectOp : Sparge_Op<"score_and_select",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "block_scores and select_blocks as one step";
  let description = [{
    lists = select_blocks(block_scores(pooled_q, pooled_k)), without the scores
    in memory: made by `sparge-fuse-selection`, because kernels score a row of
    blocks and select from it in one place.

    Shapes: pooled_q [batch, qHeads, qBlocks, headDim]; pooled_k
    [batch, kvHeads, kvBlocks, headDim]; indices
    [batch, qHeads, qBlocks, capacity], counts [batch, qHeads, qBlocks].

    Empty rows: as in `sparge.select_blocks`.

    Constraints:
    - C1: pooled_q has the role query.
    - C2: pooled_k has the role key.
    - C3: there is a rule: `top_k`, `top_p`, `keep_diagonal` or a positive
      `keep_first`.
    - C4: `keep_first` >= 0.

    Example: tests/lit/Dialect/Sparge/score_and_select.mlir.
  }];
  let arguments = (ins Sparge_PooledType:$pooled_q,
                       Sparge_PooledType:$pooled_k,
                       Optional<Sparge_Scalar>:$top_k,
                       Optional<Sparge_Scalar>:$top_p,
                       UnitAttr:$keep_diagonal,
                       DefaultValuedAttr<I64Attr, "0">:$keep_first);
  let results = (outs Sparge_ListsType:$lists);
  let assemblyFormat = [{
    $pooled_q `,` $pooled_k (`top_k` `(` $top_k^ `)`)?
    (`top_p` `(` $top_p^ `)`)? attr-dict `:` qualified(type($pooled_q)) `,`
    qualified(type($pooled_k))
  }];
  let hasVerifier = 1;
}

def Sparge_InvertBlocksOp : Sparge_Op<"invert_blocks", [Pure]> {
  let summary = "the blocks of query rows of each key block";
  let description = [{
    i is in key_lists[b, h, j] exactly when j is in lists[b, h, i]; each list
    ascending, so the result is the same in every run. The backward pass walks
    it to sum the gradients of k and v.

    Shapes: indices [batch, qHeads, qBlocks, capacity], counts
    [batch, qHeads, qBlocks] to indices [batch, qHeads, kvBlocks, qBlocks],
    counts [batch, qHeads, kvBlocks].

    Empty rows: a key block that nobody selects has count 0.

    Example: tests/lit/Dialect/Sparge/invert_blocks.mlir.
  }];
  let arguments = (ins Sparge_ListsType:$lists);
  let results = (outs Sparge_KeyListsType:$key_lists);
  let assemblyFormat = "$lists attr-dict";
}

#endif // SPARGE_SELECTION_OPS_TD

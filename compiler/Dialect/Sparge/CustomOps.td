// SPDX-License-Identifier: Apache-2.0
//
// Stages of a selection that users write in CUDA C++.
#ifndef SPARGE_CUSTOM_OPS_TD
#define SPARGE_CUSTOM_OPS_TD

include "compiler/Dialect/Sparge/SpargeTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sparge_CodeAttr : AttrDef<Sparge_Dialect, "Code"> {
  let mnemonic = "code";
  let summary = "the text of a stage in CUDA C++";
  let description = [{
    `<["line", …]>` is the text, line by line; `<config>` stands for
    config.customSource of the call. The text sees
    kernels_ir/cuda/spargejit_device.h, and all code of an op is one program
    with it.

    `places` are the lines of the method file that the strings stand in, one for
    each, so that the CUDA compiler names those; the parser fills them in.

    Constraints:
    - C1: a text that is given has a line.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$lines,
                        "::mlir::DenseI64ArrayAttr":$places);
  let builders = [AttrBuilder<(ins), [{
    return $_get($_ctxt, ::mlir::ArrayAttr(), ::mlir::DenseI64ArrayAttr());
  }]>];
  let extraClassDeclaration = [{
    bool isFromConfig() const { return !getLines(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Sparge_CustomScoresOp : Sparge_Op<"custom_scores", [Pure]> {
  let summary = "score of each pair of blocks, by the user's own function";
  let description = [{
    scores[b, h, i, j] = score(pair), where `code` defines

    `float score(const spargejit::BlockPair &pair);`

    and pair.score is what `sparge.block_scores` gives. Asked for the pairs that
    causality does not hide. NaN ranks as -inf. GPUs alone run it: NVRTC compiles
    it when the method is first used.

    Shapes: pooled_q [batch, qHeads, qBlocks, headDim]; pooled_k
    [batch, kvHeads, kvBlocks, headDim]; scores
    [batch, qHeads, qBlocks, kvBlocks].

    Empty rows: as in `sparge.block_scores`.

    Constraints:
    - C1: pooled_q has the role query.
    - C2: pooled_k has the role key.

    Example: tests/lit/Dialect/Sparge/custom_scores.mlir.
  }];
  let arguments = (ins Sparge_PooledType:$pooled_q, Sparge_PooledType:$pooled_k,
                       Sparge_CodeAttr:$code);
  let results = (outs Sparge_ScoresType:$scores);
  let assemblyFormat = [{
    $pooled_q `,` $pooled_k `code` `` $code attr-dict `:`
    qualified(type($pooled_q)) `,` qualified(type($pooled_k))
  }];
  let hasVerifier = 1;
}

def Sparge_CustomSelectOp : Sparge_Op<"custom_select",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "the key blocks to attend to, by the user's own rule";
  let description = [{
    Row (b, h, i) keeps the key blocks j with keep(pair), where `code` defines

    `bool keep(const spargejit::ScoredPair &pair);`

    and pair has the block's score, its row's largest score and its probability
    in its row. `top_k` and `top_p` reach the rule as pair.keptBlocks
    (clamp(trunc(top_k · kvBlocks), 1, kvBlocks)) and pair.topP and mean what it
    makes of them. Forced blocks, causality and the form of lists are as in
    `sparge.select_blocks`. GPUs alone run it.

    Shapes: scores [batch, qHeads, qBlocks, kvBlocks]; indices
    [batch, qHeads, qBlocks, capacity], counts [batch, qHeads, qBlocks].

    Empty rows: a row of blocks for which the rule keeps nothing has count 0.

    Constraints:
    - C1: `keep_first` >= 0.

    Example: tests/lit/Dialect/Sparge/custom_select.mlir.
  }];
  let arguments = (ins Sparge_ScoresType:$scores,
                       Sparge_CodeAttr:$code,
                       Optional<Sparge_Scalar>:$top_k,
                       Optional<Sparge_Scalar>:$top_p,
                       UnitAttr:$keep_diagonal,
                       DefaultValuedAttr<I64Attr, "0">:$keep_first);
  let results = (outs Sparge_ListsType:$lists);
  let assemblyFormat = [{
    $scores `code` `` $code (`top_k` `(` $top_k^ `)`)?
    (`top_p` `(` $top_p^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Sparge_CustomScoreAndSelectOp : Sparge_Op<"custom_score_and_select",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "scores and selection as one step, one of them the user's";
  let description = [{
    lists = selection(scores(pooled_q, pooled_k)): `custom_scores` with
    `score_code`, else `block_scores`; `custom_select` with `keep_code`, else
    `select_blocks`. Made by `sparge-fuse-selection`.

    Shapes: as in `sparge.score_and_select`.

    Empty rows: as in the selection that it stands for.

    Constraints:
    - C1: pooled_q has the role query.
    - C2: pooled_k has the role key.
    - C3: `keep_first` >= 0.
    - C4: there is `score_code` or `keep_code`.
    - C5: without `keep_code` there is a rule: `top_k`, `top_p`,
      `keep_diagonal` or a positive `keep_first`.

    Example: tests/lit/Dialect/Sparge/custom_score_and_select.mlir.
  }];
  let arguments = (ins Sparge_PooledType:$pooled_q,
                       Sparge_PooledType:$pooled_k,
                       OptionalAttr<Sparge_CodeAttr>:$score_code,
                       OptionalAttr<Sparge_CodeAttr>:$keep_code,
                       Optional<Sparge_Scalar>:$top_k,
                       Optional<Sparge_Scalar>:$top_p,
                       UnitAttr:$keep_diagonal,
                       DefaultValuedAttr<I64Attr, "0">:$keep_first);
  let results = (outs Sparge_ListsType:$lists);
  let assemblyFormat = [{
    $pooled_q `,` $pooled_k (`score` `code` `` $score_code^)?
    (`keep` `code` `` $keep_code^)? (`top_k` `(` $top_k^ `)`)?
    (`top_p` `(` $top_p^ `)`)? attr-dict `:` qualified(type($pooled_q)) `,`
    qualified(type($pooled_k))
  }];
  let hasVerifier = 1;
}

#endif // SPARGE_CUSTOM_OPS_TD

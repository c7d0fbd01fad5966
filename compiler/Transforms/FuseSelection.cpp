// SPDX-License-Identifier: Apache-2.0
//
// What: joins sparge.block_scores with the sparge.select_blocks that uses it.
// Why: a row of scores is a few thousand numbers that a kernel can keep to
// itself; in memory they would be batch · heads · qBlocks · kvBlocks floats,
// written once and read once.
//
// IR before:
//   %scores = sparge.block_scores %pooled_q, %pooled_k : …
//   %lists = sparge.select_blocks %scores top_k(%top_k)
// IR after:
//   %lists = sparge.score_and_select %pooled_q, %pooled_k top_k(%top_k) : …
//
// Test: tests/lit/Transforms/fuse_selection.mlir
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/Unsupported.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::sparge {

#define GEN_PASS_DEF_SPARGEFUSESELECTIONPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

/// An error unless `scores` has one user at most, and that a selection.
LogicalResult checkUsers(BlockScoresOp scores) {
  unsigned uses = 0;
  for (Operation *user : scores->getUsers()) {
    ++uses;
    if (!isa<SelectBlocksOp>(user)) {
      InFlightDiagnostic error = emitUnsupported(scores);
      error << "expects sparge.select_blocks as the only user of scores, got '"
            << user->getName() << "': no kernel writes scores to memory";
      error.attachNote(user->getLoc()) << "used here";
      return error;
    }
  }
  if (uses > 1)
    return emitUnsupported(scores)
           << "expects one sparge.select_blocks as the user of scores, got "
           << uses << ": no kernel writes scores to memory";
  return success();
}

struct FuseSelection : public impl::SpargeFuseSelectionPassBase<FuseSelection> {
  void runOnOperation() override {
    SmallVector<BlockScoresOp> found;
    getOperation().walk([&](BlockScoresOp op) { found.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (BlockScoresOp scores : found) {
      if (failed(checkUsers(scores)))
        return signalPassFailure();
      if (!scores->use_empty()) {
        fuse(rewriter, scores, cast<SelectBlocksOp>(*scores->user_begin()));
        ++numFused;
      }
      rewriter.eraseOp(scores);
    }
  }

  static void fuse(IRRewriter &rewriter, BlockScoresOp scores,
                   SelectBlocksOp select) {
    rewriter.setInsertionPoint(select);
    rewriter.replaceOpWithNewOp<ScoreAndSelectOp>(
        select, select.getLists().getType(), scores.getPooledQ(),
        scores.getPooledK(), select.getTopK(), select.getTopP(),
        select.getKeepDiagonal(), select.getKeepFirst());
  }
};

} // namespace
} // namespace mlir::sparge

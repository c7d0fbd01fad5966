// SPDX-License-Identifier: Apache-2.0
//
// What: joins sparge.block_scores with the sparge.select_blocks that uses it,
// and likewise where one of them is the user's (sparge.custom_scores,
// custom_select). Why: a row of scores is a few thousand numbers that a kernel
// can keep to itself; in memory they would be batch · heads · qBlocks ·
// kvBlocks floats, written once and read once.
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

bool isSelection(Operation *op) {
  return isa<SelectBlocksOp, CustomSelectOp>(op);
}

/// An error unless `scores` has one user at most, and that a selection.
LogicalResult checkUsers(Operation *scores) {
  unsigned uses = 0;
  for (Operation *user : scores->getUsers()) {
    ++uses;
    if (!isSelection(user)) {
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

void fuse(IRRewriter &rewriter, BlockScoresOp scores, SelectBlocksOp select) {
  rewriter.replaceOpWithNewOp<ScoreAndSelectOp>(
      select, select.getLists().getType(), scores.getPooledQ(),
      scores.getPooledK(), select.getTopK(), select.getTopP(),
      select.getKeepDiagonal(), select.getKeepFirst());
}

/// For pairs of which one at least is the user's; the code of the other is
/// null.
template <typename ScoresTy, typename SelectTy>
void fuseCustom(IRRewriter &rewriter, ScoresTy scores, SelectTy select,
                CodeAttr scoreCode, CodeAttr keepCode) {
  rewriter.replaceOpWithNewOp<CustomScoreAndSelectOp>(
      select, select.getLists().getType(), scores.getPooledQ(),
      scores.getPooledK(), scoreCode, keepCode, select.getTopK(),
      select.getTopP(), select.getKeepDiagonal(), select.getKeepFirst());
}

void fuseWithUser(IRRewriter &rewriter, Operation *producer) {
  Operation *user = *producer->user_begin();
  rewriter.setInsertionPoint(user);
  auto select = dyn_cast<SelectBlocksOp>(user);
  auto customSelect = dyn_cast<CustomSelectOp>(user);
  if (auto scores = dyn_cast<BlockScoresOp>(producer)) {
    if (select)
      return fuse(rewriter, scores, select);
    return fuseCustom(rewriter, scores, customSelect, {},
                      customSelect.getCode());
  }
  auto scores = cast<CustomScoresOp>(producer);
  if (select)
    return fuseCustom(rewriter, scores, select, scores.getCode(), {});
  fuseCustom(rewriter, scores, customSelect, scores.getCode(),
             customSelect.getCode());
}

struct FuseSelection : public impl::SpargeFuseSelectionPassBase<FuseSelection> {
  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      if (isa<BlockScoresOp, CustomScoresOp>(op))
        found.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *scores : found) {
      if (failed(checkUsers(scores)))
        return signalPassFailure();
      if (!scores->use_empty()) {
        fuseWithUser(rewriter, scores);
        ++numFused;
      }
      rewriter.eraseOp(scores);
    }
  }
};

} // namespace
} // namespace mlir::sparge

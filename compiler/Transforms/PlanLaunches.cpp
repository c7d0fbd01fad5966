// SPDX-License-Identifier: Apache-2.0
//
// What: turns the ops of a method into launches of kernels, and drops what no
// returned value needs.
// Why: the runtime knows kernels and buffers only. All knowledge of which
// kernel implements which op, and of its argument names, is in this file.
//
// IR before:
//   %pooled_q = sparge.pool %q : !sparge.tensor<query>
//   %pooled_k = sparge.pool %k : !sparge.tensor<key>
// IR after:
//   %pooled_q, %pooled_k = sparge.launch "pool"(q = %q : …, k = %k : …)
//     -> (pooled_q : …, pooled_k : …) parameters {}
//
// Test: tests/lit/Transforms/plan_launches.mlir
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/Unsupported.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::sparge {

#define GEN_PASS_DEF_SPARGEPLANLAUNCHESPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// What can be planned
//===----------------------------------------------------------------------===//

/// A ratio is a parameter of the call or a constant in [0, 1].
LogicalResult checkRatio(Operation *op, StringRef name, Value ratio) {
  if (!ratio || ratio.getDefiningOp<ParameterOp>())
    return success();
  auto constant = ratio.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return op->emitError()
           << "expects " << name
           << " to be a sparge.parameter or an arith.constant, got '"
           << ratio.getDefiningOp()->getName() << "'";
  double value = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
  if (!(value >= 0 && value <= 1))
    return op->emitError() << "expects " << name << " in [0, 1], got "
                           << constant.getValue();
  return success();
}

/// An error for an op that has no place in a plan.
LogicalResult checkOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ParameterOp, CallerListsOp, arith::ConstantOp, ReturnOp, PoolOp,
            InvertBlocksOp, AttentionBackwardOp>([](auto) { return success(); })
      .Case([](AttentionOp attention) -> LogicalResult {
        // Its output would be bound to the memory of the forward pass's.
        if (cast<MethodOp>(attention->getParentOp()).isBackward())
          return emitUnsupported(attention)
                 << "no launch computes attention in a backward pass; take its "
                    "results as arguments";
        return success();
      })
      .Case([](ScoreAndSelectOp select) {
        if (failed(checkRatio(select, "top_k", select.getTopK())))
          return failure();
        return checkRatio(select, "top_p", select.getTopP());
      })
      .Case([](CustomScoreAndSelectOp select) {
        if (failed(checkRatio(select, "top_k", select.getTopK())))
          return failure();
        return checkRatio(select, "top_p", select.getTopP());
      })
      .Case<BlockScoresOp, SelectBlocksOp, CustomScoresOp, CustomSelectOp>(
          [](Operation *unfused) {
            return emitUnsupported(unfused)
                   << "no kernel implements '" << unfused->getName()
                   << "' alone; run sparge-fuse-selection before";
          })
      .Case([](LaunchOp launch) {
        return launch.emitError() << "expects a method without sparge.launch, "
                                     "got one that is planned already";
      })
      .Default([](Operation *other) {
        return emitUnsupported(other)
               << "no kernel implements '" << other->getName() << "'";
      });
}

/// An error unless the gradients are those of one attention_backward, and every
/// value is an op's.
LogicalResult checkGradients(ReturnOp returned) {
  ValueRange values = returned.getValues();
  auto backward = cast<AttentionBackwardOp>(values[0].getDefiningOp());
  if (values != ValueRange(backward.getResults()))
    return returned.emitError() << "expects the gradients that one "
                                   "sparge.attention_backward makes, got those "
                                   "of several";
  return success();
}

/// An error unless what is returned comes from one attention, whose launch the
/// caller's output and lse can be given to.
LogicalResult checkReturn(ReturnOp returned) {
  if (cast<MethodOp>(returned->getParentOp()).isBackward())
    return checkGradients(returned);
  // Nothing else that passed checkOp makes an output.
  auto attention = cast<AttentionOp>(returned.getValues()[0].getDefiningOp());
  for (Value value : returned.getValues().drop_front()) {
    if (isa<LseType>(value.getType()) && value != attention.getLse())
      return returned.emitError()
             << "expects the lse of the attention that makes the output, got "
                "that of another";
    if (isa<ListsType>(value.getType()) && value != attention.getLists())
      return returned.emitError()
             << "expects the lists that the attention uses, got others";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Collects one launch.
class LaunchBuilder {
public:
  LaunchBuilder(StringRef kernel, IRRewriter &rewriter)
      : kernel_(kernel), rewriter_(rewriter) {}

  /// Binds an argument that the kernel reads; an absent value binds nothing.
  LaunchBuilder &reads(StringRef name, Value value) {
    if (value) {
      operands_.push_back(value);
      argumentNames_.push_back(name);
    }
    return *this;
  }
  /// Binds an argument that the kernel writes, to take the place of `result`.
  LaunchBuilder &writes(StringRef name, Value result) {
    replaced_.push_back(result);
    resultNames_.push_back(name);
    return *this;
  }
  /// Binds an argument that the kernel writes and that is no op's result yet;
  /// stands after all of writes().
  LaunchBuilder &makes(StringRef name, Type type) {
    newTypes_.push_back(type);
    resultNames_.push_back(name);
    return *this;
  }
  LaunchBuilder &parameter(StringRef name, int64_t value) {
    parameters_.push_back(
        rewriter_.getNamedAttr(name, rewriter_.getI64IntegerAttr(value)));
    return *this;
  }
  /// Gives the kernel a stage in CUDA C++; null gives nothing.
  LaunchBuilder &source(StringRef name, CodeAttr code) {
    if (code)
      sources_.push_back(rewriter_.getNamedAttr(name, code));
    return *this;
  }
  /// Puts the launch before `op`, a part of which it does.
  LaunchOp insertBefore(Operation *op) {
    rewriter_.setInsertionPoint(op);
    auto types = llvm::to_vector(TypeRange(ValueRange(replaced_)));
    types.append(newTypes_);
    auto launch = LaunchOp::create(
        rewriter_, op->getLoc(), types, kernel_, operands_,
        rewriter_.getStrArrayAttr(argumentNames_),
        rewriter_.getStrArrayAttr(resultNames_),
        rewriter_.getDictionaryAttr(parameters_),
        sources_.empty() ? DictionaryAttr()
                         : rewriter_.getDictionaryAttr(sources_));
    for (auto [before, after] : llvm::zip_first(replaced_, launch.getOutputs()))
      rewriter_.replaceAllUsesWith(before, after);
    return launch;
  }
  /// Puts the launch in the place of `op`.
  void replace(Operation *op) {
    insertBefore(op);
    rewriter_.eraseOp(op);
  }

private:
  StringRef kernel_;
  IRRewriter &rewriter_;
  SmallVector<Value> operands_, replaced_;
  SmallVector<Type> newTypes_;
  SmallVector<StringRef> argumentNames_, resultNames_;
  SmallVector<NamedAttribute> parameters_, sources_;
};

/// One launch pools q and k, and stands where the second op did.
void planPools(IRRewriter &rewriter, ArrayRef<PoolOp> pools) {
  bool queryFirst = PoolOp(pools[0]).getX().getType().getRole() == Role::Query;
  PoolOp q = pools[queryFirst ? 0 : 1], k = pools[queryFirst ? 1 : 0];
  LaunchBuilder("pool", rewriter)
      .reads("q", q.getX())
      .reads("k", k.getX())
      .writes("pooled_q", q.getPooled())
      .writes("pooled_k", k.getPooled())
      .insertBefore(pools.back());
  for (PoolOp op : pools)
    rewriter.eraseOp(op);
}

/// What every kernel that scores and selects takes, whoever wrote its rule.
template <typename Op>
LaunchBuilder selectionLaunch(StringRef kernel, IRRewriter &rewriter, Op op) {
  LaunchBuilder launch(kernel, rewriter);
  launch.reads("pooled_q", op.getPooledQ())
      .reads("pooled_k", op.getPooledK())
      .reads("k", op.getTopK())
      .reads("p", op.getTopP())
      .writes("lists", op.getLists())
      .parameter("keep_diagonal", op.getKeepDiagonal())
      .parameter("keep_first", op.getKeepFirst());
  return launch;
}

void planScoreAndSelect(IRRewriter &rewriter, ScoreAndSelectOp op) {
  selectionLaunch("select_blocks", rewriter, op).replace(op);
}

void planCustomScoreAndSelect(IRRewriter &rewriter, CustomScoreAndSelectOp op) {
  selectionLaunch("custom_select", rewriter, op)
      .source("score", op.getScoreCodeAttr())
      .source("keep", op.getKeepCodeAttr())
      .replace(op);
}

void planAttention(IRRewriter &rewriter, AttentionOp op) {
  LaunchBuilder launch("attention_fwd", rewriter);
  launch.reads("q", op.getQ())
      .reads("k", op.getK())
      .reads("v", op.getV())
      .reads("lists", op.getLists())
      .writes("o", op.getO());
  if (!op.getLse().use_empty())
    launch.writes("lse", op.getLse());
  launch.parameter("has_lists", op.getLists() != nullptr).replace(op);
}

/// Where score gradients are kept that an inversion of lists hands out.
struct Places {
  Value places, unkept;
};

Places planInvertBlocks(IRRewriter &rewriter, InvertBlocksOp op) {
  const bool keeps = llvm::any_of(op->getUsers(), [](Operation *user) {
    auto backward = dyn_cast<AttentionBackwardOp>(user);
    return backward && backward.getKeeps();
  });
  LaunchBuilder launch("invert_blocks", rewriter);
  launch.reads("lists", op.getLists()).writes("key_lists", op.getKeyLists());
  if (!keeps) {
    launch.replace(op);
    return {};
  }
  launch.makes("places", PlacesType::get(op.getContext()))
      .makes("unkept", UnkeptType::get(op.getContext()));
  ValueRange made = launch.insertBefore(op).getOutputs();
  rewriter.eraseOp(op);
  return {made[1], made[2]};
}

/// What both kernels of gradients read, and delta where that is there already.
void readBackwardTensors(LaunchBuilder &launch, AttentionBackwardOp op,
                         Value delta) {
  launch.reads("q", op.getQ())
      .reads("k", op.getK())
      .reads("v", op.getV())
      .reads("d_o", op.getDO())
      .reads("lse", op.getLse())
      .reads("delta", delta)
      .parameter("has_lists", op.getLists() != nullptr);
}

/// delta first; then gradients of k and v, which keep what the gradient of q
/// needs; then that, of the rows that have a place, and of the others.
void planKeeping(IRRewriter &rewriter, AttentionBackwardOp op,
                 const Places &places) {
  LaunchBuilder rows("attention_bwd_delta", rewriter);
  rows.reads("o", op.getO())
      .reads("d_o", op.getDO())
      .reads("d_lse", op.getDLse())
      .makes("delta", DeltaType::get(op.getContext()));
  Value delta = rows.insertBefore(op).getOutputs()[0];

  LaunchBuilder keys("attention_bwd_kv", rewriter);
  readBackwardTensors(keys, op, delta);
  Value kept = keys.reads("key_lists", op.getKeyLists())
                   .reads("places", places.places)
                   .writes("d_k", op.getDK())
                   .writes("d_v", op.getDV())
                   .makes("kept", KeptType::get(op.getContext()))
                   .insertBefore(op)
                   .getOutputs()[2];

  // Both write to the call's one gradient of q.
  LaunchBuilder("attention_bwd_q_kept", rewriter)
      .reads("k", op.getK())
      .reads("lists", op.getLists())
      .reads("places", places.places)
      .reads("kept", kept)
      .makes("d_q", op.getDQ().getType())
      .insertBefore(op);
  LaunchBuilder rest("attention_bwd_q", rewriter);
  readBackwardTensors(rest, op, delta);
  rest.reads("lists", op.getLists())
      .reads("places", places.places)
      .reads("unkept", places.unkept)
      .parameter("forms_delta", 0)
      .writes("d_q", op.getDQ())
      .replace(op);
}

void planAttentionBackward(IRRewriter &rewriter, AttentionBackwardOp op,
                           const Places &places) {
  if (op.getKeeps())
    return planKeeping(rewriter, op, places);

  // Whoever has d_o of a row at hand forms its delta.
  LaunchBuilder queries("attention_bwd_q", rewriter);
  readBackwardTensors(queries, op, /*delta=*/{});
  Value delta = queries.reads("o", op.getO())
                    .reads("d_lse", op.getDLse())
                    .reads("lists", op.getLists())
                    .parameter("forms_delta", 1)
                    .writes("d_q", op.getDQ())
                    .makes("delta", DeltaType::get(op.getContext()))
                    .insertBefore(op)
                    .getOutputs()[1];

  LaunchBuilder keys("attention_bwd_kv", rewriter);
  readBackwardTensors(keys, op, delta);
  keys.reads("key_lists", op.getKeyLists())
      .writes("d_k", op.getDK())
      .writes("d_v", op.getDV())
      .replace(op);
}

struct PlanLaunches : public impl::SpargePlanLaunchesPassBase<PlanLaunches> {
  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    for (Operation &op : body)
      if (failed(checkOp(&op)))
        return signalPassFailure();
    if (failed(checkReturn(cast<ReturnOp>(body.back()))))
      return signalPassFailure();

    IRRewriter rewriter(&getContext());
    // From the end, so that what only dead ops use is dead when its turn comes.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
    // One attention is left, so one selection at most, of one pool of each.
    if (auto pools = llvm::to_vector(body.getOps<PoolOp>()); !pools.empty())
      planPools(rewriter, pools);
    Places places;
    for (Operation &op : llvm::make_early_inc_range(body)) {
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](ScoreAndSelectOp select) {
            planScoreAndSelect(rewriter, select);
          })
          .Case([&](CustomScoreAndSelectOp select) {
            planCustomScoreAndSelect(rewriter, select);
          })
          .Case([&](AttentionOp attention) {
            planAttention(rewriter, attention);
          })
          .Case([&](InvertBlocksOp invert) {
            if (Places made = planInvertBlocks(rewriter, invert); made.places)
              places = made;
          })
          .Case([&](AttentionBackwardOp backward) {
            planAttentionBackward(rewriter, backward, places);
          });
    }
    numLaunches += llvm::range_size(body.getOps<LaunchOp>());
  }
};

} // namespace
} // namespace mlir::sparge

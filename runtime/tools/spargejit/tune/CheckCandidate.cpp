// SPDX-License-Identifier: Apache-2.0
//
// Candidates against the float64 reference.
#include "runtime/tools/spargejit/tune/CheckCandidate.h"

#include "runtime/api/tune/RandomLists.h"
#include "runtime/api/tune/TrialDevice.h"
#include "runtime/tools/spargejit/CheckReference.h"
#include "runtime/tools/spargejit/SystemProbe.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"
#include "runtime/tools/spargejit/tune/CandidateShapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spargejit::tool {

namespace {

using autotune::ProblemShape;

/// Relative L2 error that no right kernel comes near: the bounds of
/// tests/reference/Comparison for 16-bit types, doubled.
constexpr double kWorstRelativeL2 = 1e-2;

/// Everything that one checked call reads and writes, in one memory.
struct CheckedCall {
  ProblemShape shape;
  Tensor q, k, v;
  Tensor o, lse; ///< with spare rows
  BlockLists lists;

  TensorView part(const Tensor &tensor, std::int64_t heads,
                  std::int64_t length) const {
    TensorView view = tensor.view();
    view.sizes[1] = heads;
    view.sizes[2] = length;
    return view;
  }
  TensorView qView() const { return part(q, shape.qHeads, shape.qLen); }
  TensorView kView() const { return part(k, shape.kvHeads, shape.kvLen); }
  TensorView vView() const { return part(v, shape.kvHeads, shape.kvLen); }

  /// A copy of the tensors on `device`; the lists with them.
  Result<CheckedCall> on(Device device) const {
    CheckedCall there = *this;
    Status status =
        moveTo(device, {&there.q, &there.k, &there.v, &there.o, &there.lse,
                        &there.lists.indices, &there.lists.counts});
    if (!status.ok())
      return status;
    return there;
  }
};

/// Inputs, poisoned outputs and lists of a shape, on the CPU.
Result<CheckedCall> makeCheckedCall(const ProblemShape &shape,
                                    std::uint64_t seed) {
  auto inputs = problem::makeSyntheticInputs(
      {1, shape.qHeads, std::max(shape.qLen, shape.kvLen), shape.headDim},
      shape.dtype, seed, 1);
  if (!inputs.ok())
    return inputs.status();
  auto lists = api::randomLists(shape, seed);
  if (!lists.ok())
    return lists.status();
  auto o = guardedTensor(shape.dtype, shape.qHeads, shape.qLen, shape.headDim);
  auto lse = guardedTensor(DataType::Float32, shape.qHeads, shape.qLen, 0);
  if (!o.ok() || !lse.ok())
    return o.ok() ? lse.status() : o.status();
  return CheckedCall{shape, inputs->q, inputs->k, inputs->v, *o, *lse, *lists};
}

/// The call's results, on the CPU, against the reference: the largest
/// difference of o, or what is wrong.
Result<double> judge(const CheckedCall &call, std::uint64_t seed) {
  if (!guardsAreIntact(call.o) || !guardsAreIntact(call.lse))
    return Status(ErrorCode::Internal, "it wrote beside its output");
  CheckedCall wide = call;
  for (Tensor *tensor : {&wide.q, &wide.k, &wide.v, &wide.o}) {
    auto converted = problem::convertTensor(*tensor, DataType::Float32);
    if (!converted.ok())
      return converted.status();
    *tensor = *std::move(converted);
  }
  ReferenceProblem reference;
  reference.q = wide.qView();
  reference.k = wide.kView();
  reference.v = wide.vView();
  reference.o = insideOf(wide.o);
  reference.lse = insideOf(wide.lse);
  reference.lists = &wide.lists;
  reference.softmaxScale =
      1 / std::sqrt(static_cast<double>(call.shape.headDim));
  reference.causal = call.shape.causal;
  report::Progress silent;
  const CheckReport report = compareWithReference(
      reference,
      chooseRows(reference.q, call.shape.qHeads * call.shape.qLen, seed),
      processorCount(), silent);
  for (const auto &[name, error] :
       {std::pair("o", &report.o), std::pair("lse", &report.lse)})
    if (error->notFiniteAlike > 0 || !(error->relL2 < kWorstRelativeL2))
      return Status(ErrorCode::Internal,
                    fmt::format("{} is wrong: relative L2 error {:.3g} at {} x "
                                "{}",
                                name, error->relL2, call.shape.qLen,
                                call.shape.kvLen));
  return report.o.maxError;
}

Result<double> checkShape(api::Engine &engine, const ProblemShape &shape,
                          Device device, std::uint64_t seed) {
  auto call = makeCheckedCall(shape, seed);
  if (!call.ok())
    return call.status();
  auto there = call->on(device);
  if (!there.ok())
    return there.status();
  AttentionOutputs outputs;
  const TensorView lse = insideOf(there->lse);
  outputs.lse = &lse;
  Status status = engine.attentionInto(
      insideOf(there->o), there->qView(), there->kView(), there->vView(),
      api::trialCall(shape, &there->lists, 0), outputs);
  if (status.ok())
    status = synchronise(device);
  if (!status.ok())
    return status;
  auto back = there->on(Device{});
  return back.ok() ? judge(*back, seed) : back.status();
}

} // namespace

Result<double> checkCandidate(api::Engine &engine, const ProblemShape &problem,
                              Device device, std::uint64_t seed) {
  double worst = 0;
  for (const ProblemShape &shape : smallShapes(problem, 1)) {
    auto error = checkShape(engine, shape, device, ++seed);
    if (!error.ok())
      return error;
    worst = std::max(worst, *error);
  }
  return worst;
}

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// Calls with gradients: a forward pass whose results are kept, and the backward
// pass, which is a plan of its own.
#include "runtime/api/Checks.h"
#include "runtime/api/Engine.h"
#include "runtime/api/Execute.h"
#include "runtime/api/MissingArtifact.h"
#include "runtime/plan/KeptGradients.h"

#include <array>

namespace spargejit::api {

namespace {

CallTensors backwardTensors(const TensorView &q, const TensorView &k,
                            const TensorView &v, const AttentionSaved &saved,
                            const TensorView &dO, const TensorView *dLse) {
  CallTensors tensors;
  tensors.q = &q;
  tensors.k = &k;
  tensors.v = &v;
  tensors.o = &saved.o;
  tensors.lse = &saved.lse;
  tensors.lists = saved.lists;
  tensors.dO = &dO;
  tensors.dLse = dLse;
  return tensors;
}

} // namespace

Result<AttentionForward>
Engine::attentionForward(const TensorView &q, const TensorView &k,
                         const TensorView &v, const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, nullptr, nullptr}, config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  auto o = allocateLike(*call, "o", q, q.dtype);
  if (!o.ok())
    return o.status();
  auto lse = call->device().allocate(
      DataType::Float32, {q.sizes[0], q.sizes[1], q.sizes[2]}, config);
  if (!lse.ok())
    return Status(lse.status()).withContext("lse");
  call->tensors.o = &o->view();
  call->tensors.lse = &lse->view();
  AttentionForward forward{*o, *lse, {}};
  const bool hasLists = plan::attendedLists(**plan) >= 0;
  if (Status status = run(*call, hasLists ? &forward.lists : nullptr); !status)
    return status;
  return forward;
}

Status Engine::attentionForwardInto(const AttentionForward &into,
                                    const TensorView &q, const TensorView &k,
                                    const TensorView &v,
                                    const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, &into.o.view(), &into.lse.view()}, config,
                    MemoryUse::Used);
  if (!call.ok())
    return call.status();
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  if (plan::attendedLists(**plan) < 0 || config.lists)
    return run(*call, nullptr);

  if (Status status = useListMemory(
          *call, {"into.lists", "into.lists.indices", "into.lists.counts"},
          into.lists);
      !status)
    return status;
  BlockLists written;
  return run(*call, &written);
}

Result<Engine::PassPlans> Engine::findPassPlans(Call &call) {
  Checks checks;
  checks.supported(!call.problem.kind.isEightBit(),
                   "config.precision: expected inputs in a backward pass, for "
                   "no kernel of gradients reads eight bits, got {}",
                   precisionName(call.config.precision));
  if (!checks.ok())
    return std::move(checks).status();
  auto forward = findPlan(call);
  if (!forward.ok())
    return forward.status();
  using Backward = plan::MethodLibrary::Backward;
  Backward pass = Backward::Dense;
  if (plan::attendedLists(**forward) >= 0) {
    // The CPU's kernels compute score gradients again: memory is what they
    // lack.
    if (call.problem.device.kind == DeviceKind::Cuda)
      plan::keepGradients(call.problem, call.config.keptBytes);
    pass = call.problem.keptRoom > 0 ? Backward::BlockSparseKept
                                     : Backward::BlockSparse;
  }
  auto text = methods_.findBackward(pass);
  if (!text.ok())
    return text.status();
  auto plan = plans_.get(**text);
  if (!plan.ok())
    return nameCommand(plan.status(), call.config, call.problem.kind,
                       call.device().target(), /*isBackward=*/true);
  return PassPlans{*std::move(forward), *std::move(plan)};
}

Status Engine::runBackward(Call &call) {
  auto plans = findPassPlans(call);
  if (!plans.ok())
    return plans.status();
  const CallTensors &tensors = call.tensors;
  Checks checks;
  checks.also(validateBackward(tensors, call.problem, call.config.method,
                               plan::takesCallerLists(*plans->backward),
                               MemoryUse::Used));
  if (checks.ok() && tensors.lists && call.config.validateLists)
    checks.also(call.device().validateEntries(*tensors.lists, call.problem,
                                              call.config));
  if (!checks.ok())
    return std::move(checks).status();

  const std::array gradients = {std::pair("gradients.dq", tensors.dQ),
                                std::pair("gradients.dk", tensors.dK),
                                std::pair("gradients.dv", tensors.dV)};
  // No pair of a row and a key: nothing depends on anything.
  if (call.problem.batch == 0 || call.problem.qLen == 0 ||
      call.problem.kvLen == 0) {
    for (auto [name, view] : gradients)
      if (checks.ok())
        checks.also(call.device().writeZeros(name, *view, call.config));
    return std::move(checks).status();
  }
  // Before the first launch: which kernel asks for it depends on the tuning.
  for (auto [name, view] : gradients)
    if (checks.ok())
      checks.also(call.device().checkGradient(name, *view));
  if (!checks.ok())
    return std::move(checks).status();
  auto prepared =
      findPrepared(call, plans->backward, PlanScope::Whole, &plans->forward);
  if (!prepared.ok())
    return prepared.status();
  return execute(call.device(), **prepared, call.problem, tensors, call.config,
                 nullptr);
}

Result<AttentionGradients>
Engine::attentionBackward(const TensorView &q, const TensorView &k,
                          const TensorView &v, const AttentionSaved &saved,
                          const TensorView &dO, const AttentionConfig &config,
                          const TensorView *dLse) {
  auto call =
      begin(backwardTensors(q, k, v, saved, dO, dLse), config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  AttentionGradients gradients;
  for (auto [name, like, tensor] : {std::tuple("dq", &q, &gradients.dq),
                                    std::tuple("dk", &k, &gradients.dk),
                                    std::tuple("dv", &v, &gradients.dv)}) {
    auto made = allocateLike(*call, name, *like, q.dtype);
    if (!made.ok())
      return made.status();
    *tensor = *std::move(made);
  }
  call->tensors.dQ = &gradients.dq.view();
  call->tensors.dK = &gradients.dk.view();
  call->tensors.dV = &gradients.dv.view();
  if (Status status = runBackward(*call); !status)
    return status;
  return gradients;
}

Status Engine::attentionBackwardInto(const AttentionGradientViews &gradients,
                                     const TensorView &q, const TensorView &k,
                                     const TensorView &v,
                                     const AttentionSaved &saved,
                                     const TensorView &dO,
                                     const AttentionConfig &config,
                                     const TensorView *dLse) {
  CallTensors tensors = backwardTensors(q, k, v, saved, dO, dLse);
  tensors.dQ = &gradients.dq;
  tensors.dK = &gradients.dk;
  tensors.dV = &gradients.dv;
  auto call = begin(tensors, config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  return runBackward(*call);
}

Status Engine::prepareBackward(const TensorView &q, const TensorView &k,
                               const TensorView &v,
                               const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, nullptr, nullptr}, config, MemoryUse::Ignored);
  if (!call.ok())
    return call.status();
  auto plans = findPassPlans(*call);
  if (!plans.ok())
    return plans.status();
  Status status =
      findPrepared(*call, plans->backward, PlanScope::Whole, &plans->forward)
          .status();
  if (!status.ok())
    return status;
  return reserve(call->device(), *plans->backward, call->problem, call->tensors,
                 config);
}

Result<std::int64_t> Engine::workspaceBytes(const TensorView &q,
                                            const TensorView &k,
                                            const TensorView &v,
                                            const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, nullptr, nullptr}, config, MemoryUse::Ignored);
  if (!call.ok())
    return call.status();
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  if (Status status = check(*call, **plan, MemoryUse::Ignored); !status)
    return status;
  return api::workspaceBytes(**plan, call->problem, call->tensors, config);
}

Result<std::int64_t>
Engine::backwardWorkspaceBytes(const TensorView &q, const TensorView &k,
                               const TensorView &v,
                               const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, nullptr, nullptr}, config, MemoryUse::Ignored);
  if (!call.ok())
    return call.status();
  auto plans = findPassPlans(*call);
  if (!plans.ok())
    return plans.status();
  return api::workspaceBytes(*plans->backward, call->problem, call->tensors,
                             config);
}

} // namespace spargejit::api

namespace spargejit {

using api::Engine;
using api::withEngine;

Result<AttentionForward> attentionForward(const TensorView &q,
                                          const TensorView &k,
                                          const TensorView &v,
                                          const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.attentionForward(q, k, v, config); });
}

Status attentionForwardInto(const AttentionForward &into, const TensorView &q,
                            const TensorView &k, const TensorView &v,
                            const AttentionConfig &config) {
  return withEngine([&](Engine &engine) {
    return engine.attentionForwardInto(into, q, k, v, config);
  });
}

Result<AttentionGradients>
attentionBackward(const TensorView &q, const TensorView &k, const TensorView &v,
                  const AttentionSaved &saved, const TensorView &dO,
                  const AttentionConfig &config, const TensorView *dLse) {
  return withEngine([&](Engine &engine) {
    return engine.attentionBackward(q, k, v, saved, dO, config, dLse);
  });
}

Status attentionBackwardInto(const AttentionGradientViews &gradients,
                             const TensorView &q, const TensorView &k,
                             const TensorView &v, const AttentionSaved &saved,
                             const TensorView &dO,
                             const AttentionConfig &config,
                             const TensorView *dLse) {
  return withEngine([&](Engine &engine) {
    return engine.attentionBackwardInto(gradients, q, k, v, saved, dO, config,
                                        dLse);
  });
}

Status prepareBackward(const TensorView &q, const TensorView &k,
                       const TensorView &v, const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.prepareBackward(q, k, v, config); });
}

Result<std::int64_t> workspaceBytes(const TensorView &q, const TensorView &k,
                                    const TensorView &v,
                                    const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.workspaceBytes(q, k, v, config); });
}

Result<std::int64_t> backwardWorkspaceBytes(const TensorView &q,
                                            const TensorView &k,
                                            const TensorView &v,
                                            const AttentionConfig &config) {
  return withEngine([&](Engine &engine) {
    return engine.backwardWorkspaceBytes(q, k, v, config);
  });
}

} // namespace spargejit

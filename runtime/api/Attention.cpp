// SPDX-License-Identifier: Apache-2.0
//
// Step 2 of 9 in the life of a call (runtime/README.md): what is checked, what
// becomes an AttentionProblem, and what runs.
#include "runtime/api/BlockListOps.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Engine.h"
#include "runtime/api/Execute.h"

#include <algorithm>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

bool hasNoRows(const AttentionProblem &problem) {
  return problem.batch == 0 || problem.qLen == 0;
}

Status validateLse(const MethodPlan &plan, const CallTensors &tensors,
                   const AttentionConfig &config) {
  bool given = std::any_of(plan.values.begin(), plan.values.end(),
                           [](const PlanValue &value) {
                             return value.kind == PlanValue::Kind::Lse;
                           });
  Checks checks;
  checks.supported(given || !tensors.lse,
                   "outputs.lse: expected none, since method \"{}\" does not "
                   "compute it, got a tensor",
                   config.method);
  return std::move(checks).status();
}

} // namespace

Engine::Engine(jit::CodeGenerator &generator,
               const std::vector<kernels_ir::EmbeddedText> &texts,
               const Environment &settings)
    : methods_(texts),
      plans_([&generator](const std::string &text, const std::string &name) {
        return generator.planMethod(text, name);
      }),
      jit_(generator, texts, settings), prepared_(jit_) {}

Result<Engine::Plan> Engine::findPlan(const AttentionConfig &config) {
  auto method = methods_.find(config.method);
  if (!method.ok())
    return method.status();
  return plans_.get(**method);
}

/// Lists to hand out: memory for those that the call makes, the caller's own,
/// or all blocks for a method without lists.
Result<BlockLists> Engine::listsFor(const MethodPlan &plan,
                                    const AttentionProblem &problem,
                                    const AttentionConfig &config) {
  if (config.lists)
    return *config.lists;
  auto lists = allocateLists(problem);
  if (!lists.ok())
    return lists;
  // Without keys the lists have no slots, and the counts are all there is.
  if (plan::attendedLists(plan) < 0 || problem.kvLen == 0)
    listAllBlocks(lists->indices.view(), lists->counts.view(), config.threads);
  return lists;
}

Status Engine::run(const CallTensors &tensors, const AttentionProblem &problem,
                   const AttentionConfig &config, BlockLists *lists) {
  auto plan = findPlan(config);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.also(validateCallerLists(**plan, problem, config, MemoryUse::Used));
  if (checks.ok())
    checks.also(validateOutputs(tensors, problem, config, MemoryUse::Used));
  if (checks.ok())
    checks.also(validateLse(**plan, tensors, config));
  if (checks.ok() && config.lists && config.validateLists)
    checks.also(validateEntries(*config.lists, problem, config.threads));
  if (!checks.ok())
    return std::move(checks).status();

  std::optional<BlockLists> handedOut;
  if (lists) {
    auto made = listsFor(**plan, problem, config);
    if (!made.ok())
      return made.status();
    handedOut = *std::move(made);
  }
  if (hasNoRows(problem) || problem.kvLen == 0) {
    writeEmptyRows(tensors);
  } else {
    auto prepared = prepared_.get(*plan, problem.kind, PlanScope::Whole);
    if (!prepared.ok())
      return prepared.status();
    Status status = execute(**prepared, problem, tensors, config,
                            handedOut ? &*handedOut : nullptr);
    if (!status.ok())
      return status;
  }
  if (lists)
    *lists = *std::move(handedOut);
  return Status();
}

Result<Tensor> Engine::attention(const TensorView &q, const TensorView &k,
                                 const TensorView &v,
                                 const AttentionConfig &config,
                                 const AttentionOutputs &outputs) {
  CallTensors tensors{&q, &k, &v, nullptr, outputs.lse};
  auto problem = validateInputs(tensors, config, MemoryUse::Used);
  if (!problem.ok())
    return problem.status();
  auto o = Tensor::allocate(q.dtype,
                            {q.sizes[0], q.sizes[1], q.sizes[2], q.sizes[3]});
  if (!o.ok())
    return Status(o.status()).withContext("o");
  tensors.o = &o->view();
  Status status = run(tensors, *problem, config, outputs.lists);
  if (!status.ok())
    return status;
  return o;
}

Status Engine::attentionInto(const TensorView &o, const TensorView &q,
                             const TensorView &k, const TensorView &v,
                             const AttentionConfig &config,
                             const AttentionOutputs &outputs) {
  CallTensors tensors{&q, &k, &v, &o, outputs.lse};
  auto problem = validateInputs(tensors, config, MemoryUse::Used);
  if (!problem.ok())
    return problem.status();
  return run(tensors, *problem, config, outputs.lists);
}

Result<BlockLists> Engine::selectBlocks(const TensorView &q,
                                        const TensorView &k,
                                        const AttentionConfig &config) {
  CallTensors tensors{&q, &k};
  auto problem = validateInputs(tensors, config, MemoryUse::Used);
  if (!problem.ok())
    return problem.status();
  auto plan = findPlan(config);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.that((*plan)->selects(),
              "config.method: expected a method that selects blocks, got "
              "\"{}\"",
              config.method);
  if (checks.ok())
    checks.also(validateCallerLists(**plan, *problem, config, MemoryUse::Used));
  if (!checks.ok())
    return std::move(checks).status();

  auto lists = listsFor(**plan, *problem, config);
  if (!lists.ok() || hasNoRows(*problem) || problem->kvLen == 0)
    return lists;
  auto prepared = prepared_.get(*plan, problem->kind, PlanScope::SelectionOnly);
  if (!prepared.ok())
    return prepared.status();
  Status status = execute(**prepared, *problem, tensors, config, &*lists);
  if (!status.ok())
    return status;
  return lists;
}

Status Engine::prepare(const TensorView &q, const TensorView &k,
                       const TensorView &v, const AttentionConfig &config,
                       const AttentionOutputs &outputs) {
  CallTensors tensors{&q, &k, &v, nullptr, outputs.lse};
  auto problem = validateInputs(tensors, config, MemoryUse::Ignored);
  if (!problem.ok())
    return problem.status();
  auto plan = findPlan(config);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.also(
      validateCallerLists(**plan, *problem, config, MemoryUse::Ignored));
  if (checks.ok())
    checks.also(validateOutputs(tensors, *problem, config, MemoryUse::Ignored));
  if (checks.ok())
    checks.also(validateLse(**plan, tensors, config));
  if (checks.ok())
    checks.also(prepared_.get(*plan, problem->kind, PlanScope::Whole).status());
  return std::move(checks).status();
}

Result<Engine *> Engine::process() {
  if (!environment().ok())
    return environment().status();
  // Never destroyed: other threads may still be in a call while the process
  // ends.
  static Engine *const kEngine = new Engine(
      jit::builtInCodeGenerator(), kernels_ir::embeddedTexts(), *environment());
  return kEngine;
}

} // namespace spargejit::api

namespace spargejit {

using api::Engine;

Result<Tensor> attention(const TensorView &q, const TensorView &k,
                         const TensorView &v, const AttentionConfig &config,
                         const AttentionOutputs &outputs) {
  auto engine = Engine::process();
  if (!engine.ok())
    return engine.status();
  return (*engine)->attention(q, k, v, config, outputs);
}

Status attentionInto(const TensorView &o, const TensorView &q,
                     const TensorView &k, const TensorView &v,
                     const AttentionConfig &config,
                     const AttentionOutputs &outputs) {
  auto engine = Engine::process();
  if (!engine.ok())
    return engine.status();
  return (*engine)->attentionInto(o, q, k, v, config, outputs);
}

Result<BlockLists> selectBlocks(const TensorView &q, const TensorView &k,
                                const AttentionConfig &config) {
  auto engine = Engine::process();
  if (!engine.ok())
    return engine.status();
  return (*engine)->selectBlocks(q, k, config);
}

Status prepare(const TensorView &q, const TensorView &k, const TensorView &v,
               const AttentionConfig &config, const AttentionOutputs &outputs) {
  auto engine = Engine::process();
  if (!engine.ok())
    return engine.status();
  return (*engine)->prepare(q, k, v, config, outputs);
}

} // namespace spargejit

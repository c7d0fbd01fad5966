// SPDX-License-Identifier: Apache-2.0
//
// Step 2 of 9 in the life of a call (runtime/README.md): what is checked, what
// becomes an AttentionProblem, and what runs.
#include "runtime/api/BlockListOps.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Engine.h"
#include "runtime/api/Execute.h"
#include "runtime/api/MissingArtifact.h"
#include "runtime/api/ViewChecks.h"
#include "runtime/plan/TunedProblem.h"

#include <algorithm>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

bool hasNoRows(const AttentionProblem &problem) {
  return problem.batch == 0 || problem.qLen == 0;
}

const TensorView *orNull(const std::optional<TensorView> &view) {
  return view ? &*view : nullptr;
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

Status validateSettings(const MethodPlan &plan, const AttentionConfig &config) {
  Checks checks;
  checks.that(!config.topKByHead || plan::readsSetting(plan, "top_k"),
              "config.topKByHead: expected none, since method \"{}\" has no "
              "top_k, got a tensor",
              config.method);
  checks.that(!config.topPByHead || plan::readsSetting(plan, "top_p"),
              "config.topPByHead: expected none, since method \"{}\" has no "
              "top_p, got a tensor",
              config.method);
  const TokenRange &keys = config.denseKeys, &rows = config.denseRows;
  checks.that(
      (keys.begin == keys.end && rows.begin == rows.end) || plan.selects(),
      "config.{}: expected no tokens, since method \"{}\" selects "
      "nothing, got a range",
      keys.begin == keys.end ? "denseRows" : "denseKeys", config.method);
  return std::move(checks).status();
}

Status validateCustomSource(const MethodPlan &plan,
                            const AttentionConfig &config) {
  const bool isTaken = plan.takesCustomSource();
  Checks checks;
  checks.that(!isTaken || !config.customSource.empty(),
              "config.customSource: expected CUDA C++ for method \"{}\", got "
              "nothing",
              config.method);
  checks.that(isTaken || config.customSource.empty(),
              "config.customSource: expected nothing, since method \"{}\" has "
              "no stage that takes it, got a text",
              config.method);
  return std::move(checks).status();
}

} // namespace

Engine::Engine(jit::CodeGenerator &generator,
               const std::vector<kernels_ir::EmbeddedText> &texts,
               const Environment &settings)
    : generator_(generator), texts_(texts), settings_(settings),
      methods_(texts),
      plans_(
          [&generator](const std::string &text, const std::string &name) {
            return generator.planMethod(text, name);
          },
          cache::ArtifactStore(settings), generator.identity()),
      devices_(generator, texts, settings) {}

Result<Engine::Call> Engine::begin(const CallTensors &tensors,
                                   const AttentionConfig &config,
                                   MemoryUse use) {
  auto problem = validateInputs(tensors, config, use);
  if (!problem.ok())
    return problem.status();
  return open(tensors, config, *problem);
}

Result<Engine::Call> Engine::open(const CallTensors &tensors,
                                  const AttentionConfig &config,
                                  const AttentionProblem &problem) {
  auto entry = devices_.find(problem.device);
  if (!entry.ok())
    return Status(entry.status()).withContext("q.device");
  if (Status status = (*entry)->device->checkSupport(problem, config); !status)
    return status;
  Call call{tensors, config, problem, **entry};
  if (problem.kind.isEightBit())
    call.form = plan::PlanForm::Rounding;
  if (!tensors.dO) // a backward pass has those of its forward pass
    call.tensors.lists = config.lists;
  return call;
}

Result<Engine::Plan> Engine::findPlan(const Call &call) {
  auto method = methods_.find(call.config.method);
  if (!method.ok())
    return method.status();
  auto plan = plans_.get(**method, call.form);
  if (!plan.ok())
    return nameCommand(plan.status(), call.config, call.problem.kind,
                       call.device().target());
  Checks checks;
  checks.that(
      !(*plan)->isBackward(),
      "config.method: expected a method of q, k and v, got the backward "
      "pass \"{}\"",
      call.config.method);
  if (checks.ok())
    checks.also(validateCustomSource(**plan, call.config));
  if (checks.ok())
    checks.also(validateSettings(**plan, call.config));
  if (!checks.ok())
    return std::move(checks).status();
  return plan;
}

Result<std::shared_ptr<const PreparedPlan>>
Engine::findPrepared(const Call &call, const Plan &plan, PlanScope scope,
                     const Plan *forward) {
  if (call.config.tune == TuneMode::OnFirstUse && scope == PlanScope::Whole &&
      !plan->isBackward())
    tuneOnFirstUse(call, plan);
  const autotune::TuningTable::Configs *tuned =
      call.entry.tuning->configsFor(plan::tunedProblem(
          forward ? **forward : *plan, call.problem, call.config));
  auto prepared = call.entry.prepared.get(plan, call.problem.kind, scope,
                                          call.config, tuned);
  Status status = prepared.status();
  if (status.ok() && call.config.blockMask)
    status = call.device().prepareListsFromMask(call.config);
  if (!status.ok())
    return nameCommand(status, call.config, call.problem.kind,
                       call.device().target(), plan->isBackward());
  return prepared;
}

/// What is checked about a call with a method.
Status Engine::check(const Call &call, const MethodPlan &plan,
                     MemoryUse use) const {
  Checks checks;
  checks.also(validateCallerLists(plan, call.problem, call.config, use));
  if (checks.ok())
    checks.also(validateOutputs(call.tensors, call.problem, call.config, use));
  if (checks.ok())
    checks.also(validateLse(plan, call.tensors, call.config));
  return std::move(checks).status();
}

/// Lists to hand out: memory for those that the call makes, the caller's own,
/// or all blocks for a method without lists.
Result<BlockLists> Engine::listsFor(const Call &call, const MethodPlan &plan) {
  if (call.config.lists)
    return *call.config.lists;
  if (call.listMemory)
    return *call.listMemory;
  auto lists =
      allocateLists(call.problem, [&](DataType dtype,
                                      const std::vector<std::int64_t> &sizes) {
        return call.device().allocate(dtype, sizes, call.config);
      });
  if (!lists.ok())
    return lists;
  // Without keys the lists have no slots, and the counts are all there is.
  if (plan::attendedLists(plan) < 0 || call.problem.kvLen == 0)
    if (Status status = call.device().listAllBlocks(
            lists->indices.view(), lists->counts.view(), call.config);
        !status)
      return status;
  return lists;
}

Status Engine::run(const Call &call, BlockLists *lists) {
  auto plan = findPlan(call);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.also(check(call, **plan, MemoryUse::Used));
  if (checks.ok() && call.config.lists && call.config.validateLists)
    checks.also(call.device().validateEntries(*call.config.lists, call.problem,
                                              call.config));
  if (!checks.ok())
    return std::move(checks).status();

  std::optional<BlockLists> handedOut;
  if (lists) {
    auto made = listsFor(call, **plan);
    if (!made.ok())
      return made.status();
    handedOut = *std::move(made);
  }
  if (hasNoRows(call.problem) || call.problem.kvLen == 0) {
    checks.also(call.device().writeEmptyRows(call.tensors, call.config));
  } else {
    auto prepared = findPrepared(call, *plan, PlanScope::Whole);
    if (!prepared.ok())
      return prepared.status();
    checks.also(execute(call.device(), **prepared, call.problem, call.tensors,
                        call.config, handedOut ? &*handedOut : nullptr));
  }
  if (lists && checks.ok())
    *lists = *std::move(handedOut);
  return std::move(checks).status();
}

Result<Tensor> Engine::allocateLike(const Call &call, const char *name,
                                    const TensorView &like, DataType dtype) {
  const auto sizes = sizesOf(like);
  auto made =
      call.device().allocate(dtype, {sizes.begin(), sizes.end()}, call.config);
  if (!made.ok())
    return Status(made.status()).withContext(name);
  return made;
}

Result<Tensor> Engine::runIntoNew(Call &call, DataType dtype,
                                  BlockLists *lists) {
  auto o = allocateLike(call, "o", *call.tensors.q, dtype);
  if (!o.ok())
    return o;
  call.tensors.o = &o->view();
  if (Status status = run(call, lists); !status)
    return status;
  return o;
}

Result<Tensor> Engine::attention(const TensorView &q, const TensorView &k,
                                 const TensorView &v,
                                 const AttentionConfig &config,
                                 const AttentionOutputs &outputs) {
  auto call =
      begin({&q, &k, &v, nullptr, outputs.lse}, config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  return runIntoNew(*call, q.dtype, outputs.lists);
}

Status Engine::attentionInto(const TensorView &o, const TensorView &q,
                             const TensorView &k, const TensorView &v,
                             const AttentionConfig &config,
                             const AttentionOutputs &outputs) {
  auto call = begin({&q, &k, &v, &o, outputs.lse}, config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  return run(*call, outputs.lists);
}

Result<BlockLists> Engine::selectFor(const Call &call) {
  const AttentionConfig &config = call.config;
  auto plan = findPlan(call);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.that((*plan)->selects(),
              "config.method: expected a method that selects blocks, got "
              "\"{}\"",
              config.method);
  if (checks.ok())
    checks.also(
        validateCallerLists(**plan, call.problem, config, MemoryUse::Used));
  if (!checks.ok())
    return std::move(checks).status();

  auto lists = listsFor(call, **plan);
  if (!lists.ok() || hasNoRows(call.problem) || call.problem.kvLen == 0)
    return lists;
  auto prepared = findPrepared(call, *plan, PlanScope::SelectionOnly);
  if (!prepared.ok())
    return prepared.status();
  Status status = execute(call.device(), **prepared, call.problem, call.tensors,
                          config, &*lists);
  if (!status.ok())
    return status;
  return lists;
}

Result<BlockLists> Engine::selectBlocks(const TensorView &q,
                                        const TensorView &k,
                                        const AttentionConfig &config) {
  auto call =
      begin({&q, &k, nullptr, nullptr, nullptr}, config, MemoryUse::Used);
  return call.ok() ? selectFor(*call) : Result<BlockLists>(call.status());
}

Status Engine::selectBlocksInto(const BlockLists &into, const TensorView &q,
                                const TensorView &k,
                                const AttentionConfig &config) {
  auto call =
      begin({&q, &k, nullptr, nullptr, nullptr}, config, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  if (Status status =
          useListMemory(*call, {"into", "into.indices", "into.counts"}, into);
      !status)
    return status;
  return selectFor(*call).status();
}

Status Engine::useListMemory(Call &call, const ListNames &names,
                             const BlockLists &lists) const {
  const TensorView &indices = lists.indices.view();
  const TensorView &counts = lists.counts.view();
  Checks checks;
  checks.also(validateListShapes(names, call.problem, lists, MemoryUse::Used));
  if (checks.ok())
    checks.that(indices.sizes[3] == call.problem.kvBlocks(),
                "{}.sizes[3]: expected {} key blocks, got {}", names.indices,
                call.problem.kvBlocks(), indices.sizes[3]);
  if (checks.ok())
    checkApart(checks, names.indices, indices, names.counts, &counts);
  for (auto [view, viewName] :
       {std::pair(&indices, names.indices), std::pair(&counts, names.counts)})
    for (auto [name, input] :
         {std::pair("q", call.tensors.q), std::pair("k", call.tensors.k),
          std::pair("v", call.tensors.v), std::pair("o", call.tensors.o),
          std::pair("lse", call.tensors.lse),
          std::pair("config.topKByHead", orNull(call.config.topKByHead)),
          std::pair("config.topPByHead", orNull(call.config.topPByHead)),
          std::pair("config.blockMask", orNull(call.config.blockMask))})
      if (checks.ok())
        checkApart(checks, viewName, *view, name, input);
  call.listMemory = &lists;
  return std::move(checks).status();
}

Status Engine::prepare(const TensorView &q, const TensorView &k,
                       const TensorView &v, const AttentionConfig &config,
                       const AttentionOutputs &outputs) {
  auto call =
      begin({&q, &k, &v, nullptr, outputs.lse}, config, MemoryUse::Ignored);
  if (!call.ok())
    return call.status();
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.also(check(*call, **plan, MemoryUse::Ignored));
  if (checks.ok())
    checks.also(findPrepared(*call, *plan, PlanScope::Whole).status());
  if (checks.ok())
    checks.also(
        reserve(call->device(), **plan, call->problem, call->tensors, config));
  return std::move(checks).status();
}

Result<bool> Engine::methodHasLists(const std::string &method) {
  auto text = methods_.find(method);
  if (!text.ok())
    return text.status();
  auto plan = plans_.get(**text);
  if (!plan.ok())
    return plan.status();
  return plan::attendedLists(**plan) >= 0;
}

Result<Tensor> Engine::allocate(DataType dtype,
                                const std::vector<std::int64_t> &sizes,
                                Device device) {
  auto entry = devices_.find(device);
  if (!entry.ok())
    return Status(entry.status()).withContext("device");
  return (*entry)->device->allocate(dtype, sizes, AttentionConfig());
}

Status Engine::read(const TensorView &view, void *to) {
  auto entry = devices_.find(view.device);
  if (!entry.ok())
    return entry.status();
  return (*entry)->device->read(
      view.data, to,
      view.elementCount() *
          static_cast<std::int64_t>(dataTypeSize(view.dtype)));
}

Result<Tensor> Engine::copy(const TensorView &dense, Device device) {
  const std::vector<std::int64_t> sizes(dense.sizes.begin(),
                                        dense.sizes.begin() + dense.rank);
  Result<Tensor> result = allocate(dense.dtype, sizes, device);
  if (!result.ok())
    return result;
  const TensorView &to = result->view();
  if (device.kind == DeviceKind::Cpu) {
    Status status = read(dense, to.data);
    return status.ok() ? result : status;
  }
  // Between devices by way of the host.
  Tensor staging;
  const void *from = dense.data;
  if (dense.device.kind != DeviceKind::Cpu) {
    auto copied = copy(dense, Device{});
    if (!copied.ok())
      return copied;
    staging = *std::move(copied);
    from = staging.view().data;
  }
  auto entry = devices_.find(device);
  if (!entry.ok())
    return entry.status();
  Status status = (*entry)->device->write(
      from, to.data,
      to.elementCount() * static_cast<std::int64_t>(dataTypeSize(to.dtype)));
  return status.ok() ? result : status;
}

Status Engine::synchronise(Device device) {
  auto entry = devices_.find(device);
  return entry.ok() ? (*entry)->device->synchronise()
                    : Status(entry.status()).withContext("device");
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

Status readOnProcess(const TensorView &view, void *to) {
  return withEngine([&](Engine &engine) { return engine.read(view, to); });
}

} // namespace spargejit::api

namespace spargejit {

using api::Engine;
using api::withEngine;

Result<Tensor> Tensor::allocate(DataType dtype,
                                const std::vector<std::int64_t> &sizes,
                                Device device) {
  // Memory of the CPU needs no engine, which may not be had.
  if (device == Device{})
    return allocate(dtype, sizes);
  return withEngine(
      [&](Engine &engine) { return engine.allocate(dtype, sizes, device); });
}

Result<Tensor> Tensor::copyTo(Device device) const {
  if (empty())
    return Status(ErrorCode::InvalidArgument,
                  "copyTo: expected a tensor with memory, got an empty one");
  return withEngine([&](Engine &engine) { return engine.copy(view_, device); });
}

Status synchronise(Device device) {
  return withEngine([&](Engine &engine) { return engine.synchronise(device); });
}

Result<Tensor> attention(const TensorView &q, const TensorView &k,
                         const TensorView &v, const AttentionConfig &config,
                         const AttentionOutputs &outputs) {
  return withEngine([&](Engine &engine) {
    return engine.attention(q, k, v, config, outputs);
  });
}

Status attentionInto(const TensorView &o, const TensorView &q,
                     const TensorView &k, const TensorView &v,
                     const AttentionConfig &config,
                     const AttentionOutputs &outputs) {
  return withEngine([&](Engine &engine) {
    return engine.attentionInto(o, q, k, v, config, outputs);
  });
}

Result<BlockLists> selectBlocks(const TensorView &q, const TensorView &k,
                                const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.selectBlocks(q, k, config); });
}

Status selectBlocksInto(const BlockLists &into, const TensorView &q,
                        const TensorView &k, const AttentionConfig &config) {
  return withEngine([&](Engine &engine) {
    return engine.selectBlocksInto(into, q, k, config);
  });
}

Result<TuningInfo> tuningOf(const TensorView &q, const TensorView &k,
                            const TensorView &v,
                            const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.tuningOf(q, k, v, config); });
}

Status prepare(const TensorView &q, const TensorView &k, const TensorView &v,
               const AttentionConfig &config, const AttentionOutputs &outputs) {
  return withEngine(
      [&](Engine &engine) { return engine.prepare(q, k, v, config, outputs); });
}

} // namespace spargejit

// SPDX-License-Identifier: Apache-2.0
//
// Engine: what the public functions (spargejit/attention.h) do, with the caches
// that a process keeps between calls.
#pragma once

#include "runtime/api/Validate.h"
#include "runtime/api/device/DeviceTable.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/PlanCache.h"
#include "runtime/plan/QuantisedPlan.h"
#include "spargejit/attention.h"
#include "spargejit/distillation.h"
#include "spargejit/quantised.h"
#include "spargejit/training.h"

#include <exception>
#include <new>

namespace spargejit::api {

/// Thread-safe. The functions mean what the public ones of the same name mean.
class Engine {
public:
  /// `generator` and `texts` must outlive the engine.
  Engine(jit::CodeGenerator &generator,
         const std::vector<kernels_ir::EmbeddedText> &texts,
         const Environment &settings);

  Result<Tensor> attention(const TensorView &q, const TensorView &k,
                           const TensorView &v, const AttentionConfig &config,
                           const AttentionOutputs &outputs);
  Status attentionInto(const TensorView &o, const TensorView &q,
                       const TensorView &k, const TensorView &v,
                       const AttentionConfig &config,
                       const AttentionOutputs &outputs);
  Result<BlockLists> selectBlocks(const TensorView &q, const TensorView &k,
                                  const AttentionConfig &config);
  Status selectBlocksInto(const BlockLists &into, const TensorView &q,
                          const TensorView &k, const AttentionConfig &config);
  Status prepare(const TensorView &q, const TensorView &k, const TensorView &v,
                 const AttentionConfig &config,
                 const AttentionOutputs &outputs);

  /// What spargejit::tuningOf means.
  Result<TuningInfo> tuningOf(const TensorView &q, const TensorView &k,
                              const TensorView &v,
                              const AttentionConfig &config);

  Result<AttentionForward> attentionForward(const TensorView &q,
                                            const TensorView &k,
                                            const TensorView &v,
                                            const AttentionConfig &config);
  Status attentionForwardInto(const AttentionForward &into, const TensorView &q,
                              const TensorView &k, const TensorView &v,
                              const AttentionConfig &config);
  Result<AttentionGradients>
  attentionBackward(const TensorView &q, const TensorView &k,
                    const TensorView &v, const AttentionSaved &saved,
                    const TensorView &dO, const AttentionConfig &config,
                    const TensorView *dLse);
  Status attentionBackwardInto(const AttentionGradientViews &gradients,
                               const TensorView &q, const TensorView &k,
                               const TensorView &v, const AttentionSaved &saved,
                               const TensorView &dO,
                               const AttentionConfig &config,
                               const TensorView *dLse);
  Status prepareBackward(const TensorView &q, const TensorView &k,
                         const TensorView &v, const AttentionConfig &config);
  Result<std::int64_t> workspaceBytes(const TensorView &q, const TensorView &k,
                                      const TensorView &v,
                                      const AttentionConfig &config);
  Result<std::int64_t> backwardWorkspaceBytes(const TensorView &q,
                                              const TensorView &k,
                                              const TensorView &v,
                                              const AttentionConfig &config);

  Result<QuantisedTensors> quantise(const TensorView &q, const TensorView &k,
                                    const TensorView &v,
                                    const AttentionConfig &config);
  Status quantiseInto(const QuantisedTensors &into, const TensorView &q,
                      const TensorView &k, const TensorView &v,
                      const AttentionConfig &config);
  Result<Tensor> attentionQuantised(const QuantisedTensors &tensors,
                                    const AttentionConfig &config,
                                    const AttentionOutputs &outputs);
  Status attentionQuantisedInto(const TensorView &o,
                                const QuantisedTensors &tensors,
                                const AttentionConfig &config,
                                const AttentionOutputs &outputs);

  Status distillationLoss(const TensorView &loss, const TensorView *gradient,
                          const TensorView &student, const TensorView &teacher,
                          const DistillationConfig &config);

  /// What measurements of a kernel on a device hold for.
  Result<autotune::TuningEnvironment>
  tuningEnvironment(Device device, const std::string &kernel);

  /// What Tensor::allocate means on any device.
  Result<Tensor> allocate(DataType dtype,
                          const std::vector<std::int64_t> &sizes,
                          Device device);
  /// Copies a dense tensor to the host when all work on its device is done.
  Status read(const TensorView &view, void *to);
  /// What Tensor::copyTo means.
  Result<Tensor> copy(const TensorView &dense, Device device);
  /// What spargejit::synchronise means.
  Status synchronise(Device device);

  /// Whether calls with this method attend by block lists; false for one that
  /// reads every key.
  Result<bool> methodHasLists(const std::string &method);

  /// The built-in method names.
  const std::vector<std::string> &methodNames() const {
    return methods_.names();
  }

  /// The engine of this process, on the built-in compiler and texts; fails when
  /// an environment variable has a value that it cannot have.
  static Result<Engine *> process();

private:
  using Plan = std::shared_ptr<const MethodPlan>;

  /// A call's arguments, checked as far as they need no method.
  struct Call {
    CallTensors tensors;
    const AttentionConfig &config;
    plan::AttentionProblem problem;
    DeviceTable::Entry &entry;
    /// What the attention reads.
    plan::PlanForm form = plan::PlanForm::AsWritten;
    /// Where lists that are handed out go; null for new memory.
    const BlockLists *listMemory = nullptr;
    CallDevice &device() const { return *entry.device; }
  };

  Result<Call> begin(const CallTensors &tensors, const AttentionConfig &config,
                     MemoryUse use);
  /// A call whose problem is checked.
  Result<Call> open(const CallTensors &tensors, const AttentionConfig &config,
                    const plan::AttentionProblem &problem);
  /// A call with tensors of eight bits, as far as it is checked without o.
  Result<Call> beginQuantised(const QuantisedTensors &tensors,
                              const AttentionConfig &config,
                              const AttentionOutputs &outputs);
  /// Rounds the tensors of a call.
  Status roundInto(Call &call, const QuantisedTensors &into);
  Result<Plan> findPlan(const Call &call);
  Result<std::shared_ptr<const PreparedPlan>>
  findPrepared(const Call &call, const Plan &plan, PlanScope scope,
               const Plan *forward = nullptr);
  Status check(const Call &call, const MethodPlan &plan, MemoryUse use) const;
  Status run(const Call &call, BlockLists *lists);
  /// Memory on the call's device for a tensor of these sizes.
  static Result<Tensor> allocateLike(const Call &call, const char *name,
                                     const TensorView &like, DataType dtype);
  /// Runs a call whose o, of q's sizes, is memory of its own.
  Result<Tensor> runIntoNew(Call &call, DataType dtype, BlockLists *lists);
  Result<BlockLists> listsFor(const Call &call, const MethodPlan &plan);
  Result<BlockLists> selectFor(const Call &call);
  /// Has `call` hand its lists out in memory that is there already.
  Status useListMemory(Call &call, const ListNames &names,
                       const BlockLists &lists) const;
  /// A call's method and its backward pass.
  struct PassPlans {
    Plan forward, backward;
  };
  /// Says in the call's problem as well what it keeps.
  Result<PassPlans> findPassPlans(Call &call);
  Status runBackward(Call &call);

  /// What AttentionConfig::tune means: a search where no record is exact, once.
  void tuneOnFirstUse(const Call &call, const Plan &plan);

  jit::CodeGenerator &generator_;
  const std::vector<kernels_ir::EmbeddedText> &texts_;
  const Environment settings_;
  plan::MethodLibrary methods_;
  plan::PlanCache plans_;
  DeviceTable devices_;
  /// By device, kernel and problem; a search that failed is not made again.
  SingleFlight<std::string, autotune::TuningRecord> searches_;
};

/// What `use` makes of the process's engine, or why there is none. What is
/// thrown on the way becomes a failure as well, since callers test a Result.
template <typename Use>
auto withEngine(Use use) -> decltype(use(std::declval<Engine &>())) {
  try {
    auto engine = Engine::process();
    if (!engine.ok())
      return engine.status();
    return use(**engine);
  } catch (const std::bad_alloc &) {
    return Status(ErrorCode::OutOfResources, "no memory");
  } catch (const std::exception &error) {
    return Status(ErrorCode::Internal, error.what());
  }
}

/// Engine::read() of the process's engine.
Status readOnProcess(const TensorView &view, void *to);

} // namespace spargejit::api

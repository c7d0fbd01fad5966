// SPDX-License-Identifier: Apache-2.0
//
// Engine: what the public functions (spargejit/attention.h) do, with the caches
// that a process keeps between calls.
#pragma once

#include "runtime/api/PreparedPlans.h"
#include "runtime/api/Validate.h"
#include "runtime/jit/HostJit.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/PlanCache.h"
#include "spargejit/attention.h"

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
  Status prepare(const TensorView &q, const TensorView &k, const TensorView &v,
                 const AttentionConfig &config,
                 const AttentionOutputs &outputs);

  /// The built-in method names.
  const std::vector<std::string> &methodNames() const {
    return methods_.names();
  }

  /// The engine of this process, on the built-in compiler and texts; fails when
  /// an environment variable has a value that it cannot have.
  static Result<Engine *> process();

private:
  using Plan = std::shared_ptr<const MethodPlan>;

  Result<Plan> findPlan(const AttentionConfig &config);
  Status run(const CallTensors &tensors, const plan::AttentionProblem &problem,
             const AttentionConfig &config, BlockLists *lists);
  Result<BlockLists> listsFor(const MethodPlan &plan,
                              const plan::AttentionProblem &problem,
                              const AttentionConfig &config);

  plan::MethodLibrary methods_;
  plan::PlanCache plans_;
  jit::HostJit jit_;
  PreparedPlans prepared_;
};

} // namespace spargejit::api

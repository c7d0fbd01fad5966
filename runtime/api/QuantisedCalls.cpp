// SPDX-License-Identifier: Apache-2.0
//
// Calls whose q, k and v are in eight bits, and the one that rounds them.
#include "runtime/api/Checks.h"
#include "runtime/api/Engine.h"
#include "runtime/api/Execute.h"
#include "runtime/api/ViewChecks.h"
#include "runtime/plan/CallBinding.h"
#include "spargejit/quantised.h"

#include <array>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

/// The tensors that rounding writes, with their names, types and sizes.
struct RoundedTensor {
  const char *name;
  Tensor QuantisedTensors::*member;
  DataType dtype;
  std::vector<std::int64_t> sizes;
};

std::array<RoundedTensor, 6> roundedTensors(const AttentionProblem &problem) {
  const auto image = plan::quantisedValueSizes(problem);
  const std::int64_t headDim = problem.kind.headDim;
  constexpr DataType kNarrow = DataType::Float8E4M3, kWide = DataType::Float32;
  using Q = QuantisedTensors;
  return {
      {{"q",
        &Q::q,
        kNarrow,
        {problem.batch, problem.qHeads, problem.qLen, headDim}},
       {"k",
        &Q::k,
        kNarrow,
        {problem.batch, problem.kvHeads, problem.kvLen, headDim}},
       {"v", &Q::v, kNarrow, {image.begin(), image.end()}},
       {"vScales",
        &Q::vScales,
        kWide,
        {problem.batch, problem.kvHeads, headDim}},
       {"qFactors", &Q::qFactors, kWide, {problem.batch, problem.qHeads}},
       {"kFactors", &Q::kFactors, kWide, {problem.batch, problem.kvHeads}}}};
}

/// The settings that rounding has, which is the same for every precision.
AttentionConfig roundingConfig(const AttentionConfig &config) {
  AttentionConfig settings;
  settings.precision = Precision::Fp8Exact;
  settings.softmaxScale = config.softmaxScale;
  settings.stream = config.stream;
  settings.threads = config.threads;
  return settings;
}

Status checkCanRound(const TensorView &q) {
  Checks checks;
  checks.supported(q.dtype != DataType::Float32,
                   "q.dtype: expected bfloat16 or float16, since no kernel "
                   "rounds float32 to eight bits, got float32");
  return std::move(checks).status();
}

/// Shape, type and place of what is written.
Status checkRounded(const QuantisedTensors &into, const CallTensors &inputs,
                    const AttentionProblem &problem) {
  Checks checks;
  for (const RoundedTensor &expected : roundedTensors(problem)) {
    const std::string name = std::string("into.") + expected.name;
    const TensorView &view = (into.*expected.member).view();
    checkView(checks, name.c_str(), view,
              static_cast<int>(expected.sizes.size()), "as quantise() makes it",
              MemoryUse::Used);
    if (!checks.ok())
      break;
    checkDevice(checks, name.c_str(), view, problem.device);
    checks.that(view.dtype == expected.dtype, "{}.dtype: expected {}, got {}",
                name, expected.dtype, view.dtype);
    for (std::size_t i = 0; i < expected.sizes.size(); ++i)
      checks.that(view.sizes[i] == expected.sizes[i],
                  "{}.sizes[{}]: expected {}, got {}", name, i,
                  expected.sizes[i], view.sizes[i]);
    for (auto [other, input] :
         {std::pair("q", inputs.q), std::pair("k", inputs.k),
          std::pair("v", inputs.v)})
      if (checks.ok())
        checkApart(checks, name.c_str(), view, other, input);
    for (const RoundedTensor &other : roundedTensors(problem))
      if (checks.ok() && other.member != expected.member)
        checkApart(checks, name.c_str(), view,
                   (std::string("into.") + other.name).c_str(),
                   &(into.*other.member).view());
  }
  return std::move(checks).status();
}

} // namespace

Result<QuantisedTensors> Engine::quantise(const TensorView &q,
                                          const TensorView &k,
                                          const TensorView &v,
                                          const AttentionConfig &config) {
  if (Status status = checkCanRound(q); !status)
    return status;
  const AttentionConfig settings = roundingConfig(config);
  auto call = begin({&q, &k, &v}, settings, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  QuantisedTensors made;
  made.dtype = q.dtype;
  made.kvLen = call->problem.kvLen;
  for (const RoundedTensor &wanted : roundedTensors(call->problem)) {
    auto memory = call->device().allocate(wanted.dtype, wanted.sizes, settings);
    if (!memory.ok())
      return Status(memory.status()).withContext(wanted.name);
    made.*wanted.member = *std::move(memory);
  }
  if (Status status = roundInto(*call, made); !status)
    return status;
  return made;
}

Status Engine::quantiseInto(const QuantisedTensors &into, const TensorView &q,
                            const TensorView &k, const TensorView &v,
                            const AttentionConfig &config) {
  if (Status status = checkCanRound(q); !status)
    return status;
  const AttentionConfig settings = roundingConfig(config);
  auto call = begin({&q, &k, &v}, settings, MemoryUse::Used);
  if (!call.ok())
    return call.status();
  if (Status status = checkRounded(into, call->tensors, call->problem); !status)
    return status;
  return roundInto(*call, into);
}

Status Engine::roundInto(Call &call, const QuantisedTensors &into) {
  static const Plan kPlan =
      std::make_shared<const MethodPlan>(plan::roundingPlan());
  auto prepared = findPrepared(call, kPlan, PlanScope::Whole);
  if (!prepared.ok())
    return prepared.status();
  call.tensors.eightQ = &into.q.view();
  call.tensors.eightK = &into.k.view();
  call.tensors.eightV = &into.v.view();
  call.tensors.vScales = &into.vScales.view();
  call.tensors.qFactors = &into.qFactors.view();
  call.tensors.kFactors = &into.kFactors.view();
  return execute(call.device(), **prepared, call.problem, call.tensors,
                 call.config, nullptr);
}

Result<Engine::Call> Engine::beginQuantised(const QuantisedTensors &tensors,
                                            const AttentionConfig &config,
                                            const AttentionOutputs &outputs) {
  auto problem = validateQuantised(tensors, config);
  if (!problem.ok())
    return problem.status();
  CallTensors views{&tensors.q.view(), &tensors.k.view(), &tensors.v.view(),
                    nullptr, outputs.lse};
  views.eightQ = views.q;
  views.eightK = views.k;
  views.eightV = views.v;
  views.vScales = &tensors.vScales.view();
  auto call = open(views, config, *problem);
  if (!call.ok())
    return call;
  call->form = plan::PlanForm::EightBits;
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  Checks checks;
  checks.that(!(*plan)->selects(),
              "config.method: expected one that selects nothing, since "
              "selection reads q and k before they are rounded, got \"{}\"",
              config.method);
  if (!checks.ok())
    return std::move(checks).status();
  return call;
}

Result<Tensor> Engine::attentionQuantised(const QuantisedTensors &tensors,
                                          const AttentionConfig &config,
                                          const AttentionOutputs &outputs) {
  auto call = beginQuantised(tensors, config, outputs);
  if (!call.ok())
    return call.status();
  return runIntoNew(*call, tensors.dtype, outputs.lists);
}

Status Engine::attentionQuantisedInto(const TensorView &o,
                                      const QuantisedTensors &tensors,
                                      const AttentionConfig &config,
                                      const AttentionOutputs &outputs) {
  auto call = beginQuantised(tensors, config, outputs);
  if (!call.ok())
    return call.status();
  Checks checks;
  checks.that(o.dtype == DataType::BFloat16 || o.dtype == DataType::Float16,
              "o.dtype: expected bfloat16 or float16, got {}", o.dtype);
  if (!checks.ok())
    return std::move(checks).status();
  call->tensors.o = &o;
  call->problem.kind.dtype = o.dtype;
  return run(*call, outputs.lists);
}

} // namespace spargejit::api

namespace spargejit {

using api::Engine;
using api::withEngine;

Result<QuantisedTensors> quantise(const TensorView &q, const TensorView &k,
                                  const TensorView &v,
                                  const AttentionConfig &config) {
  return withEngine(
      [&](Engine &engine) { return engine.quantise(q, k, v, config); });
}

Status quantiseInto(const QuantisedTensors &into, const TensorView &q,
                    const TensorView &k, const TensorView &v,
                    const AttentionConfig &config) {
  return withEngine([&](Engine &engine) {
    return engine.quantiseInto(into, q, k, v, config);
  });
}

Result<Tensor> attentionQuantised(const QuantisedTensors &tensors,
                                  const AttentionConfig &config,
                                  const AttentionOutputs &outputs) {
  return withEngine([&](Engine &engine) {
    return engine.attentionQuantised(tensors, config, outputs);
  });
}

Status attentionQuantisedInto(const TensorView &o,
                              const QuantisedTensors &tensors,
                              const AttentionConfig &config,
                              const AttentionOutputs &outputs) {
  return withEngine([&](Engine &engine) {
    return engine.attentionQuantisedInto(o, tensors, config, outputs);
  });
}

const char *precisionName(Precision precision) {
  switch (precision) {
  case Precision::Inputs:
    return "inputs";
  case Precision::Fp8Exact:
    return "fp8_exact";
  case Precision::Fp8Balanced:
    return "fp8_balanced";
  case Precision::Fp8Fast:
    return "fp8_fast";
  }
  return "a precision out of range";
}

} // namespace spargejit

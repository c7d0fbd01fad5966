// SPDX-License-Identifier: Apache-2.0
//
// Drawing, running and checking one backward pass.
#include "tests/numerics/harness/GradientTrial.h"

#include "tests/reference/Comparison.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace spargejit::numerics {
namespace {

std::vector<std::int64_t> queryShape(const AttentionCase &c) {
  return {c.batch, c.qHeads, c.qLen, c.headDim};
}

std::vector<std::int64_t> keyShape(const AttentionCase &c) {
  return {c.batch, c.kvHeads, c.kvLen, c.headDim};
}

testing::AssertionResult isNear(const char *name, const TestTensor &actual,
                                const std::vector<double> &expected,
                                double terms, const AttentionCase &shape) {
  const auto found = reference::compare(actual.values(), expected);
  const double bound = reference::gradientBound(shape.dtype);
  const double size = std::max(found.expectedL2, terms);
  // Written so that a NaN measure fails.
  if (found.nonFiniteMismatches == 0 && found.errorL2 <= bound * size)
    return testing::AssertionSuccess();
  const auto &sizes = actual.host().sizes;
  return testing::AssertionFailure()
         << name << ": error " << found.errorL2 << " of " << size << ", bound "
         << bound << "; " << found.describe({sizes.begin(), sizes.end()})
         << "  " << shape.describe();
}

} // namespace

GradientTrial::GradientTrial(TestBackend &backend, const AttentionCase &shape,
                             Random &random, const GradientPlacement &placement)
    : forward(backend, shape, random),
      dO(backend, forward.shape.dtype, queryShape(forward.shape),
         placement.dOStrides.value_or(
             stridesOf(placement.dO.layout, queryShape(forward.shape))),
         placement.dO),
      dLse(backend, DataType::Float32,
           {forward.shape.batch, forward.shape.qHeads, forward.shape.qLen}),
      dq(backend, forward.shape.dtype, queryShape(forward.shape),
         placement.gradients),
      dk(backend, forward.shape.dtype, keyShape(forward.shape),
         placement.gradients),
      dv(backend, forward.shape.dtype, keyShape(forward.shape),
         placement.gradients),
      backend_(&backend) {
  dO.fillNormal(random);
  dLse.fillNormal(random);
}

AttentionSaved GradientTrial::saved() const {
  return {forward.o.view(), forward.lse.view(), forward.config.lists};
}

Status GradientTrial::prepare() const {
  const AttentionOutputs outputs{.lse = &forward.lse.view(), .lists = nullptr};
  if (Status status =
          spargejit::prepare(forward.q.view(), forward.k.view(),
                             forward.v.view(), forward.config, outputs);
      !status)
    return status;
  return prepareBackward(forward.q.view(), forward.k.view(), forward.v.view(),
                         forward.config);
}

Status GradientTrial::run() {
  if (Status status = forward.run(); !status.ok())
    return status;
  return runBackward();
}

Status GradientTrial::runBackward() {
  for (TestTensor *tensor : {&dq, &dk, &dv})
    tensor->poison();
  for (TestTensor *tensor : {&dO, &dLse, &dq, &dk, &dv})
    tensor->upload();
  Status status = attentionBackwardInto(
      {dq.view(), dk.view(), dv.view()}, forward.q.view(), forward.k.view(),
      forward.v.view(), saved(), dO.view(), forward.config,
      wantsDLse ? &dLse.view() : nullptr);
  for (TestTensor *tensor : {&dq, &dk, &dv})
    tensor->download();
  return status;
}

testing::AssertionResult GradientTrial::memoryIsIntact() const {
  for (const auto &[name, tensor] :
       {std::pair{"q", &forward.q}, std::pair{"k", &forward.k},
        std::pair{"v", &forward.v}, std::pair{"o", &forward.o},
        std::pair{"lse", &forward.lse}, std::pair{"dO", &dO},
        std::pair{"dLse", &dLse}})
    if (const auto result = tensor->isUnchanged(); !result)
      return testing::AssertionFailure() << name << ": " << result.message();
  for (const auto &[name, tensor] :
       {std::pair{"dq", &dq}, std::pair{"dk", &dk}, std::pair{"dv", &dv}})
    if (const auto result = tensor->gapsAreIntact(); !result)
      return testing::AssertionFailure() << name << ": " << result.message();
  return testing::AssertionSuccess();
}

reference::Gradients GradientTrial::expected() const {
  reference::AttentionArguments arguments;
  arguments.q = forward.q.host();
  arguments.k = forward.k.host();
  arguments.v = forward.v.host();
  arguments.mask = forward.mask ? &*forward.mask : nullptr;
  arguments.maskBlockQ = forward.shape.maskBlockQ;
  arguments.maskBlockKv = forward.shape.maskBlockKv;
  arguments.causal = forward.shape.causal;
  arguments.softmaxScale = forward.shape.scale();
  return reference::referenceGradients(arguments, dO.host(),
                                       wantsDLse ? std::optional(dLse.host())
                                                 : std::nullopt);
}

testing::AssertionResult GradientTrial::matchesReference() const {
  const reference::Gradients right = expected();
  if (auto result = isNear("dq", dq, right.dq, right.dqTerms, forward.shape);
      !result)
    return result;
  if (auto result = isNear("dk", dk, right.dk, right.dkTerms, forward.shape);
      !result)
    return result;
  return isNear("dv", dv, right.dv, right.dvTerms, forward.shape);
}

testing::AssertionResult GradientTrial::isRight() {
  const Abilities abilities = backend_->abilities();
  if (!abilities.gradients) {
    if (auto result = succeeded(forward.run()); !result)
      return result;
    return failedWith(runBackward(), ErrorCode::Unsupported,
                      {"kernel", "expected one that is built in"});
  }
  if (!abilities.anyScale && forward.shape.scale() <= 0)
    return failedWith(run(), ErrorCode::Unsupported, {"config.softmaxScale"});
  if (auto result = succeeded(run()); !result)
    return result << "\n  " << forward.shape.describe();
  if (auto result = memoryIsIntact(); !result)
    return result << "\n  " << forward.shape.describe();
  return matchesReference();
}

std::vector<std::byte> GradientTrial::bits() const {
  std::vector<std::byte> all;
  for (const TestTensor *tensor : {&dq, &dk, &dv}) {
    const std::vector<std::byte> part = tensor->bits();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void prepareTogether(
    const std::vector<std::unique_ptr<GradientTrial>> &trials) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t t = 0; t < std::min(most, trials.size()); ++t)
    threads.emplace_back([&] {
      // What cannot be prepared says so again when it runs.
      for (std::size_t i = next++; i < trials.size(); i = next++)
        static_cast<void>(trials[i]->prepare());
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace spargejit::numerics

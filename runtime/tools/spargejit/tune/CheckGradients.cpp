// SPDX-License-Identifier: Apache-2.0
//
// Candidates of the backward pass against the CPU's kernels in float32.
#include "runtime/tools/spargejit/tune/CheckGradients.h"

#include "runtime/api/tune/RandomLists.h"
#include "runtime/api/tune/TrialDevice.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/tune/CandidateShapes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>

namespace spargejit::tool {

namespace {

using autotune::ProblemShape;

/// Relative L2 error that no right kernel comes near: the bound of the tests of
/// gradients for 16-bit types, doubled.
constexpr double kWorstRelativeL2 = 2e-2;

/// One row's dq can be a difference of nearly equal numbers.
constexpr std::int64_t kFewRows = 65;

/// Inputs of a forward and a backward pass, in one memory.
struct Inputs {
  ProblemShape shape;
  Tensor q, k, v, dO;
  BlockLists lists;

  AttentionConfig config() const { return api::trialCall(shape, &lists, 0); }
};

/// Normal numbers: with structured ones dp - delta is a difference of nearly
/// equal numbers, which the rounding of o shows in (3 % of dq in bfloat16).
Result<Tensor> normalTensor(const ProblemShape &shape, std::int64_t heads,
                            std::int64_t length, std::mt19937_64 &random) {
  auto tensor =
      Tensor::allocate(DataType::Float32, {1, heads, length, shape.headDim});
  if (!tensor.ok())
    return tensor;
  std::normal_distribution<float> normal;
  auto *values = tensor->data<float>();
  for (std::int64_t i = 0; i < tensor->view().elementCount(); ++i)
    values[i] = normal(random);
  return problem::convertTensor(*tensor, shape.dtype);
}

Result<Inputs> makeInputs(const ProblemShape &shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto q = normalTensor(shape, shape.qHeads, shape.qLen, random);
  auto k = normalTensor(shape, shape.kvHeads, shape.kvLen, random);
  auto v = normalTensor(shape, shape.kvHeads, shape.kvLen, random);
  auto dO = normalTensor(shape, shape.qHeads, shape.qLen, random);
  auto lists = api::randomLists(shape, seed);
  for (const Status &status :
       {q.status(), k.status(), v.status(), dO.status(), lists.status()})
    if (!status.ok())
      return status;
  return Inputs{shape, *q, *k, *v, *dO, *lists};
}

/// The same in the memory of `device`.
Result<Inputs> inputsOn(Inputs inputs, Device device) {
  Status status = moveTo(device, {&inputs.q, &inputs.k, &inputs.v, &inputs.dO,
                                  &inputs.lists.indices, &inputs.lists.counts});
  if (!status.ok())
    return status;
  return inputs;
}

Result<Inputs> inputsInFloat32(Inputs inputs) {
  inputs.shape.dtype = DataType::Float32;
  for (Tensor *tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.dO}) {
    auto wide = problem::convertTensor(*tensor, DataType::Float32);
    if (!wide.ok())
      return wide.status();
    *tensor = *std::move(wide);
  }
  return inputs;
}

/// The lists are the caller's; a dense method has none to save.
AttentionSaved savedOf(const AttentionForward &forward, const Inputs &inputs) {
  AttentionSaved saved = forward.saved();
  saved.lists = inputs.config().lists;
  return saved;
}

using Gradients = std::array<Tensor, 3>; ///< dq, dk, dv, with spare rows

Result<Gradients> poisonedGradients(const ProblemShape &shape) {
  auto dq = guardedTensor(shape.dtype, shape.qHeads, shape.qLen, shape.headDim);
  auto dk =
      guardedTensor(shape.dtype, shape.kvHeads, shape.kvLen, shape.headDim);
  auto dv =
      guardedTensor(shape.dtype, shape.kvHeads, shape.kvLen, shape.headDim);
  for (const auto *tensor : {&dq, &dk, &dv})
    if (!tensor->ok())
      return tensor->status();
  return Gradients{*dq, *dk, *dv};
}

/// What the engine's kernels give, back on the CPU.
Result<Gradients> gradientsBy(api::Engine &engine, const Inputs &onHost,
                              Device device) {
  auto inputs = inputsOn(onHost, device);
  auto gradients = poisonedGradients(onHost.shape);
  if (!inputs.ok() || !gradients.ok())
    return inputs.ok() ? gradients.status() : inputs.status();
  auto &[dq, dk, dv] = *gradients;
  if (Status status = moveTo(device, {&dq, &dk, &dv}); !status)
    return status;
  const AttentionConfig config = inputs->config();
  auto forward = engine.attentionForward(inputs->q.view(), inputs->k.view(),
                                         inputs->v.view(), config);
  if (!forward.ok())
    return forward.status();
  Status status = engine.attentionBackwardInto(
      {insideOf(dq), insideOf(dk), insideOf(dv)}, inputs->q.view(),
      inputs->k.view(), inputs->v.view(), savedOf(*forward, *inputs),
      inputs->dO.view(), config, nullptr);
  if (status.ok())
    status = synchronise(device);
  if (status.ok())
    status = moveTo(Device{}, {&dq, &dk, &dv});
  if (!status.ok())
    return status;
  return gradients;
}

struct Difference {
  double relL2 = 0;
  double largest = 0;
};

/// Of two float32 tensors of the same sizes.
Difference differenceOf(const TensorView &found, const TensorView &expected) {
  double error = 0, size = 0, largest = 0;
  auto at = [](const TensorView &view, std::int64_t h, std::int64_t n,
               std::int64_t d) {
    return static_cast<double>(static_cast<const float *>(
        view.data)[h * view.strides[1] + n * view.strides[2] + d]);
  };
  for (std::int64_t h = 0; h < found.sizes[1]; ++h)
    for (std::int64_t n = 0; n < found.sizes[2]; ++n)
      for (std::int64_t d = 0; d < found.sizes[3]; ++d) {
        const double wanted = at(expected, h, n, d);
        const double difference = at(found, h, n, d) - wanted;
        error += difference * difference;
        size += wanted * wanted;
        largest = std::max(largest, std::abs(difference));
      }
  return {size > 0 ? std::sqrt(error / size) : std::sqrt(error), largest};
}

Result<double> checkShape(api::Engine &engine, const ProblemShape &shape,
                          Device device, std::uint64_t seed) {
  auto inputs = makeInputs(shape, seed);
  if (!inputs.ok())
    return inputs.status();
  auto found = gradientsBy(engine, *inputs, device);
  if (!found.ok())
    return found.status();
  auto wide = inputsInFloat32(*inputs);
  if (!wide.ok())
    return wide.status();
  auto forward = attentionForward(wide->q.view(), wide->k.view(),
                                  wide->v.view(), wide->config());
  if (!forward.ok())
    return forward.status();
  auto expected = attentionBackward(wide->q.view(), wide->k.view(),
                                    wide->v.view(), savedOf(*forward, *wide),
                                    wide->dO.view(), wide->config());
  if (!expected.ok())
    return expected.status();
  double largest = 0;
  const char *names[] = {"dq", "dk", "dv"};
  const Tensor *wanted[] = {&expected->dq, &expected->dk, &expected->dv};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!guardsAreIntact((*found)[i]))
      return Status(ErrorCode::Internal,
                    std::string("it wrote beside ") + names[i]);
    auto converted = problem::convertTensor((*found)[i], DataType::Float32);
    if (!converted.ok())
      return converted.status();
    const Difference difference =
        differenceOf(insideOf(*converted), wanted[i]->view());
    // NaN is not below anything.
    if (!(difference.relL2 < kWorstRelativeL2))
      return Status(ErrorCode::Internal,
                    fmt::format("{} is wrong: relative L2 error {:.3g} at {} x "
                                "{}",
                                names[i], difference.relL2, shape.qLen,
                                shape.kvLen));
    largest = std::max(largest, difference.largest);
  }
  return largest;
}

} // namespace

Result<double> checkGradients(api::Engine &engine, const ProblemShape &problem,
                              Device device, std::uint64_t seed) {
  double worst = 0;
  for (const ProblemShape &shape : smallShapes(problem, kFewRows)) {
    auto error = checkShape(engine, shape, device, ++seed);
    if (!error.ok())
      return error;
    worst = std::max(worst, *error);
  }
  return worst;
}

} // namespace spargejit::tool

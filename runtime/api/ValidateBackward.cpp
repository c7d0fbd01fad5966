// SPDX-License-Identifier: Apache-2.0
//
// Checks of a backward pass's arguments beside q, k and v.
#include "runtime/api/Validate.h"
#include "runtime/api/ViewChecks.h"

#include <array>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

struct NamedView {
  const char *name;
  const TensorView *view;
};

/// Device, dtype and sizes of a tensor of the shape of `model`, q or k.
void checkLike(Checks &checks, const NamedView &tensor, const char *modelName,
               const TensorView &model, const char *shape, MemoryUse use) {
  const auto &[name, view] = tensor;
  checkView(checks, name, *view, 4, shape, use);
  if (!checks.ok())
    return;
  checkDevice(checks, name, *view, model.device);
  checks.that(view->dtype == model.dtype,
              "{}.dtype: expected {} as in {}, got "
              "{}",
              name, model.dtype, modelName, view->dtype);
  constexpr std::array kMeanings = {"batch", "heads", "length", "headDim"};
  for (std::size_t i = 0; i < kMeanings.size(); ++i)
    checkSize(checks, name, *view, i, kMeanings[i], model.sizes[i], modelName);
}

void checkRows(Checks &checks, const NamedView &tensor,
               const AttentionProblem &problem, MemoryUse use) {
  const auto &[name, view] = tensor;
  checkView(checks, name, *view, 3, "[batch, qHeads, qLen]", use);
  if (!checks.ok())
    return;
  checkDevice(checks, name, *view, problem.device);
  checks.that(view->dtype == DataType::Float32,
              "{}.dtype: expected float32, got {}", name, view->dtype);
  checkSize(checks, name, *view, 0, "batch", problem.batch, "q");
  checkSize(checks, name, *view, 1, "qHeads", problem.qHeads, "q");
  checkSize(checks, name, *view, 2, "qLen", problem.qLen, "q");
  checkRowValues(checks, name, *view);
}

void checkInputs(Checks &checks, const CallTensors &tensors,
                 const AttentionProblem &problem, MemoryUse use) {
  constexpr const char *kShape = "[batch, qHeads, qLen, headDim]";
  checkLike(checks, {"saved.o", tensors.o}, "q", *tensors.q, kShape, use);
  if (checks.ok())
    checkLastStride(checks, "saved.o", *tensors.o);
  if (checks.ok())
    checkRows(checks, {"saved.lse", tensors.lse}, problem, use);
  if (checks.ok())
    checkLike(checks, {"dO", tensors.dO}, "q", *tensors.q, kShape, use);
  // Kernels of a GPU copy whole rows.
  checks.supported(problem.device.kind == DeviceKind::Cpu || !checks.ok() ||
                       tensors.dO->strides[3] == 1 || tensors.dO->sizes[3] <= 1,
                   "dO.strides[3]: expected 1 on a GPU, got {}",
                   tensors.dO->strides[3]);
  if (checks.ok() && tensors.dLse)
    checkRows(checks, {"dLse", tensors.dLse}, problem, use);
}

void checkListsOf(Checks &checks, const CallTensors &tensors,
                  const AttentionProblem &problem, const std::string &method,
                  bool hasLists, MemoryUse use) {
  checks.that(!hasLists || tensors.lists,
              "saved.lists: expected the lists of the forward pass, since "
              "method \"{}\" reads listed blocks, got none",
              method);
  checks.that(hasLists || !tensors.lists,
              "saved.lists: expected none, since method \"{}\" reads every "
              "key, got some",
              method);
  if (checks.ok() && tensors.lists)
    checks.also(validateListShapes(
        {"saved.lists", "saved.lists.indices", "saved.lists.counts"}, problem,
        *tensors.lists, use));
}

/// Gradients share no memory with each other or with what is read.
void checkGradientsApart(Checks &checks, const CallTensors &tensors) {
  const std::array gradients = {NamedView{"gradients.dq", tensors.dQ},
                                NamedView{"gradients.dk", tensors.dK},
                                NamedView{"gradients.dv", tensors.dV}};
  const TensorView *indices =
      tensors.lists ? &tensors.lists->indices.view() : nullptr;
  const TensorView *counts =
      tensors.lists ? &tensors.lists->counts.view() : nullptr;
  const std::array inputs = {NamedView{"q", tensors.q},
                             NamedView{"k", tensors.k},
                             NamedView{"v", tensors.v},
                             NamedView{"saved.o", tensors.o},
                             NamedView{"saved.lse", tensors.lse},
                             NamedView{"saved.lists.indices", indices},
                             NamedView{"saved.lists.counts", counts},
                             NamedView{"dO", tensors.dO},
                             NamedView{"dLse", tensors.dLse}};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const SpannedView gradient(*gradients[i].view);
    for (std::size_t j = 0; j < i; ++j)
      checkApart(checks, gradients[i].name, gradient, gradients[j].name,
                 gradients[j].view);
    for (const NamedView &input : inputs)
      checkApart(checks, gradients[i].name, gradient, input.name, input.view);
  }
}

} // namespace

Status validateBackward(const CallTensors &tensors,
                        const AttentionProblem &problem,
                        const std::string &method, bool hasLists,
                        MemoryUse use) {
  Checks checks;
  checkInputs(checks, tensors, problem, use);
  if (checks.ok())
    checkListsOf(checks, tensors, problem, method, hasLists, use);
  for (const auto &[gradient, modelName, model, shape] :
       {std::tuple(NamedView{"gradients.dq", tensors.dQ}, "q", tensors.q,
                   "[batch, qHeads, qLen, headDim]"),
        std::tuple(NamedView{"gradients.dk", tensors.dK}, "k", tensors.k,
                   "[batch, kvHeads, kvLen, headDim]"),
        std::tuple(NamedView{"gradients.dv", tensors.dV}, "v", tensors.v,
                   "[batch, kvHeads, kvLen, headDim]")}) {
    if (checks.ok())
      checkLike(checks, gradient, modelName, *model, shape, use);
    if (checks.ok())
      checkLastStride(checks, gradient.name, *gradient.view);
    if (checks.ok())
      checkDistinct(checks, gradient.name, *gradient.view);
  }
  if (checks.ok() && use == MemoryUse::Used)
    checkGradientsApart(checks, tensors);
  return std::move(checks).status();
}

} // namespace spargejit::api

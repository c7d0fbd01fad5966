// SPDX-License-Identifier: Apache-2.0
//
// The functions of spargejit/c.h that training needs beside the forward pass.
#include "runtime/c_abi/Conversions.h"
#include "runtime/c_abi/Errors.h"
#include "runtime/c_abi/InputViews.h"
#include "spargejit/distillation.h"

#include <tuple>

using namespace spargejit;
using namespace spargejit::c_abi;

namespace {

/// What the forward pass left, with the lists that it points to.
struct Saved {
  AttentionSaved views;
  BlockLists lists;
};

Status toSaved(const SpargejitSaved *saved, Saved &to) {
  auto from = versioned("saved", saved);
  if (!from.ok())
    return from.status();
  auto o = toView("saved.o", from->o);
  if (!o.ok())
    return o.status();
  auto lse = toView("saved.lse", from->lse);
  if (!lse.ok())
    return lse.status();
  to.views = {*o, *lse, nullptr};
  if (!from->lists)
    return {};
  auto lists = toLists("saved.lists", from->lists);
  if (!lists.ok())
    return lists.status();
  to.lists = *std::move(lists);
  to.views.lists = &to.lists;
  return {};
}

Status toGradients(const SpargejitGradients *gradients,
                   AttentionGradientViews &to) {
  auto from = versioned("gradients", gradients);
  if (!from.ok())
    return from.status();
  for (auto [name, tensor, view] :
       {std::tuple("gradients.dq", from->dq, &to.dq),
        std::tuple("gradients.dk", from->dk, &to.dk),
        std::tuple("gradients.dv", from->dv, &to.dv)}) {
    auto converted = toView(name, tensor);
    if (!converted.ok())
      return converted.status();
    *view = *converted;
  }
  return {};
}

Status differentiate(const SpargejitGradients *gradients,
                     const SpargejitTensor *q, const SpargejitTensor *k,
                     const SpargejitTensor *v, const SpargejitSaved *saved,
                     const SpargejitTensor *dO, const SpargejitConfig *config,
                     const SpargejitTensor *dLse) {
  InputViews inputs;
  CallConfig call;
  AttentionGradientViews results;
  Saved kept;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  if (Status status = toGradients(gradients, results); !status)
    return status;
  if (Status status = toSaved(saved, kept); !status)
    return status;
  auto dOView = toView("dO", dO);
  if (!dOView.ok())
    return dOView.status();
  if (!dLse)
    return attentionBackwardInto(results, inputs.q, inputs.k, inputs.v,
                                 kept.views, *dOView, call.config);
  auto dLseView = toView("dLse", dLse);
  if (!dLseView.ok())
    return dLseView.status();
  return attentionBackwardInto(results, inputs.q, inputs.k, inputs.v,
                               kept.views, *dOView, call.config, &*dLseView);
}

Status distil(const SpargejitTensor *loss, const SpargejitTensor *gradient,
              const SpargejitTensor *student, const SpargejitTensor *teacher,
              double lossScale, const SpargejitConfig *config) {
  TensorView views[4];
  const bool hasGradient = gradient != nullptr;
  for (auto [name, tensor, view] :
       {std::tuple("loss", loss, &views[0]),
        std::tuple("gradient", hasGradient ? gradient : loss, &views[1]),
        std::tuple("student", student, &views[2]),
        std::tuple("teacher", teacher, &views[3])}) {
    auto converted = toView(name, tensor);
    if (!converted.ok())
      return converted.status();
    *view = *converted;
  }
  CallConfig call;
  if (Status status = toConfig(config, call); !status)
    return status;
  return distillationLoss(views[0], hasGradient ? &views[1] : nullptr, views[2],
                          views[3],
                          {lossScale, call.config.threads, call.config.stream});
}

} // namespace

SpargejitStatus spargejit_attention_backward(
    const SpargejitGradients *gradients, const SpargejitTensor *q,
    const SpargejitTensor *k, const SpargejitTensor *v,
    const SpargejitSaved *saved, const SpargejitTensor *dO,
    const SpargejitConfig *config, const SpargejitTensor *dLse) {
  return guarded([&] {
    return differentiate(gradients, q, k, v, saved, dO, config, dLse);
  });
}

SpargejitStatus spargejit_prepare_backward(const SpargejitTensor *q,
                                           const SpargejitTensor *k,
                                           const SpargejitTensor *v,
                                           const SpargejitConfig *config) {
  return guarded([&] {
    InputViews inputs;
    CallConfig call;
    Status status = inputs.read(q, k, v, config, call);
    return status.ok()
               ? prepareBackward(inputs.q, inputs.k, inputs.v, call.config)
               : status;
  });
}

SpargejitStatus spargejit_backward_workspace_bytes(
    const SpargejitTensor *q, const SpargejitTensor *k,
    const SpargejitTensor *v, const SpargejitConfig *config,
    std::int64_t *bytes) {
  return guarded([&] {
    return tellBytes(backwardWorkspaceBytes, q, k, v, config, bytes);
  });
}

SpargejitStatus spargejit_distillation_loss(const SpargejitTensor *loss,
                                            const SpargejitTensor *gradient,
                                            const SpargejitTensor *student,
                                            const SpargejitTensor *teacher,
                                            double lossScale,
                                            const SpargejitConfig *config) {
  return guarded([&] {
    return distil(loss, gradient, student, teacher, lossScale, config);
  });
}

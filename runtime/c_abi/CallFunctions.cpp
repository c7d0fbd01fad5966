// SPDX-License-Identifier: Apache-2.0
//
// The functions of spargejit/c.h that attend and select.
#include "runtime/api/Engine.h"
#include "runtime/c_abi/Conversions.h"
#include "runtime/c_abi/Errors.h"
#include "runtime/c_abi/InputViews.h"

#include <string>
#include <string_view>

using namespace spargejit;
using namespace spargejit::c_abi;

namespace {

/// A tensor that is dense as attentionForwardInto() has it.
Result<Tensor> denseOutput(const char *name, const TensorView &view) {
  const std::vector<std::int64_t> sizes(view.sizes.begin(),
                                        view.sizes.begin() + view.rank);
  const TensorView dense =
      TensorView::contiguous(view.data, view.dtype, sizes, view.device);
  if (view.elementCount() != 0 && dense.strides != view.strides)
    return Status(ErrorCode::InvalidArgument,
                  std::string(name) +
                      ".strides: expected dense memory, since lists are handed "
                      "out, got other strides");
  return Tensor::adopt({std::shared_ptr<void>(), view.data}, view.dtype, sizes,
                       view.device);
}

/// A failure of attentionForwardInto() in the words of spargejit_attention().
Status inOutputs(const Status &status) {
  constexpr std::string_view kInto = "into.";
  if (status.ok() || !status.message().starts_with(kInto))
    return status;
  return {status.code(), "outputs." + status.message().substr(kInto.size())};
}

/// A call that hands its lists out.
Status attendWithLists(const TensorView &o, const InputViews &inputs,
                       const AttentionConfig &config,
                       const AttentionOutputs &outputs,
                       const SpargejitLists *lists) {
  if (!outputs.lse)
    return {ErrorCode::InvalidArgument,
            "outputs.lse: expected a tensor, since lists are handed out, got "
            "null"};
  auto listMemory = toLists("outputs.lists", lists);
  if (!listMemory.ok())
    return listMemory.status();
  auto output = denseOutput("o", o);
  if (!output.ok())
    return output.status();
  auto lse = denseOutput("outputs.lse", *outputs.lse);
  if (!lse.ok())
    return lse.status();
  return inOutputs(attentionForwardInto({*output, *lse, *listMemory}, inputs.q,
                                        inputs.k, inputs.v, config));
}

Status attend(const SpargejitTensor *o, const SpargejitTensor *q,
              const SpargejitTensor *k, const SpargejitTensor *v,
              const SpargejitConfig *config, const SpargejitOutputs *outputs) {
  auto output = toView("o", o);
  if (!output.ok())
    return output.status();
  InputViews inputs;
  CallConfig call;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  AttentionOutputs results;
  TensorView lse;
  SpargejitOutputs wanted{};
  if (outputs) {
    auto known = versioned("outputs", outputs);
    if (!known.ok())
      return known.status();
    wanted = *known;
    if (Status status = toLse(wanted, lse, results); !status)
      return status;
  }
  if (wanted.lists)
    return attendWithLists(*output, inputs, call.config, results, wanted.lists);
  return attentionInto(*output, inputs.q, inputs.k, inputs.v, call.config,
                       results);
}

Status tellLists(const char *method, std::int32_t *hasLists) {
  if (!method || !hasLists)
    return {ErrorCode::InvalidArgument,
            "method, hasLists: expected a name and a place for the result, got "
            "null"};
  auto result = api::withEngine(
      [&](api::Engine &engine) { return engine.methodHasLists(method); });
  if (result.ok())
    *hasLists = *result ? 1 : 0;
  return result.status();
}

Status select(const SpargejitLists *into, const SpargejitTensor *q,
              const SpargejitTensor *k, const SpargejitConfig *config) {
  auto lists = toLists("into", into);
  if (!lists.ok())
    return lists.status();
  auto qView = toView("q", q);
  if (!qView.ok())
    return qView.status();
  auto kView = toView("k", k);
  if (!kView.ok())
    return kView.status();
  CallConfig call;
  if (Status status = toConfig(config, call); !status)
    return status;
  return selectBlocksInto(*lists, *qView, *kView, call.config);
}

Status prepareCall(const SpargejitTensor *q, const SpargejitTensor *k,
                   const SpargejitTensor *v, const SpargejitConfig *config,
                   const SpargejitOutputs *outputs) {
  InputViews inputs;
  CallConfig call;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  AttentionOutputs results;
  TensorView lse;
  if (outputs) {
    auto known = versioned("outputs", outputs);
    if (!known.ok())
      return known.status();
    if (Status status = toLse(*known, lse, results); !status)
      return status;
  }
  return prepare(inputs.q, inputs.k, inputs.v, call.config, results);
}

Status tellTuning(const SpargejitTensor *q, const SpargejitTensor *k,
                  const SpargejitTensor *v, const SpargejitConfig *config,
                  SpargejitTuning *tuning) {
  thread_local TuningInfo info;
  InputViews inputs;
  CallConfig call;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  auto found = tuningOf(inputs.q, inputs.k, inputs.v, call.config);
  if (!found.ok())
    return found.status();
  info = *std::move(found);
  const SpargejitTuning known{sizeof(SpargejitTuning), info.distance,
                              matchQualityName(info.quality),
                              info.config.c_str(), info.problem.c_str()};
  return writeVersioned("tuning", &known, tuning, sizeof known);
}

} // namespace

SpargejitStatus spargejit_attention(const SpargejitTensor *o,
                                    const SpargejitTensor *q,
                                    const SpargejitTensor *k,
                                    const SpargejitTensor *v,
                                    const SpargejitConfig *config,
                                    const SpargejitOutputs *outputs) {
  return guarded([&] { return attend(o, q, k, v, config, outputs); });
}

SpargejitStatus spargejit_method_has_lists(const char *method,
                                           std::int32_t *hasLists) {
  return guarded([&] { return tellLists(method, hasLists); });
}

SpargejitStatus spargejit_select_blocks(const SpargejitLists *into,
                                        const SpargejitTensor *q,
                                        const SpargejitTensor *k,
                                        const SpargejitConfig *config) {
  return guarded([&] { return select(into, q, k, config); });
}

SpargejitStatus spargejit_prepare(const SpargejitTensor *q,
                                  const SpargejitTensor *k,
                                  const SpargejitTensor *v,
                                  const SpargejitConfig *config,
                                  const SpargejitOutputs *outputs) {
  return guarded([&] { return prepareCall(q, k, v, config, outputs); });
}

SpargejitStatus spargejit_workspace_bytes(const SpargejitTensor *q,
                                          const SpargejitTensor *k,
                                          const SpargejitTensor *v,
                                          const SpargejitConfig *config,
                                          std::int64_t *bytes) {
  return guarded(
      [&] { return tellBytes(workspaceBytes, q, k, v, config, bytes); });
}

SpargejitStatus spargejit_tuning_of(const SpargejitTensor *q,
                                    const SpargejitTensor *k,
                                    const SpargejitTensor *v,
                                    const SpargejitConfig *config,
                                    SpargejitTuning *tuning) {
  return guarded([&] { return tellTuning(q, k, v, config, tuning); });
}

// SPDX-License-Identifier: Apache-2.0
//
// The functions of spargejit/c.h with tensors in eight bits.
#include "runtime/c_abi/Conversions.h"
#include "runtime/c_abi/Errors.h"
#include "runtime/c_abi/InputViews.h"
#include "spargejit/quantised.h"

#include <string>

using namespace spargejit;
using namespace spargejit::c_abi;

namespace {

Result<QuantisedTensors> toQuantised(const char *name,
                                     const SpargejitQuantised *given,
                                     bool hasFactors) {
  auto known = versioned(name, given);
  if (!known.ok())
    return known.status();
  if (known->reserved != 0)
    return Status(ErrorCode::Unsupported, std::string(name) +
                                              ".reserved: expected 0, got " +
                                              std::to_string(known->reserved));
  QuantisedTensors tensors;
  for (auto [field, from, to, isNeeded] :
       {std::tuple(".q", known->q, &tensors.q, true),
        std::tuple(".k", known->k, &tensors.k, true),
        std::tuple(".v", known->v, &tensors.v, true),
        std::tuple(".vScales", known->vScales, &tensors.vScales, true),
        std::tuple(".qFactors", known->qFactors, &tensors.qFactors, hasFactors),
        std::tuple(".kFactors", known->kFactors, &tensors.kFactors,
                   hasFactors)}) {
    if (!from && !isNeeded)
      continue;
    auto tensor = toDense(name, field, from, "tensors in eight bits are dense");
    if (!tensor.ok())
      return tensor.status();
    *to = *std::move(tensor);
  }
  if (known->dtype != SpargejitBFloat16 && known->dtype != SpargejitFloat16)
    return Status(ErrorCode::InvalidArgument,
                  std::string(name) +
                      ".dtype: expected SpargejitBFloat16 or "
                      "SpargejitFloat16, got " +
                      std::to_string(known->dtype));
  tensors.dtype = static_cast<DataType>(known->dtype);
  tensors.kvLen = known->kvLen;
  return tensors;
}

Status round(const SpargejitQuantised *into, const SpargejitTensor *q,
             const SpargejitTensor *k, const SpargejitTensor *v,
             const SpargejitConfig *config) {
  auto tensors = toQuantised("into", into, true);
  if (!tensors.ok())
    return tensors.status();
  InputViews inputs;
  CallConfig call;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  return quantiseInto(*tensors, inputs.q, inputs.k, inputs.v, call.config);
}

Status attend(const SpargejitTensor *o, const SpargejitQuantised *given,
              const SpargejitConfig *config, const SpargejitOutputs *outputs) {
  auto output = toView("o", o);
  if (!output.ok())
    return output.status();
  auto tensors = toQuantised("tensors", given, false);
  if (!tensors.ok())
    return tensors.status();
  CallConfig call;
  if (Status status = toConfig(config, call); !status)
    return status;
  AttentionOutputs results;
  TensorView lse;
  if (outputs) {
    auto known = versioned("outputs", outputs);
    if (!known.ok())
      return known.status();
    if (known->lists)
      return {ErrorCode::Unsupported,
              "outputs.lists: expected null, since attention in eight bits "
              "selects nothing, got lists"};
    if (Status status = toLse(*known, lse, results); !status)
      return status;
  }
  return attentionQuantisedInto(*output, *tensors, call.config, results);
}

} // namespace

SpargejitStatus spargejit_quantise(const SpargejitQuantised *into,
                                   const SpargejitTensor *q,
                                   const SpargejitTensor *k,
                                   const SpargejitTensor *v,
                                   const SpargejitConfig *config) {
  return guarded([&] { return round(into, q, k, v, config); });
}

SpargejitStatus spargejit_attention_quantised(const SpargejitTensor *o,
                                              const SpargejitQuantised *tensors,
                                              const SpargejitConfig *config,
                                              const SpargejitOutputs *outputs) {
  return guarded([&] { return attend(o, tensors, config, outputs); });
}

// SPDX-License-Identifier: Apache-2.0
//
// InputViews.h.
#include "runtime/c_abi/InputViews.h"

#include <tuple>

namespace spargejit::c_abi {

Status InputViews::read(const SpargejitTensor *qTensor,
                        const SpargejitTensor *kTensor,
                        const SpargejitTensor *vTensor,
                        const SpargejitConfig *config, CallConfig &call) {
  for (auto [name, tensor, to] :
       {std::tuple("q", qTensor, &q), std::tuple("k", kTensor, &k),
        std::tuple("v", vTensor, &v)}) {
    auto view = toView(name, tensor);
    if (!view.ok())
      return view.status();
    *to = *view;
  }
  return toConfig(config, call);
}

Status tellBytes(WorkspaceFunction *function, const SpargejitTensor *q,
                 const SpargejitTensor *k, const SpargejitTensor *v,
                 const SpargejitConfig *config, std::int64_t *bytes) {
  if (!bytes)
    return {ErrorCode::InvalidArgument,
            "bytes: expected a place for the result, got null"};
  InputViews inputs;
  CallConfig call;
  if (Status status = inputs.read(q, k, v, config, call); !status)
    return status;
  auto result = function(inputs.q, inputs.k, inputs.v, call.config);
  if (result.ok())
    *bytes = *result;
  return result.status();
}

} // namespace spargejit::c_abi

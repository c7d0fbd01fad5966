// SPDX-License-Identifier: Apache-2.0
//
// What nearly every function of spargejit/c.h takes: q, k, v and a config.
#pragma once

#include "runtime/c_abi/Conversions.h"

namespace spargejit::c_abi {

struct InputViews {
  TensorView q, k, v;

  /// Fills the views, and `call` with the config.
  Status read(const SpargejitTensor *qTensor, const SpargejitTensor *kTensor,
              const SpargejitTensor *vTensor, const SpargejitConfig *config,
              CallConfig &call);
};

/// workspaceBytes() or backwardWorkspaceBytes() of the arguments.
using WorkspaceFunction = Result<std::int64_t>(const TensorView &,
                                               const TensorView &,
                                               const TensorView &,
                                               const AttentionConfig &);
Status tellBytes(WorkspaceFunction *function, const SpargejitTensor *q,
                 const SpargejitTensor *k, const SpargejitTensor *v,
                 const SpargejitConfig *config, std::int64_t *bytes);

} // namespace spargejit::c_abi

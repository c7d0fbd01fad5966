// SPDX-License-Identifier: Apache-2.0
//
// Everything that is checked about a call's arguments before anything runs.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

namespace spargejit::api {

/// The tensors of a call; null where there are none.
struct CallTensors {
  const TensorView *q = nullptr;
  const TensorView *k = nullptr;
  const TensorView *v = nullptr;
  const TensorView *o = nullptr;
  const TensorView *lse = nullptr;
};

/// Whether the tensors' memory will be used, or their shapes alone.
enum class MemoryUse { Used, Ignored };

/// Checks q, k, v and the settings that need no method, and reduces them to the
/// problem. InvalidArgument and Unsupported name the argument, what was
/// expected and what was found.
Result<plan::AttentionProblem> validateInputs(const CallTensors &tensors,
                                              const AttentionConfig &config,
                                              MemoryUse use);

/// Checks o and lse: shape, dtype, strides, and that they overlap neither each
/// other nor an input.
Status validateOutputs(const CallTensors &tensors,
                       const plan::AttentionProblem &problem,
                       const AttentionConfig &config, MemoryUse use);

/// Checks that the mask or the lists are there exactly when the method takes
/// them and that their shapes fit.
Status validateCallerLists(const MethodPlan &plan,
                           const plan::AttentionProblem &problem,
                           const AttentionConfig &config, MemoryUse use);

} // namespace spargejit::api

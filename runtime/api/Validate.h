// SPDX-License-Identifier: Apache-2.0
//
// Everything that is checked about a call's arguments before anything runs.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"
#include "spargejit/quantised.h"

#include <string>

namespace spargejit::api {

/// The tensors of a call; null where there are none.
struct CallTensors {
  const TensorView *q = nullptr;
  const TensorView *k = nullptr;
  const TensorView *v = nullptr;
  const TensorView *o = nullptr;
  const TensorView *lse = nullptr;
  /// Lists that come with the call.
  const BlockLists *lists = nullptr;
  /// Of a call with q, k and v in eight bits (q, k and v are these then), and
  /// of one that makes them.
  const TensorView *eightQ = nullptr;
  const TensorView *eightK = nullptr;
  const TensorView *eightV = nullptr;
  const TensorView *vScales = nullptr;
  const TensorView *qFactors = nullptr;
  const TensorView *kFactors = nullptr;
  /// Of a backward pass, which only reads o and lse.
  const TensorView *dO = nullptr;
  const TensorView *dLse = nullptr;
  const TensorView *dQ = nullptr;
  const TensorView *dK = nullptr;
  const TensorView *dV = nullptr;
};

/// Whether the tensors' memory will be used, or their shapes alone.
enum class MemoryUse { Used, Ignored };

/// Checks q, k, v and the settings that need no method, and reduces them to the
/// problem. InvalidArgument and Unsupported name the argument, what was
/// expected and what was found.
Result<plan::AttentionProblem> validateInputs(const CallTensors &tensors,
                                              const AttentionConfig &config,
                                              MemoryUse use);

/// What config.precision asks of a problem: Unsupported for its data type, and
/// for settings that go with other precisions only.
Status validatePrecision(const plan::AttentionProblem &problem,
                         const AttentionConfig &config);

/// validateInputs() of a call with tensors of eight bits.
Result<plan::AttentionProblem>
validateQuantised(const QuantisedTensors &tensors,
                  const AttentionConfig &config);

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

/// What lists are called in messages.
struct ListNames {
  const char *lists;
  const char *indices;
  const char *counts;
};

/// Checks that the shapes of lists fit the problem.
Status validateListShapes(const ListNames &names,
                          const plan::AttentionProblem &problem,
                          const BlockLists &lists, MemoryUse use);

/// Checks what a backward pass has beside q, k and v: that lists are there
/// exactly when the forward pass's method reads them, shapes, dtypes, strides,
/// and that the gradients overlap neither each other nor an input.
Status validateBackward(const CallTensors &tensors,
                        const plan::AttentionProblem &problem,
                        const std::string &method, bool hasLists,
                        MemoryUse use);

} // namespace spargejit::api

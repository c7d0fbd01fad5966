// SPDX-License-Identifier: Apache-2.0
//
// Runs a method on inputs, times its parts and compares it with dense
// attention, through the public interface of the library alone.
#pragma once

#include "runtime/tools/spargejit/problem/AttentionInputs.h"
#include "runtime/tools/spargejit/problem/Quality.h"
#include "runtime/tools/spargejit/report/Progress.h"
#include "spargejit/attention.h"

#include <optional>

namespace spargejit::problem {

/// What one call of a method gives.
struct MethodResult {
  Tensor o;   ///< dimensions and order of the input q
  Tensor lse; ///< float32 [batch, qHeads, qLen]
  BlockLists lists;
};

/// The same result in host memory.
Result<MethodResult> resultOnHost(const MethodResult &result);

/// Runs `config` once, on the inputs' device, into memory there that was filled
/// with NaN before.
Result<MethodResult> runMethod(const AttentionInputs &inputs,
                               const AttentionConfig &config);

/// `config` for calls over lists that its method gave, in the same precision.
/// The lists must outlive it.
AttentionConfig configOverLists(const AttentionConfig &config,
                                const BlockLists &lists);

/// `config` for the dense attention that its method is compared with, in the
/// inputs' type.
AttentionConfig configOfDense(const AttentionConfig &config);

struct Measurement {
  MethodResult result; ///< in host memory
  /// Median times in milliseconds; a method that selects nothing has no
  /// selection to time and `msSelect` is 0.
  double msSelect = 0;
  double msAttention = 0;
  /// Of dense attention in the dtype of the inputs; absent without comparison.
  std::optional<double> msDense;
  std::optional<Quality> quality;
};

/// Runs `config` on the inputs' device (once to warm up, then `repeat` times
/// for each part), and, with `compare`, dense attention as often. On a GPU,
/// where a call does not wait, each of the `repeat` times is that of several
/// calls and one wait, divided by their number. The dense output that errors
/// refer to is float32 on the CPU, computed from the inputs as rounded to their
/// dtype; on a GPU it is that of the inputs' dtype. Neither has a precision of
/// eight bits.
Result<Measurement> measureMethod(const AttentionInputs &inputs,
                                  const AttentionConfig &config, int repeat,
                                  bool compare, report::Progress &progress);

} // namespace spargejit::problem

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

/// Runs `config` once, into memory that was filled with NaN before.
Result<MethodResult> runMethod(const AttentionInputs &inputs,
                               const AttentionConfig &config);

struct Measurement {
  MethodResult result;
  /// Median times in milliseconds; a method that selects nothing has no
  /// selection to time and `msSelect` is 0.
  double msSelect = 0;
  double msAttention = 0;
  /// Of dense attention in the dtype of the inputs; absent without comparison.
  std::optional<double> msDense;
  std::optional<Quality> quality;
};

/// Runs `config` (once to warm up, then `repeat` times for each part), and,
/// with `compare`, dense attention as often. The dense output that errors refer
/// to is float32, computed from the inputs as rounded to their dtype.
Result<Measurement> measureMethod(const AttentionInputs &inputs,
                                  const AttentionConfig &config, int repeat,
                                  bool compare, report::Progress &progress);

} // namespace spargejit::problem

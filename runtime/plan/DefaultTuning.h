// SPDX-License-Identifier: Apache-2.0
//
// The tuning parameters of kernels where no record says otherwise.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "runtime/plan/AttentionProblem.h"

#include <cstdint>
#include <map>
#include <string>

namespace spargejit::plan {

/// Parameter name -> value, for every tuning parameter that a kernel of the
/// target may declare, and for those that follow from others. `hasLists`: the
/// kernel visits listed key blocks; `hasPlaces`: it keeps score gradients.
std::map<std::string, std::int64_t> defaultTuning(const ProblemClass &kind,
                                                  const Target &target,
                                                  bool hasLists,
                                                  bool hasPlaces = false);

} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// The tuning parameters of the portable kernels on the host where no record
// says otherwise.
#pragma once

#include "runtime/plan/AttentionProblem.h"

#include <cstdint>
#include <map>
#include <string>

namespace spargejit::plan {

/// Parameter name -> value, for every tuning parameter that a portable kernel
/// may declare.
std::map<std::string, std::int64_t> defaultTuning(const ProblemClass &kind);

} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// The tuning parameters of the kernels that compute gradients on Hopper, where
// no record says otherwise.
#pragma once

#include "runtime/plan/AttentionProblem.h"

#include <cstdint>
#include <map>
#include <string>

namespace spargejit::plan {

/// As defaultTuning, for attention_bwd_delta, attention_bwd_q,
/// attention_bwd_q_kept, attention_bwd_kv, invert_blocks, squared_error and
/// scaled_total in kernels/sm90.
std::map<std::string, std::int64_t>
sm90BackwardTuning(const ProblemClass &kind, bool hasLists, bool hasPlaces);

} // namespace spargejit::plan

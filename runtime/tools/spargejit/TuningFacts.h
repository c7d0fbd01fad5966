// SPDX-License-Identifier: Apache-2.0
//
// What a tuning space's expressions may refer to, and where a space is found.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "autotune/space/Expression.h"
#include "runtime/plan/AttentionProblem.h"

#include <string>

namespace spargejit::tool {

/// head_dim, mask_block_q, mask_block_kv, has_lists, causal, elem_bytes,
/// heads (of all batches), q_len, kv_len, visited_keys (of one row of blocks,
/// on average).
autotune::Values factsOf(const autotune::ProblemShape &problem);

plan::ProblemClass classOf(const autotune::ProblemShape &problem);

/// "kernels/sm90/attention_fwd.tuning".
std::string kernelPath(const std::string &kernel, const std::string &target,
                       const std::string &ending);

} // namespace spargejit::tool

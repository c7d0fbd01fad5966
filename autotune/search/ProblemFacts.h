// SPDX-License-Identifier: Apache-2.0
//
// What a tuning space's expressions may refer to, of a problem.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "autotune/space/Expression.h"

namespace spargejit::autotune {

/// head_dim, mask_block_q, mask_block_kv, has_lists, causal, elem_bytes,
/// heads (of all batches), q_len, kv_len, visited_keys (of one row of blocks,
/// on average).
Values factsOf(const ProblemShape &problem);

} // namespace spargejit::autotune

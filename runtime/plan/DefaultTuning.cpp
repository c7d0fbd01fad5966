// SPDX-License-Identifier: Apache-2.0
//
// Default tiles: one block of query rows per program, and key tiles wide enough
// to gather several narrow mask blocks.
#include "runtime/plan/DefaultTuning.h"

#include <algorithm>

namespace spargejit::plan {

std::map<std::string, std::int64_t> defaultTuning(const ProblemClass &kind) {
  return {{"tile_q", kind.maskBlockQ},
          {"tile_kv", std::max<std::int64_t>(64, kind.maskBlockKv)},
          {"tile_rows", 16},
          {"tile_columns", 64}};
}

} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// Default tiles.
#include "runtime/plan/DefaultTuning.h"

#include <algorithm>
#include <numeric>

namespace spargejit::plan {

namespace {

using Tuning = std::map<std::string, std::int64_t>;

/// One block of query rows per program, and key tiles wide enough to gather
/// several narrow mask blocks.
Tuning portableTuning(const ProblemClass &kind) {
  return {{"tile_q", kind.maskBlockQ},
          {"tile_kv", std::max<std::int64_t>(64, kind.maskBlockKv)},
          {"tile_rows", 16},
          {"tile_columns", 64}};
}

/// kernels/sm90. One producer and, for each 64 query rows, one consumer
/// warpgroup; their registers fill a multiprocessor's 65536:
/// 128 · (24 + 2 · 240) = 64512. Two stages of everything, where 16-bit
/// elements leave room for them in 227 KiB: heads of more than 128 take key
/// tiles of 64, of more than 192 one stage of q (64 + 4 · 32 KiB).
Tuning sm90Tuning(const ProblemClass &kind, bool hasLists) {
  constexpr std::int64_t kRowsPerWarp = 16;
  // A program's rows share one list.
  const std::int64_t tileQ = hasLists ? kind.maskBlockQ : 128;
  const std::int64_t tileKv = kind.headDim > 128 ? 64 : 128;
  const std::int64_t keyBox =
      hasLists ? std::gcd(tileKv, kind.maskBlockKv) : tileKv;
  return {{"tile_q", tileQ},          {"tile_kv", tileKv},
          {"key_box", keyBox},        {"boxes", tileKv / keyBox},
          {"swizzle_bytes", 128},     {"q_stages", kind.headDim > 192 ? 1 : 2},
          {"kv_stages", 2},           {"consumer_warps", tileQ / kRowsPerWarp},
          {"producer_registers", 24}, {"consumer_registers", 240}};
}

} // namespace

Tuning defaultTuning(const ProblemClass &kind, const Target &target,
                     bool hasLists) {
  return target.architecture == "sm_90a" ? sm90Tuning(kind, hasLists)
                                         : portableTuning(kind);
}

} // namespace spargejit::plan

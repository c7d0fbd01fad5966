// SPDX-License-Identifier: Apache-2.0
//
// Default tiles.
#include "runtime/plan/DefaultTuning.h"

#include "runtime/plan/BackwardTuning.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace spargejit::plan {

namespace {

using Tuning = std::map<std::string, std::int64_t>;

/// More blocks than a head can have.
constexpr std::int64_t kHeadRows = std::int64_t{1} << 24;

/// One block of query rows per program, and key tiles wide enough to gather
/// several narrow mask blocks. For the gradients of k and v one key block per
/// program, since a program's keys share one list, and 64 queries at a time.
Tuning portableTuning(const ProblemClass &kind, bool hasLists) {
  return {{"tile_q", kind.maskBlockQ},
          {"tile_kv", std::max<std::int64_t>(64, kind.maskBlockKv)},
          {"tile_rows", 16},
          {"tile_columns", 64},
          {"tile_keys", hasLists
                            ? kind.maskBlockKv
                            : std::max<std::int64_t>(64, kind.maskBlockKv)},
          {"tile_queries", 64}};
}

/// So many that a warp takes 128 tokens at a time; 1 where a class has no
/// block.
std::int64_t blocksTogether(std::int64_t block) {
  return block > 0 ? std::max<std::int64_t>(1, 128 / block) : 1;
}

/// Selection in kernels/sm90, by what was fastest in
/// bench/results/2026-11-30-h200-selection.md. A CTA keeps the scores of a few
/// rows in shared memory, and a cluster reads k once for all of its rows: four
/// CTAs of eight warps with a row each, or two where there are many. Those that
/// wait for the last heads then stand on few multiprocessors, and attention
/// starts on the others. Narrow
/// blocks at head dimension 128 take eight small CTAs, of four warps, for their
/// long rows; elsewhere eight spill (96). The CTAs of a multiprocessor share
/// its registers, unless the halves of long head dimensions need more. Pooling
/// takes half of the four CTAs that fit.
Tuning sm90SelectionTuning(const ProblemClass &kind) {
  const bool isUsual = kind.headDim == 128;
  const bool isNarrow = isUsual && kind.maskBlockKv < 64;
  const bool isLong = kind.rows == SelectionRows::Long;
  const bool isSmall = isNarrow && !isLong;
  const bool isMany = !isNarrow && kind.rows == SelectionRows::Many;
  const std::int64_t members = isNarrow ? 8 : 4;
  const std::int64_t rows = isLong ? 2 : isSmall ? 4 : isMany ? 16 : 8;
  return {{"pool_warps", 4},
          {"pool_ctas", 4},
          // A round of sixteen needs a block of 32 tokens.
          {"pool_loads", isUsual && kind.maskBlockKv >= 64 ? 16 : 8},
          // With narrow blocks six parts a warp end 1 % of a call sooner so,
          // and 45 later; with others nothing is won.
          {"pool_draws", kind.maskBlockKv < 64 ? 16 : 1},
          {"pool_grid_rows", 1},
          {"q_blocks_together", blocksTogether(kind.maskBlockQ)},
          {"k_blocks_together", blocksTogether(kind.maskBlockKv)},
          {"member_rows", rows},
          {"tile_rows", members * rows},
          {"row_tile", 256},
          {"team_members", members},
          {"team_warps", isSmall ? 4 : 8},
          {"flag_rows", std::max<std::int64_t>(8, 2 * rows)},
          {"team_ctas", kind.headDim > 128 ? 1
                        : isSmall          ? 4
                                           : 2},
          {"list_warps", 8},
          {"list_rows", 8},
          {"list_run", 256},
          {"list_ctas", 4}};
}

/// kernels/sm90, by what was fastest in
/// bench/results/2026-11-30-h200-attention-fwd.md. Consumer warpgroups have 64
/// query rows each, and with the producer's they fill a multiprocessor's 65536
/// registers: 128 · (40 + 2 · 232), or 128 · (32 + 3 · 160) where short rows
/// leave room for a third. A key costs the same in tiles of 128 and 160; one
/// warpgroup alone gains from the longer step, which leaves room for two k
/// slots. Rings of two stages and more, as far as 16-bit elements fit 227 KiB.
Tuning sm90Tuning(const ProblemClass &kind, bool hasLists) {
  constexpr std::int64_t kRowsPerWarp = 16;
  const bool isShort = kind.headDim <= 64;
  // A program's rows share one list.
  const std::int64_t tileQ = hasLists ? kind.maskBlockQ : isShort ? 192 : 128;
  // Scores and weights of a third warpgroup's threads fit 160 registers up to
  // 112 keys.
  // A causal mask takes registers that then spill.
  const bool isLong = kind.headDim == 128 && tileQ == 64 && !kind.causal;
  const std::int64_t tileKv = kind.headDim > 128 ? 64
                              : tileQ > 128      ? 112
                              : isLong           ? 160
                                                 : 128;
  const std::int64_t keyBox =
      hasLists ? std::gcd(tileKv, kind.maskBlockKv) : tileKv;
  return {{"tile_q", tileQ},
          {"tile_kv", tileKv},
          {"key_box", keyBox},
          {"boxes", tileKv / keyBox},
          {"swizzle_bytes", kind.headDim % 64 == 32 ? 64 : 128},
          {"q_stages", kind.headDim > 192 ? 1 : 2},
          {"k_stages", isLong ? 2 : 3},
          {"v_stages", isShort ? 3 : 2},
          {"consumer_warps", tileQ / kRowsPerWarp},
          {"producer_registers", tileQ > 128 ? 32 : 40},
          {"consumer_registers", tileQ > 128 ? 160 : 232}};
}

/// Attention in eight bits, by what was fastest in
/// bench/results/2026-11-30-h200-attention-fp8.md. Scores in float32 take twice
/// the registers of those in float16, and a causal mask some more. The launches
/// that round have a warp for each of q, k and v.
Tuning sm90EightBitTuning(const ProblemClass &kind, bool hasLists) {
  constexpr std::int64_t kRowsPerWarp = 16;
  const bool isExact = kind.precision == Precision::Fp8Exact;
  const bool isWide = kind.headDim == 128;
  const std::int64_t tileQ = hasLists ? kind.maskBlockQ : 128;
  const std::int64_t tileKv = !isExact ? 192 : kind.causal && isWide ? 96 : 128;
  const std::int64_t keyBox =
      hasLists ? std::gcd(tileKv, kind.maskBlockKv) : tileKv;
  const auto headDim = static_cast<std::uint64_t>(kind.headDim);
  return {
      {"tile_q", tileQ},
      {"tile_kv", tileKv},
      {"key_box", keyBox},
      {"boxes", tileKv / keyBox},
      // Of float32 scores it costs more than it saves.
      {"cuts", hasLists && !isExact},
      {"value_dim", kind.headDim},
      {"value_rows", kind.headDim + 8},
      {"swizzle_bytes", std::int64_t{1} << std::countr_zero(headDim | 128U)},
      {"q_stages", 2},
      {"kv_stages", isExact && isWide ? 4 : 3},
      {"consumer_warps", tileQ / kRowsPerWarp},
      {"producer_registers", 40},
      {"consumer_registers", 232},
      {"quantise_rows", 128},
      // As fast as six, which leave a lane 96 registers and spill at some head
      // dimensions.
      {"quantise_ctas", 4},
      {"factor_columns", static_cast<std::int64_t>(std::bit_ceil(headDim))}};
}

} // namespace

Tuning defaultTuning(const ProblemClass &kind, const Target &target,
                     bool hasLists, bool hasPlaces) {
  Tuning tuning;
  if (target.architecture != "sm_90a") {
    tuning = portableTuning(kind, hasLists);
  } else {
    tuning = kind.isEightBit() ? sm90EightBitTuning(kind, hasLists)
                               : sm90Tuning(kind, hasLists);
    tuning.merge(sm90SelectionTuning(kind));
    tuning.merge(sm90BackwardTuning(kind, hasLists, hasPlaces));
  }
  if (kind.isEightBit())
    tuning.merge(Tuning{{"head_rows", kHeadRows}});
  return tuning;
}

} // namespace spargejit::plan

// SPDX-License-Identifier: Apache-2.0
//
// Defaults by what was fastest in
// bench/results/2026-11-30-h200-attention-bwd.md.
#include "runtime/plan/BackwardTuning.h"

#include <algorithm>
#include <numeric>

namespace spargejit::plan {

namespace {

using Tuning = std::map<std::string, std::int64_t>;

/// Two warpgroups of 64 query rows, or one where blocks are of 64: 128 · (56 +
/// 2 · 224) registers, since who forms delta has loads under way in some. Rings
/// as far as 16-bit elements fit 227 KiB beside q and do, of which short rows
/// leave room for the next, and dq leaves through a slot of its own where one
/// is left.
Tuning queryTuning(const ProblemClass &kind, bool hasLists) {
  const std::int64_t tileQ = hasLists ? kind.maskBlockQ : 128;
  // Scores of 64 keys spill beside a row of 240 columns or more.
  const std::int64_t tileKv = kind.headDim >= 240  ? 48
                              : kind.headDim > 128 ? 64
                                                   : 128;
  const std::int64_t keyBox =
      hasLists ? std::gcd(tileKv, kind.maskBlockKv) : tileKv;
  const std::int64_t qStages = kind.headDim > 64 ? 1 : 2;
  const std::int64_t kStages = kind.headDim > 128 ? 2 : 3;
  const std::int64_t vStages = kind.headDim > 192 ? 1 : 2;
  const std::int64_t rowBytes =
      2 *
      (kind.headDim % 64 == 32 ? kind.headDim : (kind.headDim + 63) / 64 * 64);
  const std::int64_t bytes =
      rowBytes * ((2 * qStages + 1) * tileQ + (kStages + vStages) * tileKv);
  return {{"dq_tile_q", tileQ},          {"dq_tile_kv", tileKv},
          {"dq_key_box", keyBox},        {"dq_boxes", tileKv / keyBox},
          {"dq_q_stages", qStages},      {"dq_k_stages", kStages},
          {"dq_v_stages", vStages},      {"dq_out_apart", bytes <= 224 << 10},
          {"dq_warps", tileQ / 16},      {"dq_producer_registers", 56},
          {"dq_consumer_registers", 224}};
}

/// Tiles of 64 keys, of which four (ds and k, 16 KiB each at head dimension
/// 128) are on their way beside two warpgroups: 0.383 ms for 0.392 with six.
/// One warpgroup has half of a multiprocessor where its row of output fits the
/// registers that two CTAs start with: twice 128 · (40 + 192).
Tuning keptTuning(const ProblemClass &kind) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t keyBox = std::gcd(kTile, kind.maskBlockKv);
  const std::int64_t slotBytes =
      2 * kTile * (kind.maskBlockQ + (kind.headDim + 63) / 64 * 64);
  const bool isHalf = kind.maskBlockQ == 64 && kind.headDim <= 128;
  const std::int64_t slotsBytes = isHalf                ? 96 << 10
                                  : kind.headDim <= 128 ? 128 << 10
                                                        : 192 << 10;
  return {
      {"dqk_tile_kv", kTile},
      {"dqk_key_box", keyBox},
      {"dqk_boxes", kTile / keyBox},
      {"dqk_stack_columns", kind.maskBlockQ * kTile / 16},
      {"dqk_stages", std::clamp<std::int64_t>(slotsBytes / slotBytes, 2, 8)},
      {"dqk_warps", kind.maskBlockQ / 16},
      {"dqk_producer_registers", 40},
      {"dqk_consumer_registers", 192}};
}

/// One warpgroup of 64 keys; dk and dv of 128 columns at most fit its
/// registers, and two such CTAs a multiprocessor: 2 · 128 · (24 + 232), with a
/// third q slot as far as 227 KiB go; narrow rows of dense attention leave the
/// roles of one warp eight more, where 24 spill. At head dimension 128, where
/// 128 keys share their queries, one CTA of two warpgroups reads those once:
/// 128 · (24 + 2 · 240). More columns leave room for one CTA, which has all
/// registers: 128 · (24 + 248).
///
/// dk and dv leave through a slot of their own where there is room: 0.443 ms
/// for 0.466 at head dimension 64.
///
/// One slot of statistics is best: with four, dk and dv of dense attention take
/// 1.51 ms for 1.42. ds on its way to where it is kept takes the room of the
/// third q slot at head dimension 128.
Tuning keyTuning(const ProblemClass &kind, bool hasLists, bool hasPlaces) {
  constexpr std::int64_t kKeys = 64, kMostColumns = 128, kPanel = 32;
  const bool isWhole = kind.headDim <= kMostColumns;
  const bool isShort = kind.headDim <= 64;
  const bool isNarrow = kind.headDim < 64 && !hasLists;
  // Steps of 128 queries where their scores fit the registers.
  const bool isLong = kind.headDim == 64 && hasLists && !hasPlaces &&
                      !kind.causal && kind.maskBlockQ == 2 * kKeys;
  const bool isWide = kind.headDim > 96 && isWhole &&
                      (!hasLists || kind.maskBlockKv % (2 * kKeys) == 0);
  const bool isFull = hasPlaces && kind.headDim > 96 && isWhole && !isWide;
  const std::int64_t tileKeys = isWide ? 2 * kKeys : kKeys;
  const std::int64_t part =
      isWhole ? kind.headDim : (kind.headDim + 63) / 64 * kPanel;
  return {
      {"tile_queries", isLong ? 2 * kKeys : kKeys},
      {"tile_keys", tileKeys},
      {"dkv_keys", hasLists ? std::min(tileKeys, kind.maskBlockKv) : tileKeys},
      {"dkv_parts", isWhole ? 1 : 2},
      {"dkv_part_columns", part},
      {"dkv_columns", isWhole ? part : 2 * part},
      {"dkv_swizzle_bytes", part % 64 == 32 ? 64 : 128},
      {"dkv_turns", 0},
      {"dkv_kv_stages", isShort && !isLong ? 2 : 1},
      {"dkv_q_stages", isShort && !isLong   ? 4
                       : isWhole && !isFull ? 3
                                            : 2},
      {"dkv_do_stages", (isShort && !isLong) || isWide ? 3 : 2},
      {"dkv_row_stages", isFull ? 4 : 1},
      {"dkv_out_apart", isShort || isWide || !isWhole || part % 64 == 32},
      {"dkv_stack_columns", (isLong ? 8 : 4) * tileKeys},
      {"dkv_warps", tileKeys / 16},
      {"dkv_producer_registers", isNarrow  ? 32
                                 : isWhole ? 24
                                           : 40},
      {"dkv_consumer_registers", isNarrow  ? 224
                                 : isWide  ? 240
                                 : isWhole ? 232
                                           : 248}};
}

} // namespace

Tuning sm90BackwardTuning(const ProblemClass &kind, bool hasLists,
                          bool hasPlaces) {
  Tuning tuning = queryTuning(kind, hasLists);
  tuning.merge(keyTuning(kind, hasLists, hasPlaces));
  if (hasPlaces)
    tuning.merge(keptTuning(kind));
  tuning.merge(Tuning{{"delta_rows", 128},
                      {"delta_warps", 4},
                      {"delta_ctas", 4},
                      {"invert_keys", 32},
                      {"invert_warps", 8},
                      {"invert_rows", 256},
                      {"invert_ctas", 4},
                      {"loss_rows", 8},
                      {"loss_warps", 8},
                      {"loss_ctas", 3},
                      {"total_rows", 1},
                      {"total_warps", 32}});
  return tuning;
}

} // namespace spargejit::plan

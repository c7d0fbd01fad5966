// SPDX-License-Identifier: Apache-2.0
//
// Selection from one row of block scores, by threads that work together: the
// rules of kernels/portable/select_blocks.mlir, and users' own. `Group` says
// who they are:
//
//   int lane() const, size() const     number of this thread, and of all
//   void sync() const                  what one wrote, all see
//   int max(int), sum(int); double sum(double)   over all, in a fixed order
//   int before(bool flag, int &total)  how many lower lanes have the flag, and
//                                      how many in all
//
// Plain C++, so that the host can compile it for a group of one.
#pragma once

#ifndef __CUDACC_RTC__
#include <math.h> // NVRTC has its functions built in
#endif

namespace spargejit::device {

/// Below the key of every score: blocks that causality hides.
inline constexpr int kHidden = -2147483647 - 1;
/// Without <limits>.
inline constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000);

/// An integer of the same order as the scores. NaN is -inf; -0 and 0 are one.
inline int keyOfScore(float score) {
  if (!(score == score))
    score = -kInfinity;
  int bits = __builtin_bit_cast(int, score + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

inline float scoreOfKey(int key) {
  return __builtin_bit_cast(float, key ^ ((key >> 31) & 0x7fffffff));
}

/// A row of block scores and where its list goes.
struct Row {
  /// keyOfScore() of each key block, or kHidden.
  const int *keys;
  /// Filled by weighScores().
  float *weights;
  int blocks;
  /// The block that is kept whatever its score, or -1, and how many of the
  /// first ones are. Hidden ones never are.
  int forcedBlock;
  int forcedFirst;
  int *list;
  int capacity;
  int *count;
  /// Blocks [denseFirst, denseEnd) are kept, too.
  int denseFirst = 0;
  int denseEnd = 0;
};

/// The largest score of a row and the sum of exp(score - max), which is what
/// top-p and probabilities go by.
struct RowMass {
  float max;
  double sum;
};

/// weights[j] = exp(score - max), or, where max is +inf, 1 for +inf and 0 for
/// all others; 0 for hidden blocks. max is -inf where nothing else is seen.
template <class Group>
RowMass weighScores(const Group &group, const Row &row) {
  int best = keyOfScore(-kInfinity);
  for (int j = group.lane(); j < row.blocks; j += group.size())
    best = row.keys[j] > best ? row.keys[j] : best;
  const float max = scoreOfKey(group.max(best));
  const bool isFinite = max - max == 0;
  constexpr float kLog2E = 1.44269504f;
  double sum = 0;
  for (int j = group.lane(); j < row.blocks; j += group.size()) {
    float weight = 0;
    if (row.keys[j] != kHidden && max > -kInfinity) {
      const float score = scoreOfKey(row.keys[j]);
      weight = isFinite ? exp2f((score - max) * kLog2E) : score == max;
    }
    row.weights[j] = weight;
    sum += weight;
  }
  return {max, group.sum(sum)};
}

/// What a prefix of the ranking must have at least.
struct Wanted {
  int count;
  /// Sum of weights; infinite for all blocks.
  double mass;
};

/// Without a finite score there are no probabilities, and the rank alone
/// decides.
inline Wanted wantedOf(int keptBlocks, float topP, const RowMass &row) {
  const double sum = row.max - row.max == 0 ? row.sum : 0;
  // Rounded sums reach 1 before the last blocks; p = 1 asks for them as well.
  return {keptBlocks > 1 ? keptBlocks : 1,
          topP >= 1 ? double(kInfinity) : double(topP) * sum};
}

/// Blocks whose key is above or at a threshold.
struct Prefix {
  int count;
  double mass;
};

/// Without branches, so that many loads are under way.
template <bool kNeedsMass, class Group>
Prefix sumFrom(const Group &group, const Row &row, int threshold) {
  Prefix prefix{0, 0};
  for (int j = group.lane(); j < row.blocks; j += group.size()) {
    const bool isIn = row.keys[j] >= threshold;
    prefix.count += isIn;
    if constexpr (kNeedsMass)
      prefix.mass += isIn ? row.weights[j] : 0.0f;
  }
  prefix.count = group.sum(prefix.count);
  if constexpr (kNeedsMass)
    prefix.mass = group.sum(prefix.mass);
  return prefix;
}

/// Weights are only read where a mass is wanted.
template <class Group>
Prefix prefixFrom(const Group &group, const Row &row, int threshold,
                  const Wanted &wanted) {
  return wanted.mass > 0 ? sumFrom<true>(group, row, threshold)
                         : sumFrom<false>(group, row, threshold);
}

/// A key t such that the blocks with keys >= t are enough, and those with keys
/// > t are not, or are all of them and as few as may be; kHidden when all
/// blocks are not enough. Found bit by bit, since both conditions only grow as
/// t falls.
template <class Group>
int findThreshold(const Group &group, const Row &row, const Wanted &wanted) {
  int threshold = kHidden;
  for (int bit = 31; bit >= 0; --bit) {
    // Adding 2^31 to the lowest integer wraps to 0, the first candidate.
    const int candidate =
        static_cast<int>(static_cast<unsigned>(threshold) + (1u << bit));
    const Prefix prefix = prefixFrom(group, row, candidate, wanted);
    if (prefix.count < wanted.count || prefix.mass < wanted.mass)
      continue;
    threshold = candidate;
    if (prefix.count == wanted.count)
      break;
  }
  return threshold;
}

/// Writes the list: `isWanted(j, isHere)` is asked for each block in ascending
/// order, by all threads at once, and with isHere = false where a thread has no
/// block. Forced blocks join, hidden ones never do.
template <class Group, class IsWanted>
void writeList(const Group &group, const Row &row, IsWanted isWanted) {
  int length = 0;
  for (int first = 0; first < row.blocks; first += group.size()) {
    const int j = first + group.lane();
    const bool isHere = j < row.blocks && row.keys[j] != kHidden;
    bool keep = isWanted(j, isHere);
    keep = isHere && (keep || j == row.forcedBlock || j < row.forcedFirst ||
                      (j >= row.denseFirst && j < row.denseEnd));
    int kept = 0;
    const int place = length + group.before(keep, kept);
    if (keep && place < row.capacity)
      row.list[place] = j;
    length += kept;
  }
  for (int i = length + group.lane(); i < row.capacity; i += group.size())
    row.list[i] = -1;
  if (group.lane() == 0)
    *row.count = length;
}

/// The shortest prefix of the ranking (score descending, ties to the lower
/// number) that is enough.
template <class Group>
void selectRanked(const Group &group, const Row &row, const Wanted &wanted) {
  const int threshold = findThreshold(group, row, wanted);
  const Prefix above = threshold == 0x7fffffff
                           ? Prefix{0, 0}
                           : prefixFrom(group, row, threshold + 1, wanted);
  const int missingCount = wanted.count - above.count;
  const double missingMass = wanted.mass - above.mass;
  int ties = 0;
  writeList(group, row, [&](int j, bool isHere) {
    // Of the blocks that tie at the threshold, each is needed if those before
    // it, of equal mass, are not enough.
    const bool isTied = isHere && row.keys[j] == threshold;
    int tied = 0;
    const int earlier = ties + group.before(isTied, tied);
    ties += tied;
    return isHere &&
           (row.keys[j] > threshold ||
            (isTied && (earlier < missingCount ||
                        (wanted.mass > 0 &&
                         earlier * double(row.weights[j]) < missingMass))));
  });
}

} // namespace spargejit::device

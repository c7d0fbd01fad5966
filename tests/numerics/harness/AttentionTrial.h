// SPDX-License-Identifier: Apache-2.0
//
// One call of attention under test: inputs drawn at random in hostile memory,
// outputs poisoned before the call, everything compared afterwards.
#pragma once

#include "spargejit/attention.h"
#include "tests/numerics/harness/TestTensor.h"
#include "tests/reference/ReferenceAttention.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spargejit::numerics {

using reference::BlockMask;
using reference::Random;

/// Shapes and meaning of a call.
struct AttentionCase {
  DataType dtype = DataType::Float32;
  std::int64_t batch = 1;
  std::int64_t qHeads = 1;
  std::int64_t kvHeads = 1;
  std::int64_t qLen = 128;
  std::int64_t kvLen = 128;
  std::int64_t headDim = 64;
  std::int64_t maskBlockQ = 128;
  std::int64_t maskBlockKv = 64;
  bool causal = false;
  std::optional<double> softmaxScale = std::nullopt;
  /// Largest magnitude of a scaled score, where that is beyond what normally
  /// distributed inputs give; widens the bounds.
  double largestScore = 0;
  Placement inputs = {};
  Placement outputs = {};

  std::int64_t qBlocks() const { return reference::ceilDiv(qLen, maskBlockQ); }
  std::int64_t kvBlocks() const {
    return reference::ceilDiv(kvLen, maskBlockKv);
  }
  double scale() const;
  /// One line with all fields, for SCOPED_TRACE.
  std::string describe() const;

  BlockMask emptyMask() const;
  BlockMask fullMask() const;
  /// Each pair of blocks with probability `density`; with `varied`, each row of
  /// the mask has its own density between none and all.
  BlockMask randomMask(Random &random, double density,
                       bool varied = false) const;
};

/// How a mask is spelt as lists.
struct ListStyle {
  bool shuffled = false;
  /// Unused slots hold valid, negative and huge numbers in place of -1.
  bool garbageSuffix = false;
  /// Entries outside [0, kvBlocks) stand among the counted ones.
  bool strayEntries = false;
  /// Slots beyond the longest row's need.
  std::int64_t spareSlots = 0;
};

/// `shape` as far as the back end implements it: with another data type in
/// place of float32, and with plain layouts.
AttentionCase withinAbilities(const TestBackend &backend, AttentionCase shape);

/// The lists of `mask`, in CPU memory.
BlockLists makeLists(const AttentionCase &shape, const BlockMask &mask,
                     const ListStyle &style, Random &random);

/// The lists in CPU memory, from wherever they are.
BlockLists listsOnHost(TestBackend &backend, const BlockLists &lists);

class AttentionTrial {
public:
  /// q, k, v drawn from a normal distribution and rounded to the data type;
  /// every key attended to until a mask is given. What the back end does not
  /// implement is replaced (withinAbilities()).
  AttentionTrial(TestBackend &backend, const AttentionCase &shape,
                 Random &random);

  /// From now on method "block_sparse" with this bool mask, or with its lists
  /// where the back end takes no masks.
  void useMask(const BlockMask &mask);
  /// From now on method "block_sparse" with lists of this mask.
  void useLists(const BlockMask &mask, Random &random,
                const ListStyle &style = {});
  /// From now on method "block_sparse" with these lists, in the CPU's memory or
  /// in the back end's.
  void useLists(const BlockLists &lists);

  /// Poisons o and lse, calls attentionInto, fetches o and lse.
  Status run();

  /// No input written, nothing beside the elements of o and lse written.
  testing::AssertionResult memoryIsIntact() const;
  /// o and lse of the last run against the reference, within the bounds of
  /// the data type; all of `rows` (all rows, or so many that the float64 work
  /// stays small, when empty).
  testing::AssertionResult matchesReference(Random &random) const;
  testing::AssertionResult
  matchesReference(const std::vector<std::int64_t> &rows) const;
  /// run(), memoryIsIntact() and matchesReference(); for a scale that the back
  /// end does not implement, that it says so.
  testing::AssertionResult isRight(Random &random);

  reference::AttentionValues
  expected(const std::vector<std::int64_t> &rows = {}) const;

  AttentionCase shape;
  TestTensor q;
  TestTensor k;
  TestTensor v;
  TestTensor o;
  TestTensor lse;
  AttentionConfig config;
  /// Whether lse is asked for.
  bool wantsLse = true;
  /// The mask in use, for the reference.
  std::optional<BlockMask> mask;

private:
  std::vector<std::int64_t> rowsToCheck(Random &random) const;
  Tensor toBackend(const Tensor &tensor) const;

  TestBackend *backend_;
  std::optional<TestTensor> maskTensor_;
  std::optional<BlockLists> lists_;
};

/// Bits of o and lse after a run that must succeed; empty when it failed (and
/// the failure is recorded).
struct OutputBits {
  std::vector<std::byte> o;
  std::vector<std::byte> lse;
  friend bool operator==(const OutputBits &, const OutputBits &) = default;
};
OutputBits runForBits(AttentionTrial &trial);

/// Success, or a failure with code and message.
testing::AssertionResult succeeded(const Status &status);
/// A failure with this code whose message holds every one of `parts`.
testing::AssertionResult failedWith(const Status &status, ErrorCode code,
                                    const std::vector<std::string> &parts);

} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// One selection under test against the float64 reference, row by row.
#pragma once

#include "spargejit/attention.h"
#include "tests/numerics/harness/TestTensor.h"
#include "tests/reference/BlockMask.h"
#include "tests/reference/ReferenceSelection.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::numerics {

/// Which method, with which numbers.
struct SelectionRule {
  std::string method = "spargeattention2";
  double topK = 0.03;
  double topP = 0.2;
  /// For a method file that takes one.
  std::string customSource = {};
  TokenRange denseKeys = {};
  TokenRange denseRows = {};
  /// What a method file forces, for the reference.
  bool keepDiagonal = false;
  std::int64_t keepFirst = 0;
};

struct SelectionCase {
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
  Placement placement = {};

  std::int64_t qBlocks() const { return reference::ceilDiv(qLen, maskBlockQ); }
  std::int64_t kvBlocks() const {
    return reference::ceilDiv(kvLen, maskBlockKv);
  }
  std::string describe(const SelectionRule &rule) const;
};

/// Rows compared so far; rows that rounding may decide either way are counted
/// apart.
struct SelectionTally {
  std::int64_t rows = 0;
  std::int64_t nearTies = 0;
};

class SelectionTrial {
public:
  SelectionTrial(TestBackend &backend, const SelectionCase &shape);

  AttentionConfig configOf(const SelectionRule &rule) const;
  /// Uploads q and k and selects; the lists in CPU memory.
  Result<BlockLists> select(const SelectionRule &rule);

  /// What float64 selects, row by row.
  std::vector<reference::SelectedRow> expected(const SelectionRule &rule) const;

  /// Selects, and compares every row of the lists with the reference: equal,
  /// or a near-tie; ascending, -1 behind the count.
  testing::AssertionResult isRight(const SelectionRule &rule,
                                   SelectionTally &tally);

  SelectionCase shape;
  TestTensor q;
  TestTensor k;
  /// softmaxScale of the calls; 1/sqrt(headDim) when not set.
  std::optional<double> softmaxScale;

private:
  reference::SelectionRules rulesOf(const SelectionRule &rule) const;

  TestBackend *backend_;
};

/// Row `row` (of batch·qHeads·qBlocks) of lists in CPU memory: the counted
/// entries.
std::vector<std::int32_t> listOf(const BlockLists &lists, std::int64_t row);

/// All bytes of indices and counts.
std::vector<std::int32_t> everyEntryOf(const BlockLists &lists);

} // namespace spargejit::numerics

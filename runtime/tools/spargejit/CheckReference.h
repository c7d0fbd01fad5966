// SPDX-License-Identifier: Apache-2.0
//
// The float64 reference of `spargejit check`: plain loops over the block lists,
// maximum first and sums second, no tiles and no code of the library.
#pragma once

#include "runtime/tools/spargejit/report/Progress.h"
#include "spargejit/attention.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::tool {

/// What to compare: inputs as rounded to the dtype under test, and the output,
/// lse and lists that a call gave. q, k, v, o are float32 views
/// [batch, heads, length, headDim]; lse is float32 [batch, qHeads, qLen].
struct ReferenceProblem {
  TensorView q, k, v, o, lse;
  const BlockLists *lists = nullptr;
  double softmaxScale = 1;
  bool causal = false;
};

/// One query row.
struct QueryRow {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;
};

/// Error of one output over the rows compared.
struct ErrorSummary {
  double relL2 = 0;
  /// The largest absolute error, and where.
  double maxError = 0;
  QueryRow maxRow;
  std::int64_t maxChannel = 0; ///< of o; 0 for lse
  double maxFound = 0;
  double maxExpected = 0;
  /// The largest absolute value of the reference; of lse at least 1.
  double largest = 0;
  /// Elements that are NaN or infinite in one of the two only, or infinite with
  /// different signs; the first of them is described.
  std::int64_t notFiniteAlike = 0;
  std::string firstNotFinite;
};

struct CheckReport {
  std::int64_t rowsChecked = 0;
  std::int64_t rowsTotal = 0;
  ErrorSummary o;
  /// relL2 of lse is |lse - lse'|₂ over the Euclidean length of
  /// max(1, |lse|), so that values near zero do not inflate it.
  ErrorSummary lse;
};

/// The rows to compare: all of them when `wanted` is at least their number,
/// else about `wanted`, spread evenly over all batches and heads with a random
/// offset in each interval (from `seed`), first and last row of each head
/// included.
std::vector<QueryRow> chooseRows(const TensorView &q, std::int64_t wanted,
                                 std::uint64_t seed);

/// How many rows cost about five seconds on two cores, from the keys that the
/// lists select; at least 64.
std::int64_t affordableRows(const ReferenceProblem &problem);

/// InvalidArgument when the lists are not what the library promises: ascending,
/// in range, -1 in unused slots.
Status checkLists(const BlockLists &lists);

/// Compares the rows on `threads` threads, reporting a unit of progress a row.
CheckReport compareWithReference(const ReferenceProblem &problem,
                                 const std::vector<QueryRow> &rows, int threads,
                                 report::Progress &progress);

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// The one comparison that every numerics test uses, and the one table of
// bounds.
#pragma once

#include "spargejit/attention.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::reference {

/// What a result may differ from the float64 reference by.
struct ErrorBounds {
  double relativeL2 = 0;     ///< |actual - expected|_2 / |expected|_2
  double maxAbsolute = 0;    ///< max |actual - expected| / max |expected|
  double cosineDistance = 0; ///< 1 - cos(actual, expected)

  /// Of two results that each lie within these bounds of a third.
  ErrorBounds twice() const {
    return {2 * relativeL2, 2 * maxAbsolute, 4 * cosineDistance};
  }
};

/// Bounds for o, by data type of q, k, v and o; see Comparison.cpp for where
/// the numbers come from. They hold for up to 131 072 keys a row. Scores of
/// magnitudes up to `largestScore` widen them; below 16 they need not be told.
ErrorBounds attentionBounds(DataType type, double largestScore = 0);

/// Largest |actual - expected| of lse; `largestScore` is the largest magnitude
/// of a scaled score in the case.
double lseBound(DataType type, double largestScore);

/// Bounds for o of a call in eight bits, against attention of q, k and v as
/// they are rounded.
ErrorBounds eightBitBounds(Precision precision);

/// The same against q, k and v as they are before; `scoreSpread` is the
/// standard deviation of a row's scaled scores.
ErrorBounds eightBitBoundsOfOriginal(Precision precision, double scoreSpread);

/// Largest |actual - expected| of lse against attention of the rounded inputs.
double eightBitLseBound(Precision precision);

/// Largest |actual - expected|_2 of a gradient as a share of the larger of
/// |expected|_2 and the L2 norm of all terms that it sums (Gradients, in
/// ReferenceGradients.h), which stands for it where terms cancel.
double gradientBound(DataType type);

struct Comparison {
  /// One element and its place in row-major order.
  struct Element {
    std::size_t index = 0;
    double actual = 0;
    double expected = 0;
  };

  double relativeL2 = 0;
  double maxAbsolute = 0; ///< relative to the largest |expected|
  double cosineDistance = 0;
  double largestError = 0; ///< max |actual - expected|, not relative
  double errorL2 = 0;      ///< |actual - expected|_2, not relative
  double expectedL2 = 0;   ///< |expected|_2
  /// Elements where one side is NaN or infinite and the other is not the same.
  std::int64_t nonFiniteMismatches = 0;
  /// The elements that differ most, non-finite mismatches first.
  std::vector<Element> worst;

  bool isWithin(const ErrorBounds &bounds) const {
    // Written so that a NaN measure fails.
    return nonFiniteMismatches == 0 && relativeL2 <= bounds.relativeL2 &&
           maxAbsolute <= bounds.maxAbsolute &&
           cosineDistance <= bounds.cosineDistance;
  }
  bool isWithin(double absoluteBound) const {
    return nonFiniteMismatches == 0 && largestError <= absoluteBound;
  }

  /// All measures, and the worst elements with their coordinates in a dense
  /// tensor of `sizes`.
  std::string describe(const std::vector<std::int64_t> &sizes) const;
};

/// Positions of NaN and of each infinity must be equal; the measures are taken
/// over the elements that are finite on both sides. Sizes that differ count as
/// mismatches.
Comparison compare(const std::vector<double> &actual,
                   const std::vector<double> &expected);

} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// Measures of difference, and the bounds with their derivation.
#include "tests/reference/Comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace spargejit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kWorstKept = 4;

bool agreesNonFinite(double actual, double expected) {
  if (std::isnan(actual) || std::isnan(expected))
    return std::isnan(actual) && std::isnan(expected);
  return actual == expected; // at least one is infinite
}

/// How bad one element is, for the list of the worst.
double severity(const Comparison::Element &element) {
  const double error = std::fabs(element.actual - element.expected);
  return std::isfinite(error) ? error : kInfinity;
}

void keepWorst(std::vector<Comparison::Element> &worst,
               const Comparison::Element &element) {
  if (worst.size() == kWorstKept && severity(worst.back()) >= severity(element))
    return;
  const auto place =
      std::find_if(worst.begin(), worst.end(), [&](const auto &other) {
        return severity(other) < severity(element);
      });
  worst.insert(place, element);
  if (worst.size() > kWorstKept)
    worst.pop_back();
}

double ratio(double numerator, double denominator) {
  if (numerator == 0)
    return 0;
  return denominator > 0 ? numerator / denominator : kInfinity;
}

} // namespace

// Unit roundoffs: u32 = 2^-24 = 6.0e-8, bfloat16 2^-9 = 2.0e-3 (8 significant
// bits), float16 2^-12 = 2.4e-4 (subnormal below 6e-5).
//
// float32. A score of D <= 256 products has a rounding error of some
// sqrt(D)·u32·|q||k|·scale ≈ 16·u32 for unit-variance inputs; it becomes the
// relative error of exp(s). Those errors are independent between keys, as are
// v's weights, so |o - o'|/|o| stays near 10·u32 whatever the length. The bound
// 2e-6 is 33·u32. A single element may be some sigmas worse. A score of
// magnitude |s| is itself rounded, to u32·|s|, and again when it is scaled for
// a base-2 exponential: 2·u32·|s| relative in exp(s), which passes 2e-6 at |s|
// of 16.
//
// bfloat16, float16. Inputs are rounded before both sides see them. What is
// left: probabilities rounded to the type before the second product (relative
// u each, averaging out as above) and o rounded to the type (uniform in
// [-u, u], so u/sqrt(3) in L2): sqrt(u²/3 + u²/3) = 0.8·u = 1.6e-3 in bfloat16.
// The bound is 3e-3 for both types. A single element: half a unit in the last
// place of o plus the same from the probabilities, twice over.
ErrorBounds attentionBounds(DataType type, double largestScore) {
  ErrorBounds bounds;
  bounds.relativeL2 = type == DataType::Float32 ? 2e-6 : 3e-3;
  bounds.maxAbsolute = type == DataType::Float32    ? 2e-5
                       : type == DataType::BFloat16 ? 8e-3
                                                    : 3e-3;
  const double scoreError = 2 * 0x1p-24 * largestScore;
  bounds.relativeL2 = std::max(bounds.relativeL2, scoreError);
  bounds.maxAbsolute = std::max(bounds.maxAbsolute, 2 * scoreError);
  // 1 - cos = relativeL2² / 2 to first order, plus rounding of this test.
  bounds.cosineDistance = bounds.relativeL2 * bounds.relativeL2 + 1e-14;
  return bounds;
}

// Eight bits. Rounding to three bits of mantissa is off by up to 2^-4 of a
// number, uniformly within its octave: 2.6e-2 in L2 (a model on the CPU and an
// H200 agree: bench/results/2026-11-30-h200-attention-fp8.md). Weights have
// that error each, independently, and where values have no mean, o has it too;
// where they have, normalising takes most of it out. A mantissa that is linear
// between powers of two adds up to 6 %: 3.1e-2 together. Few keys average less,
// for which the bounds leave half as much again.
//
// Against what was rounded: v adds its 2.6e-2, and a score is off by sqrt(2)
// 2.6e-2 of itself, which a weight is off by in turn.
namespace {

constexpr double kRoundingError = 2.6e-2, kLinearError = 3.1e-2;

double weightError(Precision precision) {
  return precision == Precision::Fp8Fast ? kLinearError : kRoundingError;
}

ErrorBounds boundsOf(double relativeL2) {
  // The largest of thousands of normally distributed errors.
  return {1.5 * relativeL2, 4 * relativeL2, 2.25 * relativeL2 * relativeL2};
}

} // namespace

ErrorBounds eightBitBounds(Precision precision) {
  return boundsOf(weightError(precision));
}

ErrorBounds eightBitBoundsOfOriginal(Precision precision, double scoreSpread) {
  return boundsOf(std::hypot(weightError(precision), kRoundingError,
                             std::sqrt(2) * kRoundingError * scoreSpread));
}

// A weight that stands alone is off by up to half a unit of its last bit, 2^-4,
// and with a linear mantissa by 6 % more.
double eightBitLseBound(Precision precision) {
  return precision == Precision::Fp8Fast ? 0.13 : 0.065;
}

// lse = m + ln l: the error of a score (above, near 4e-6 at worst for
// unit-variance inputs) averaged by softmax, plus u32·|lse| for the last
// addition, |lse| <= max|s| + ln(keys) with ln(keys) <= 12. Scores themselves
// carry 4·u32 relative where they are large. Paths with 16-bit inputs may keep
// the scores at reduced precision: 2e-3.
double lseBound(DataType type, double largestScore) {
  const double base = type == DataType::Float32 ? 2e-5 : 2e-3;
  return base + 4 * 0x1p-24 * largestScore;
}

// A term of a gradient is p (d_o·v - delta) times an element of q or k, or p
// times one of d_o. float32: p has the error of exp(s) above, d_o·v and delta
// some sqrt(D)·u32 of their own size, so a term's is near 20·u32 = 1.2e-6, and
// sums average them out; lse adds u32·|lse| to all of a row's at once, 7e-7 for
// |lse| of 12. 16-bit types: delta sums products of an o rounded to the type,
// p and d_s may be rounded before the second products, and the result is:
// sqrt(3)·0.6 u = 2e-3 in bfloat16 (measured 2.3e-3 to 2.9e-3 for kernels of
// that kind).
double gradientBound(DataType type) {
  return type == DataType::Float32 ? 1e-5 : 6e-3;
}

Comparison compare(const std::vector<double> &actual,
                   const std::vector<double> &expected) {
  Comparison result;
  if (actual.size() != expected.size()) {
    result.nonFiniteMismatches =
        static_cast<std::int64_t>(std::max(actual.size(), expected.size()));
    return result;
  }
  double errorSquares = 0;
  double expectedSquares = 0;
  double actualSquares = 0;
  double product = 0;
  double largestExpected = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double x = actual[i];
    const double y = expected[i];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (!agreesNonFinite(x, y)) {
        ++result.nonFiniteMismatches;
        keepWorst(result.worst, {i, x, y});
      }
      continue;
    }
    const double error = std::fabs(x - y);
    errorSquares += error * error;
    expectedSquares += y * y;
    actualSquares += x * x;
    product += x * y;
    largestExpected = std::max(largestExpected, std::fabs(y));
    result.largestError = std::max(result.largestError, error);
    if (error > 0)
      keepWorst(result.worst, {i, x, y});
  }
  result.errorL2 = std::sqrt(errorSquares);
  result.expectedL2 = std::sqrt(expectedSquares);
  result.relativeL2 = ratio(result.errorL2, result.expectedL2);
  result.maxAbsolute = ratio(result.largestError, largestExpected);
  const double norms = std::sqrt(actualSquares) * std::sqrt(expectedSquares);
  result.cosineDistance = errorSquares == 0 ? 0
                          : norms > 0       ? 1 - product / norms
                                            : 1;
  return result;
}

std::string Comparison::describe(const std::vector<std::int64_t> &sizes) const {
  std::ostringstream out;
  out.precision(9);
  out << "relative L2 " << relativeL2 << ", max absolute / max|expected| "
      << maxAbsolute << ", cosine distance " << cosineDistance
      << ", largest error " << largestError << ", non-finite mismatches "
      << nonFiniteMismatches << "\n";
  for (const Element &element : worst) {
    std::vector<std::size_t> coordinates(sizes.size());
    std::size_t rest = element.index;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      coordinates[d] = rest % static_cast<std::size_t>(sizes[d]);
      rest /= static_cast<std::size_t>(sizes[d]);
    }
    out << "  at [";
    for (std::size_t d = 0; d < coordinates.size(); ++d)
      out << (d == 0 ? "" : ", ") << coordinates[d];
    out << "]: actual " << element.actual << ", expected " << element.expected
        << "\n";
  }
  return out.str();
}

} // namespace spargejit::reference

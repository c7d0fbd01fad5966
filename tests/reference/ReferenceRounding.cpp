// SPDX-License-Identifier: Apache-2.0
//
// Scores of rounded q and k are in eighths of an octave: with u = 8 log2(e)
// scale, q is multiplied with u r and k with 1 / r, where r makes their largest
// elements equal; each channel of v so that its largest element becomes 32. The
// largest elements are those of a sample of the rows; where another row's would
// round to 448 all the same, they are those of all rows, and v's become 448.
#include "tests/reference/ReferenceRounding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace spargejit::reference {
namespace {

constexpr double kUnitsPerScore = 8 / std::numbers::ln2;
/// The largest of eight bits, and the least number that rounds to it.
constexpr double kLargest = 448, kRoundsToLargest = 432;
/// What the largest of a channel's sample becomes.
constexpr double kSampleReach = 32;
/// No peak is taken for less.
constexpr double kLeastPeak = 0x1p-60, kLeastPeakOfV = 0x1p-110;

/// Whether a row is in the sample: eight times 32, from the first to the last.
bool isSampled(std::int64_t row, std::int64_t rows) {
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::int64_t first = i * std::max<std::int64_t>(rows - 32, 0) / 7;
    if (row >= first && row < first + 32)
      return true;
  }
  return false;
}

/// By channel the largest |x| of a head's rows, or of the sample; NaN counts
/// for none.
std::vector<double> peaksOf(const TensorView &x, std::int64_t b, std::int64_t h,
                            bool isSample) {
  std::vector<double> most(static_cast<std::size_t>(x.sizes[3]), 0.0);
  for (std::int64_t n = 0; n < x.sizes[2]; ++n) {
    if (isSample && !isSampled(n, x.sizes[2]))
      continue;
    for (std::int64_t d = 0; d < x.sizes[3]; ++d)
      if (const double size = std::fabs(elementAt(x, b, h, n, d));
          size > most[static_cast<std::size_t>(d)])
        most[static_cast<std::size_t>(d)] = size;
  }
  return most;
}

double largestOf(const std::vector<double> &peaks) {
  return *std::ranges::max_element(peaks);
}

struct Peaks {
  double q = 0, k = 0;
  std::vector<double> v;
};

/// Of a head of k, and of all heads of q that read it.
Peaks groupPeaks(const AttentionArguments &a, std::int64_t b, std::int64_t g,
                 bool isSample) {
  const std::int64_t group = a.q.sizes[1] / a.k.sizes[1];
  Peaks peaks;
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h)
    peaks.q = std::max(peaks.q, largestOf(peaksOf(a.q, b, h, isSample)));
  peaks.k = largestOf(peaksOf(a.k, b, g, isSample));
  peaks.v = peaksOf(a.v, b, g, isSample);
  return peaks;
}

struct Factors {
  double q = 0, k = 0;
  std::vector<double> v;
};

Factors factorsFrom(const Peaks &peaks, double unit, double reachOfV) {
  const double root =
      unit == 0 ? 1.0
                : std::sqrt(std::max(peaks.k, kLeastPeak) /
                            (std::fabs(unit) * std::max(peaks.q, kLeastPeak)));
  Factors factors{unit * root, 1 / root, {}};
  for (const double peak : peaks.v)
    factors.v.push_back(reachOfV / std::max(peak, kLeastPeakOfV));
  return factors;
}

bool saturates(const Peaks &peaks, const Factors &factors) {
  double most = std::max(peaks.q * std::fabs(factors.q), peaks.k * factors.k);
  for (std::size_t d = 0; d < peaks.v.size(); ++d)
    most = std::max(most, peaks.v[d] * factors.v[d]);
  return most >= kRoundsToLargest;
}

std::unique_ptr<HostArray> arrayLike(const TensorView &x) {
  return std::make_unique<HostArray>(DataType::Float8E4M3, x.sizes);
}

void roundHead(const TensorView &x, std::int64_t b, std::int64_t h,
               const double *factors, bool byChannel, HostArray &into) {
  for (std::int64_t n = 0; n < x.sizes[2]; ++n)
    for (std::int64_t d = 0; d < x.sizes[3]; ++d)
      into.set(b, h, n, d,
               elementAt(x, b, h, n, d) * factors[byChannel ? d : 0]);
}

} // namespace

RoundedInputs roundInputs(const AttentionArguments &a) {
  RoundedInputs result{
      arrayLike(a.q), arrayLike(a.k), arrayLike(a.v), {}, {}, {}, {}};
  const std::int64_t kvHeads = a.k.sizes[1], group = a.q.sizes[1] / kvHeads;
  const double unit = kUnitsPerScore * a.softmaxScale;
  for (std::int64_t b = 0; b < a.q.sizes[0]; ++b) {
    for (std::int64_t g = 0; g < kvHeads; ++g) {
      Factors factors =
          factorsFrom(groupPeaks(a, b, g, true), unit, kSampleReach);
      const Peaks all = groupPeaks(a, b, g, false);
      const bool isAgain = saturates(all, factors);
      if (isAgain)
        factors = factorsFrom(all, unit, kLargest);
      result.roundedAgain.push_back(isAgain);
      result.kFactors.push_back(factors.k);
      roundHead(a.k, b, g, &factors.k, false, *result.k);
      for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
        result.qFactors.push_back(factors.q);
        roundHead(a.q, b, h, &factors.q, false, *result.q);
      }
      for (const double factor : factors.v)
        result.vScales.push_back(1 / factor);
      roundHead(a.v, b, g, factors.v.data(), true, *result.v);
    }
  }
  return result;
}

AttentionValues attentionOfRounded(const RoundedInputs &rounded,
                                   const AttentionArguments &arguments) {
  AttentionArguments a = arguments;
  a.q = rounded.q->view();
  a.k = rounded.k->view();
  a.v = rounded.v->view();
  a.softmaxScale = 1 / kUnitsPerScore;
  AttentionValues values = referenceAttention(a);
  const auto headDim = static_cast<std::size_t>(a.q.sizes[3]);
  const std::size_t rows = values.rows.size();
  const std::int64_t qHeads = a.q.sizes[1], kvHeads = a.k.sizes[1];
  for (std::size_t i = 0; i < values.o.size(); ++i) {
    const auto head = static_cast<std::int64_t>(i / headDim / rows);
    const std::int64_t b = head / qHeads,
                       g = head % qHeads / (qHeads / kvHeads);
    values.o[i] *=
        rounded.vScales[static_cast<std::size_t>(b * kvHeads + g) * headDim +
                        i % headDim];
  }
  return values;
}

} // namespace spargejit::reference

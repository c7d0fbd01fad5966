// SPDX-License-Identifier: Apache-2.0
//
// Scores of rounded q and k are in eighths of an octave: with u = 8 log2(e)
// scale, q is multiplied with u r and k with 1 / r, where r makes their largest
// elements equal; each channel of v with 448 over its largest element.
#include "tests/reference/ReferenceRounding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace spargejit::reference {
namespace {

constexpr double kUnitsPerScore = 8 / std::numbers::ln2;
constexpr double kLargest = 448;

/// The largest |x| of a head's channels [first, end); NaN counts for none.
double peakOf(const TensorView &x, std::int64_t b, std::int64_t h,
              std::int64_t first, std::int64_t end) {
  double most = 0;
  for (std::int64_t n = 0; n < x.sizes[2]; ++n)
    for (std::int64_t d = first; d < end; ++d)
      if (const double size = std::fabs(elementAt(x, b, h, n, d)); size > most)
        most = size;
  return most;
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
      arrayLike(a.q), arrayLike(a.k), arrayLike(a.v), {}, {}, {}};
  const std::int64_t kvHeads = a.k.sizes[1], group = a.q.sizes[1] / kvHeads;
  const std::int64_t headDim = a.q.sizes[3];
  const double unit = kUnitsPerScore * a.softmaxScale;
  for (std::int64_t b = 0; b < a.q.sizes[0]; ++b) {
    for (std::int64_t g = 0; g < kvHeads; ++g) {
      double qPeak = 0;
      for (std::int64_t h = g * group; h < (g + 1) * group; ++h)
        qPeak = std::max(qPeak, peakOf(a.q, b, h, 0, headDim));
      const double kPeak = peakOf(a.k, b, g, 0, headDim);
      const double reach = std::fabs(unit) * qPeak;
      const double root =
          reach > 0 && kPeak > 0 ? std::sqrt(kPeak / reach) : 1.0;
      const double qFactor = unit * root, kFactor = 1 / root;
      result.kFactors.push_back(kFactor);
      roundHead(a.k, b, g, &kFactor, false, *result.k);
      for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
        result.qFactors.push_back(qFactor);
        roundHead(a.q, b, h, &qFactor, false, *result.q);
      }
      std::vector<double> vFactors;
      for (std::int64_t d = 0; d < headDim; ++d) {
        const double peak = peakOf(a.v, b, g, d, d + 1);
        vFactors.push_back(peak > 0 ? kLargest / peak : 1.0);
        result.vScales.push_back(1 / vFactors.back());
      }
      roundHead(a.v, b, g, vFactors.data(), true, *result.v);
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

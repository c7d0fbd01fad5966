// SPDX-License-Identifier: Apache-2.0
//
// One call in eight bits under test, with the references of the rounded and of
// the original inputs.
#pragma once

#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/ReferenceRounding.h"

#include <functional>
#include <string>

namespace spargejit::numerics {

/// A call in eight bits, with both references.
class EightBitTrial : public AttentionTrial {
public:
  EightBitTrial(TestBackend &backend, const AttentionCase &shape,
                Precision precision, Random &random)
      : AttentionTrial(backend, shape, random) {
    config.precision = precision;
  }

  reference::AttentionArguments arguments() const {
    return {q.host(),
            k.host(),
            v.host(),
            mask ? &*mask : nullptr,
            shape.maskBlockQ,
            shape.maskBlockKv,
            shape.causal,
            shape.scale(),
            {}};
  }

  /// o and lse of the last run against both references.
  testing::AssertionResult matches() const {
    const auto rounded = reference::roundInputs(arguments());
    const auto right = reference::attentionOfRounded(rounded, arguments());
    const auto output = reference::compare(o.values(), right.o);
    if (!output.isWithin(reference::eightBitBounds(config.precision)))
      return failure("o against the rounded inputs: ", output);
    const auto original = reference::compare(o.values(), expected().o);
    if (!original.isWithin(
            reference::eightBitBoundsOfOriginal(config.precision, scoreSpread)))
      return failure("o against the inputs: ", original);
    const auto sums = reference::compare(lse.values(), right.lse);
    if (!sums.isWithin(reference::eightBitLseBound(config.precision)))
      return testing::AssertionFailure()
             << "lse: "
             << sums.describe({shape.batch, shape.qHeads, shape.qLen}) << "  "
             << text();
    return testing::AssertionSuccess();
  }

  testing::AssertionResult isRightInEightBits() {
    if (auto result = succeeded(run()); !result)
      return result << "\n  " << text();
    if (auto result = memoryIsIntact(); !result)
      return result << "\n  " << text();
    return matches();
  }

  /// Standard deviation of a row's scaled scores.
  double scoreSpread = 1;

  std::string text() const {
    return std::string(precisionName(config.precision)) + " " +
           shape.describe();
  }

private:
  testing::AssertionResult failure(const char *what,
                                   const reference::Comparison &found) const {
    return testing::AssertionFailure()
           << what
           << found.describe(
                  {shape.batch, shape.qHeads, shape.qLen, shape.headDim})
           << "  " << text();
  }
};

/// Every element through `change`, which is given the element and its place.
inline void changeAll(
    TestTensor &tensor,
    const std::function<double(double, std::int64_t row, std::int64_t channel)>
        &change) {
  const std::vector<double> values = tensor.values();
  const std::int64_t rows = tensor.host().sizes[2],
                     channels = tensor.host().sizes[3];
  std::size_t at = 0;
  tensor.fill([&] {
    const auto place = static_cast<std::int64_t>(at);
    return change(values[at++], place / channels % rows, place % channels);
  });
}

} // namespace spargejit::numerics

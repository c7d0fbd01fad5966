// SPDX-License-Identifier: Apache-2.0
//
// What suites of calls in eight bits share: modes, head dimensions, and a check
// of every mode, dense and with lists.
#pragma once

#include "tests/numerics/harness/EightBitTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <functional>
#include <vector>

namespace spargejit::numerics {

inline constexpr Precision kModes[] = {
    Precision::Fp8Exact, Precision::Fp8Balanced, Precision::Fp8Fast};

/// Head dimensions of every back end.
inline const std::vector<std::int64_t> kEightBitHeadDims = {64, 96, 128};

class EightBitSuite : public BackendTest {
protected:
  std::vector<std::int64_t> headDims() const {
    std::vector<std::int64_t> dims = kEightBitHeadDims;
    if (backend().abilities().anyEightBitWidth && !isReduced())
      dims.insert(dims.end(), {40, 256});
    return dims;
  }
  /// Each mode, dense and with lists, on inputs that `fill` changes.
  void expectRight(AttentionCase shape,
                   const std::function<void(EightBitTrial &)> &fill) {
    for (const Precision precision : kModes)
      for (const bool hasLists : {false, true}) {
        EightBitTrial trial(backend(), shape, precision, random);
        fill(trial);
        if (hasLists)
          trial.useLists(shape.randomMask(random, 0.5, true), random);
        EXPECT_TRUE(trial.isRightInEightBits()) << (hasLists ? "lists" : "");
      }
  }
  Random random = randomForTest();
};

} // namespace spargejit::numerics

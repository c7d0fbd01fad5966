// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same on every machine and standard library:
// SplitMix64 (Steele, Lea, Flood 2014) and sums of its 16-bit pieces.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace spargejit::reference {

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, count); count > 0. The bias of the remainder is below
  /// 2^-40 for every count used in tests.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() %
                                     static_cast<std::uint64_t>(count));
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  bool chance(double probability) { return uniform() < probability; }

  template <typename T>
  const T &pick(const std::vector<T> &choices) {
    return choices[static_cast<std::size_t>(
        below(static_cast<std::int64_t>(choices.size())))];
  }

  /// Mean 0, variance 1, nearly normal (sum of four uniforms), within
  /// [-3.47, 3.47].
  double normal() {
    const std::uint64_t bits = next();
    const auto sum =
        static_cast<double>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                            ((bits >> 32) & 0xffff) + (bits >> 48));
    // Variance of one 16-bit uniform is (2^32 - 1) / 12.
    return (sum - 131070.0) * 2.6428998e-5;
  }

  template <typename T>
  void shuffle(std::vector<T> &values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<std::size_t>(
                                   below(static_cast<std::int64_t>(i)))]);
  }

  /// A generator whose numbers are independent of the rest of this one's.
  Random split() { return Random(next()); }

private:
  std::uint64_t state_;
};

} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// Loops of float32 multiply-adds, one for each instruction set that they are
// compiled for.
#pragma once

namespace spargejit::bench {

/// A loop of independent multiply-adds that stay in registers.
struct FmaLoop {
  /// "avx2", "avx512", "baseline".
  const char *name;
  /// Whether this machine has the instructions.
  bool (*isSupported)();
  /// Multiply-adds of one iteration: accumulators times lanes.
  int perIteration;
  /// Sets every accumulator to `start`, does accumulator = accumulator·factor +
  /// addend `iterations` times and writes all `perIteration` of them to
  /// `results`.
  void (*run)(long long iterations, float start, float factor, float addend,
              float *results);
};

/// No loop has a larger `perIteration`.
inline constexpr int kMostFmasPerIteration = 1024;

#if defined(__x86_64__)
extern const FmaLoop kFmaLoopAvx2;
extern const FmaLoop kFmaLoopAvx512;
#endif
/// With what the compiler uses when it is not told anything.
extern const FmaLoop kFmaLoopBaseline;

} // namespace spargejit::bench

// SPDX-License-Identifier: Apache-2.0
//
// What this machine's cores reach when they do nothing but float32
// multiply-adds: the yardstick of every "share of peak".
#pragma once

#include "bench/cpu/peak/FmaLoop.h"

#include <vector>

namespace spargejit::bench {

class FmaPeak {
public:
  /// Takes the loop that is fastest here. Throws std::runtime_error when a
  /// loop does not do the operations that are counted for it.
  FmaPeak();

  const FmaLoop &loop() const { return *loop_; }
  /// True when a multiply-add is one instruction that rounds once.
  bool isFused() const { return fused_; }

  /// GFLOP/s (a multiply-add is two) of `threads` threads together, each timed
  /// on a CPU of its own for about `milliseconds` while all others run. Throws
  /// as the constructor does.
  double measure(int threads, double milliseconds) const;

  /// All loops that this machine can run.
  static std::vector<const FmaLoop *> supportedLoops();

private:
  const FmaLoop *loop_ = nullptr;
  bool fused_ = false;
};

/// GFLOP/s of one thread that runs `loop` for about `milliseconds`.
double measureLoop(const FmaLoop &loop, double milliseconds);

} // namespace spargejit::bench

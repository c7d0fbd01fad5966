// SPDX-License-Identifier: Apache-2.0
//
// A progress line on standard error for work of more than two seconds:
// redrawn in place on a terminal, a line every two seconds elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace spargejit::report {

/// Work is measured in units of the caller's choice. Steps that report nothing
/// while they run are extrapolated from the speed of the steps before.
/// The work itself stays on the caller's thread; this class has a thread of its
/// own for drawing.
class Progress {
public:
  Progress();
  /// Ends the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Units of all steps from here on; 0 (unknown) until it is called.
  void expect(double units);
  /// Begins a step of `units`, which ends the one before.
  void step(const std::string &label, double units);
  /// Adds units done inside the step, from any thread; for steps that know.
  void advance(std::int64_t units) { advanced_ += units; }
  /// Ends the last step and takes the line away from the terminal.
  void finish();

private:
  using Clock = std::chrono::steady_clock;

  void drawLoop();
  void draw();
  void endStep();
  std::string line() const;

  const bool terminal_;
  const Clock::time_point start_ = Clock::now();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  bool drawn_ = false;
  std::string label_;
  double total_ = 0;
  double done_ = 0;
  double stepUnits_ = 0;
  double measuredUnits_ = 0;   ///< units of ended steps that count for speed
  double measuredSeconds_ = 0; ///< and the time they took
  Clock::time_point stepStart_ = Clock::now();
  std::atomic<std::int64_t> advanced_{0};

  std::thread thread_; // last: starts when all else is there
};

} // namespace spargejit::report

// SPDX-License-Identifier: Apache-2.0
//
// Times several pieces of work in turns, so that a machine that becomes slower
// or faster meanwhile does so for all of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spargejit::bench {

/// A sample of each run of one piece of work.
struct Series {
  std::vector<double> wallMs;
  double cpuMs = 0; ///< CPU time of this process, all runs together

  double medianMs() const;
  /// {"ms": median, "min_ms", "max_ms", "runs", "cores": CPU time / wall time}.
  nlohmann::ordered_json json() const;
};

/// Adds one run to `series`.
void timeOnce(const std::function<void()> &work, Series &series);

struct Task {
  std::string label;
  std::function<void()> run;
};

/// How often tasks run: `rounds` times in turns, where short tasks run several
/// times in a row, until `roundMs` have passed or `mostInRound` runs are done.
struct Effort {
  int rounds = 5;
  double roundMs = 20;
  int mostInRound = 10;
};

/// Runs each task (there is one) once to warm up, then measures all; the result
/// has one series for each task. Says on standard error what it does.
std::vector<Series> measureInTurns(const std::vector<Task> &tasks,
                                   const Effort &effort);

/// Quantile q in [0, 1] of `values`, interpolated; `values` is not empty.
double quantile(std::vector<double> values, double q);

/// A line on standard error with the time since the start of the process.
void note(const std::string &text);

} // namespace spargejit::bench

// SPDX-License-Identifier: Apache-2.0
//
// Timing.h.
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace spargejit::bench {

namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point kProcessStart = Clock::now();

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

/// CPU time of all threads of this process.
double cpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_nsec) * 1e-6;
}

} // namespace

void note(const std::string &text) {
  fmt::print(stderr, "  {:5.1f} s  {}\n",
             millisecondsSince(kProcessStart) / 1e3, text);
  std::fflush(stderr);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  double position = q * static_cast<double>(values.size() - 1);
  auto low = static_cast<std::size_t>(std::floor(position));
  auto high = static_cast<std::size_t>(std::ceil(position));
  double weight = position - std::floor(position);
  return values[low] * (1 - weight) + values[high] * weight;
}

double Series::medianMs() const { return quantile(wallMs, 0.5); }

nlohmann::ordered_json Series::json() const {
  double total = std::accumulate(wallMs.begin(), wallMs.end(), 0.0);
  return {{"ms", medianMs()},
          {"min_ms", quantile(wallMs, 0)},
          {"max_ms", quantile(wallMs, 1)},
          {"runs", wallMs.size()},
          {"cores", cpuMs / total}};
}

void timeOnce(const std::function<void()> &work, Series &series) {
  double cpuStart = cpuMilliseconds();
  auto start = Clock::now();
  work();
  series.wallMs.push_back(millisecondsSince(start));
  series.cpuMs += cpuMilliseconds() - cpuStart;
}

std::vector<Series> measureInTurns(const std::vector<Task> &tasks,
                                   const Effort &effort) {
  note(fmt::format("warming up {} measurements: {} … {}", tasks.size(),
                   tasks.front().label, tasks.back().label));
  for (const Task &task : tasks)
    task.run();
  std::vector<Series> all(tasks.size());
  for (int round = 0; round < effort.rounds; ++round) {
    note(fmt::format("round {} of {}", round + 1, effort.rounds));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      auto start = Clock::now();
      int runs = 0;
      do {
        timeOnce(tasks[i].run, all[i]);
        ++runs;
      } while (runs < effort.mostInRound &&
               millisecondsSince(start) < effort.roundMs);
    }
  }
  return all;
}

} // namespace spargejit::bench

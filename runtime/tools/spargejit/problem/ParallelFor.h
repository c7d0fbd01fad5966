// SPDX-License-Identifier: Apache-2.0
//
// Spreads independent items over threads: for the command's own work (making
// inputs, the float64 reference), not for anything that is timed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace spargejit::problem {

/// `threads` as given, or the number of processors when it is 0.
inline int threadCount(int threads) {
  if (threads > 0)
    return threads;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// Calls body(worker, item) once for each item of [0, items), on up to
/// `threads` threads; worker < threads tells them apart. `body` must not throw.
template <typename Body>
void parallelFor(std::int64_t items, int threads, const Body &body) {
  std::atomic<std::int64_t> next{0};
  auto work = [&](int worker) {
    for (std::int64_t item = next++; item < items; item = next++)
      body(worker, item);
  };
  std::vector<std::thread> others;
  for (int worker = 1; worker < threads && worker < items; ++worker)
    others.emplace_back(work, worker);
  work(0);
  for (std::thread &other : others)
    other.join();
}

} // namespace spargejit::problem

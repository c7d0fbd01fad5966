// SPDX-License-Identifier: Apache-2.0
//
// The CPU's workers: runs the programs of a launch on several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace spargejit::cpu {

/// A caller and `threadCount() - 1` helpers. Thread-safe: several callers may
/// share one pool, and a body may itself call parallelFor.
class WorkerPool {
public:
  /// Helpers that cannot be started (a limit of the system) are done without.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  /// The calling thread included; at least 1.
  int threadCount() const;

  /// Calls body(begin, end) for ranges that together cover [0, count) exactly
  /// once, on at most `threads` threads (0: all of the pool), the caller's
  /// among them, and returns when all have returned. With one thread or one
  /// item everything runs in the caller, in one range. The body must not throw.
  template <typename Body>
  void parallelFor(std::int64_t count, int threads, Body &&body) {
    using Callable = std::remove_reference_t<Body>;
    run(count, threads,
        RangeFunction{[](void *context, std::int64_t begin, std::int64_t end) {
                        (*static_cast<Callable *>(context))(begin, end);
                      },
                      const_cast<void *>(static_cast<const void *>(&body))});
  }

  /// The process's pool, with as many threads as the process may run on
  /// (sched_getaffinity) at the first call. It lives until the process ends. A
  /// child made by fork() has none of its parent's threads and gets a pool of
  /// its own at its first call.
  static WorkerPool &process();

private:
  struct RangeFunction {
    void (*function)(void *, std::int64_t, std::int64_t);
    void *context;
  };
  class Job;
  struct Helpers;

  void run(std::int64_t count, int threads, RangeFunction body);

  std::unique_ptr<Helpers> helpers_;
};

} // namespace spargejit::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Helpers wait in an asio::thread_pool. One launch is one job: an atomic
// counter that the caller and the helpers draw ranges from.
#include "runtime/backend/cpu/WorkerPool.h"

#include "runtime/base/Log.h"

#include <algorithm>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <sched.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spargejit::cpu {

/// The shared state of one parallelFor. Helpers that come late find nothing
/// left to draw, so the caller need not wait for them; they share ownership
/// because they may come after it has returned.
class WorkerPool::Job {
public:
  Job(std::int64_t count, int threads, RangeFunction body)
      : body_(body), count_(count),
        // Some sixteen draws a thread even out rows of unequal cost.
        chunk_(std::clamp<std::int64_t>(count / (16 * threads), 1, 64)) {}

  void work() {
    std::int64_t begin;
    while ((begin = next_.fetch_add(chunk_, std::memory_order_relaxed)) <
           count_) {
      std::int64_t end = std::min(begin + chunk_, count_);
      body_.function(body_.context, begin, end);
      // Release: who sees the sum sees what the bodies wrote.
      std::int64_t before =
          done_.fetch_add(end - begin, std::memory_order_acq_rel);
      if (before + (end - begin) == count_)
        done_.notify_all();
    }
  }

  void waitUntilDone() {
    // The last range of a launch is often nearly done when the caller gets
    // here; waking up from the kernel's wait costs more than this spin.
    constexpr int kSpins = 2000;
    for (int i = 0; i < kSpins; ++i)
      if (done_.load(std::memory_order_acquire) == count_)
        return;
    std::int64_t done;
    while ((done = done_.load(std::memory_order_acquire)) != count_)
      done_.wait(done, std::memory_order_acquire);
  }

private:
  const RangeFunction body_;
  const std::int64_t count_;
  const std::int64_t chunk_;
  // Two cache lines: every draw writes the one, every finished range the other.
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::int64_t> done_{0};
};

struct WorkerPool::Helpers {
  // The pool starts no threads itself: where one cannot be started, asio 1.22
  // would wait for the others for ever.
  asio::thread_pool queue{0};
  std::vector<std::thread> threads;
};

WorkerPool::WorkerPool(int threads) : helpers_(std::make_unique<Helpers>()) {
  helpers_->threads.reserve(static_cast<std::size_t>(std::max(threads, 1)));
  for (int i = 1; i < threads; ++i) {
    try {
      helpers_->threads.emplace_back([this] { helpers_->queue.attach(); });
    } catch (const std::system_error &error) {
      logFormatted(LogLevel::Warning,
                   "worker pool: only {} of {} threads could be started: {}", i,
                   threads, error.what());
      break;
    }
  }
}

WorkerPool::~WorkerPool() {
  helpers_->queue.stop();
  for (std::thread &thread : helpers_->threads)
    thread.join();
}

int WorkerPool::threadCount() const {
  return static_cast<int>(helpers_->threads.size()) + 1;
}

void WorkerPool::run(std::int64_t count, int threads, RangeFunction body) {
  if (count <= 0)
    return;
  int wanted = threads == 0 ? threadCount() : std::min(threads, threadCount());
  wanted = static_cast<int>(std::min<std::int64_t>(wanted, count));
  if (wanted <= 1) {
    body.function(body.context, 0, count);
    return;
  }
  auto job = std::make_shared<Job>(count, wanted, body);
  for (int i = 1; i < wanted; ++i)
    asio::post(helpers_->queue, [job] { job->work(); });
  job->work();
  job->waitUntilDone();
}

namespace {

int allowedThreads() {
  // A machine may have more CPUs than a fixed cpu_set_t holds; the kernel says
  // EINVAL until the set is large enough.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      return 1;
    std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count =
        sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0)
      return count;
  }
  return 1;
}

struct ProcessPool {
  pid_t process;
  WorkerPool pool;
};

} // namespace

WorkerPool &WorkerPool::process() {
  // No lock: one that another thread held at a fork() would stay locked in the
  // child. Never destroyed: helpers may still be running while the process
  // ends, and in a child the parent's helpers do not exist and cannot be
  // joined.
  static std::atomic<ProcessPool *> current{nullptr};
  pid_t self = getpid();
  ProcessPool *pool = current.load(std::memory_order_acquire);
  while (!pool || pool->process != self) {
    auto *fresh = new ProcessPool{self, WorkerPool(allowedThreads())};
    if (current.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
      pool = fresh;
    else
      delete fresh; // another thread was first; look at its pool
  }
  return pool->pool;
}

} // namespace spargejit::cpu

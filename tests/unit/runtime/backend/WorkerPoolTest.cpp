// SPDX-License-Identifier: Apache-2.0
//
// Every item once, whatever the threads, the callers and the process do.
#include "runtime/backend/cpu/WorkerPool.h"

#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <sched.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spargejit::cpu {
namespace {

/// Runs `count` items and returns how often each was visited.
std::vector<int> visit(WorkerPool &pool, std::int64_t count, int threads) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
  pool.parallelFor(count, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      ++visits[static_cast<std::size_t>(i)];
  });
  return {visits.begin(), visits.end()};
}

TEST(WorkerPool, VisitsEveryItemExactlyOnce) {
  auto random = numerics::randomForTest();
  WorkerPool pool(4);
  EXPECT_EQ(pool.threadCount(), 4);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::int64_t count = random.below(repeat < 100 ? 20 : 3000);
    int threads = static_cast<int>(random.below(6));
    ASSERT_EQ(visit(pool, count, threads),
              std::vector<int>(static_cast<std::size_t>(count), 1))
        << count << " items, " << threads << " threads";
  }
}

TEST(WorkerPool, SeesWhatTheBodiesWrote) {
  WorkerPool pool(4);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<std::int64_t> squares(500); // not atomic
    pool.parallelFor(500, 0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        squares[static_cast<std::size_t>(i)] = i * i + repeat;
    });
    for (std::int64_t i = 0; i < 500; ++i)
      ASSERT_EQ(squares[static_cast<std::size_t>(i)], i * i + repeat);
  }
}

TEST(WorkerPool, UsesItsThreadsAndNoMoreThanWanted) {
  WorkerPool pool(4);
  auto threadsSeen = [&](int wanted) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    pool.parallelFor(64, wanted, [&](std::int64_t, std::int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    return seen;
  };
  EXPECT_EQ(threadsSeen(1), std::set{std::this_thread::get_id()});
  EXPECT_LE(threadsSeen(2).size(), 2u);
  EXPECT_GT(threadsSeen(0).size(), 1u);
  EXPECT_LE(threadsSeen(100).size(), 4u);
}

TEST(WorkerPool, RunsOneItemInTheCaller) {
  WorkerPool pool(4);
  std::thread::id worker;
  pool.parallelFor(1, 0, [&](std::int64_t, std::int64_t) {
    worker = std::this_thread::get_id();
  });
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(WorkerPool, OfOneThreadRunsInTheCaller) {
  WorkerPool pool(1);
  EXPECT_EQ(pool.threadCount(), 1);
  EXPECT_EQ(visit(pool, 100, 0), std::vector<int>(100, 1));
}

TEST(WorkerPool, MayBeUsedInsideItsOwnBody) {
  WorkerPool pool(3);
  std::atomic<int> inner{0};
  pool.parallelFor(20, 0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      pool.parallelFor(30, 0, [&](std::int64_t from, std::int64_t to) {
        inner += static_cast<int>(to - from);
      });
  });
  EXPECT_EQ(inner, 600);
}

TEST(WorkerPool, ServesManyCallersAtOnce) {
  WorkerPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat)
        right += visit(pool, 200, 0) == std::vector<int>(200, 1);
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(right, 8 * 50);
}

TEST(WorkerPool, OfTheProcessHasTheThreadsThatItMayRunOn) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(WorkerPool::process().threadCount(), CPU_COUNT(&set));
  EXPECT_EQ(&WorkerPool::process(), &WorkerPool::process());
}

TEST(WorkerPool, OfTheProcessWorksInAForkedChild) {
  ASSERT_EQ(visit(WorkerPool::process(), 1000, 0), std::vector<int>(1000, 1));
  WorkerPool *parents = &WorkerPool::process();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Were the parent's helpers waited for, the alarm would end the child.
    alarm(60);
    bool fresh = &WorkerPool::process() != parents;
    bool right =
        visit(WorkerPool::process(), 1000, 0) == std::vector<int>(1000, 1);
    _exit(fresh && right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // The parent's pool is as it was.
  EXPECT_EQ(&WorkerPool::process(), parents);
  EXPECT_EQ(visit(WorkerPool::process(), 1000, 0), std::vector<int>(1000, 1));
}

} // namespace
} // namespace spargejit::cpu

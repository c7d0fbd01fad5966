// SPDX-License-Identifier: Apache-2.0
//
// One making per key, whatever the threads do.
#include "runtime/base/SingleFlight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <new>
#include <thread>
#include <vector>

namespace spargejit {
namespace {

using Flights = SingleFlight<int, int>;
using Outcome = Flights::Outcome;

TEST(SingleFlight, MakesOnceForManyThreads) {
  Flights flights;
  std::atomic<int> made{0}, agreed{0};
  std::latch start(16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      auto outcome = flights.get(5, [&]() -> Outcome {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::make_shared<const int>(100 + made.fetch_add(1));
      });
      if (outcome.ok() && **outcome == 100)
        ++agreed;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(agreed, 16);
  EXPECT_EQ(flights.size(), 1u);
}

TEST(SingleFlight, TellsWhatItHad) {
  Flights flights;
  bool hit = true;
  auto make = []() -> Outcome { return std::make_shared<const int>(1); };
  ASSERT_TRUE(flights.get(1, make, &hit).ok());
  EXPECT_FALSE(hit);
  ASSERT_TRUE(flights.get(1, make, &hit).ok());
  EXPECT_TRUE(hit);
  ASSERT_TRUE(flights.get(2, make, &hit).ok());
  EXPECT_FALSE(hit);
}

TEST(SingleFlight, KeepsAFailure) {
  Flights flights;
  int made = 0;
  auto make = [&]() -> Outcome {
    ++made;
    return Status(ErrorCode::CompileFailed, "line 3: no");
  };
  for (int i = 0; i < 3; ++i) {
    auto outcome = flights.get(1, make);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().message(), "line 3: no");
  }
  EXPECT_EQ(made, 1);
}

TEST(SingleFlight, TriesAgainWhereAFailureMayPass) {
  for (ErrorCode code : {ErrorCode::OutOfResources, ErrorCode::DriverError,
                         ErrorCode::IoError}) {
    Flights flights;
    auto outcome =
        flights.get(1, [&]() -> Outcome { return Status(code, "not now"); });
    EXPECT_EQ(outcome.status().message(), "not now");
    EXPECT_EQ(flights.find(1), nullptr);
    outcome = flights.get(
        1, []() -> Outcome { return std::make_shared<const int>(3); });
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(**outcome, 3);
  }
}

TEST(SingleFlight, FindsWhatIsComplete) {
  Flights flights;
  EXPECT_EQ(flights.find(1), nullptr);
  auto outcome = flights.get(1, [&]() -> Outcome {
    EXPECT_EQ(flights.find(1), nullptr);
    return std::make_shared<const int>(3);
  });
  ASSERT_NE(flights.find(1), nullptr);
  EXPECT_EQ(**flights.find(1), *outcome);
  (void)flights.get(
      2, []() -> Outcome { return Status(ErrorCode::Unsupported, "never"); });
  ASSERT_NE(flights.find(2), nullptr);
  EXPECT_EQ(flights.find(2)->status().message(), "never");
}

TEST(SingleFlight, HoldsNoLockWhileMaking) {
  Flights flights;
  // Each key is made inside the making of the one before; with a lock held
  // this would not return.
  std::function<Outcome(int)> nested = [&](int key) -> Outcome {
    return flights.get(key, [&]() -> Outcome {
      if (key == 4)
        return std::make_shared<const int>(1);
      auto inner = nested(key + 1);
      return std::make_shared<const int>(**inner + 1);
    });
  };
  EXPECT_EQ(**nested(0), 5);
}

TEST(SingleFlight, ForgetsAKeyWhoseMakerThrew) {
  Flights flights;
  EXPECT_THROW(
      (void)flights.get(1, []() -> Outcome { throw std::bad_alloc(); }),
      std::bad_alloc);
  EXPECT_EQ(flights.size(), 0u);
  auto outcome = flights.get(
      1, []() -> Outcome { return std::make_shared<const int>(3); });
  EXPECT_EQ(**outcome, 3);
}

/// A hash that tells how often a key was looked up.
struct CountedHash {
  static inline std::atomic<int> lookUps{0};
  std::size_t operator()(int key) const {
    ++lookUps;
    return static_cast<std::size_t>(key);
  }
};

TEST(SingleFlight, TellsThoseWhoWaitWhenTheMakerThrew) {
  SingleFlight<int, int, CountedHash> flights;
  std::latch making(1);
  std::atomic<int> before{0};
  std::thread maker([&] {
    auto throwsLate = [&]() -> Outcome {
      before = CountedHash::lookUps.load();
      making.count_down();
      // The other thread looks its key up with the lock held, so it has its
      // share in the flight before the lock is free again.
      while (CountedHash::lookUps.load() == before)
        std::this_thread::yield();
      throw std::bad_alloc();
    };
    EXPECT_THROW((void)flights.get(1, throwsLate), std::bad_alloc);
  });
  making.wait();
  auto outcome = flights.get(
      1, []() -> Outcome { return std::make_shared<const int>(1); });
  maker.join();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), ErrorCode::Internal);
}

} // namespace
} // namespace spargejit

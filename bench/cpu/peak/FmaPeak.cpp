// SPDX-License-Identifier: Apache-2.0
//
// FmaPeak.h. With start 0 and factor and addend 1, every lane of every
// accumulator counts its own multiply-adds, exactly up to 2^24: that is how the
// operations are known to have been done.
#include "bench/cpu/peak/FmaPeak.h"

#include <fmt/format.h>

#include <array>
#include <barrier>
#include <chrono>
#include <future>
#include <sched.h>
#include <stdexcept>

namespace spargejit::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Some 0.5 ms at 2.5 GHz.
constexpr long long kIterationsPerBlock = 200'000;

/// Multiply-adds done, from the accumulators alone.
double countedFmas(const FmaLoop &loop, const float *results) {
  double sum = 0;
  for (int i = 0; i < loop.perIteration; ++i)
    sum += static_cast<double>(results[i]);
  return sum;
}

void runBlock(const FmaLoop &loop) {
  std::array<float, kMostFmasPerIteration> results{};
  loop.run(kIterationsPerBlock, 0.0F, 1.0F, 1.0F, results.data());
  double expected = static_cast<double>(kIterationsPerBlock) *
                    static_cast<double>(loop.perIteration);
  double counted = countedFmas(loop, results.data());
  if (counted != expected)
    throw std::runtime_error(
        fmt::format("peak loop {}: expected {} multiply-adds, counted {}",
                    loop.name, expected, counted));
}

/// x·x + c with x = 1 + 2^-12 and c = -(1 + 2^-11) is 2^-24; a product that is
/// rounded before the sum gives 0.
bool roundsOnce(const FmaLoop &loop) {
  std::array<float, kMostFmasPerIteration> results{};
  loop.run(1, 1.0F + 0x1p-12F, 1.0F + 0x1p-12F, -(1.0F + 0x1p-11F),
           results.data());
  for (int i = 0; i < loop.perIteration; ++i)
    if (results[static_cast<std::size_t>(i)] != 0x1p-24F)
      return false;
  return true;
}

/// CPUs that this process may run on; none where they cannot be asked for.
std::vector<int> allowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  return cpus;
}

/// Keeps the calling thread on one CPU: two on the same would halve the sum
/// of a short sample, and where it is refused that is all that happens.
void stayOn(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

} // namespace

double measureLoop(const FmaLoop &loop, double milliseconds) {
  const auto limit = std::chrono::duration<double, std::milli>(milliseconds);
  const auto start = Clock::now();
  std::chrono::duration<double> elapsed{};
  double blocks = 0;
  do {
    runBlock(loop);
    blocks += 1;
    elapsed = Clock::now() - start;
  } while (elapsed < limit);
  return 2e-9 * blocks * static_cast<double>(kIterationsPerBlock) *
         static_cast<double>(loop.perIteration) / elapsed.count();
}

std::vector<const FmaLoop *> FmaPeak::supportedLoops() {
  std::vector<const FmaLoop *> loops{&kFmaLoopBaseline};
#if defined(__x86_64__)
  loops.push_back(&kFmaLoopAvx2);
  loops.push_back(&kFmaLoopAvx512);
#endif
  std::erase_if(loops,
                [](const FmaLoop *loop) { return !loop->isSupported(); });
  return loops;
}

FmaPeak::FmaPeak() {
  double best = 0;
  for (const FmaLoop *loop : supportedLoops()) {
    measureLoop(*loop, 2); // wakes the wide units up
    double rate = measureLoop(*loop, 5);
    if (rate > best) {
      best = rate;
      loop_ = loop;
    }
  }
  fused_ = roundsOnce(*loop_);
}

double FmaPeak::measure(int threads, double milliseconds) const {
  const std::vector<int> cpus = allowedCpus();
  std::barrier<> together(threads);
  auto work = [&](int number) {
    if (!cpus.empty())
      stayOn(cpus[static_cast<std::size_t>(number) % cpus.size()]);
    together.arrive_and_wait();
    measureLoop(*loop_, milliseconds / 10);
    return measureLoop(*loop_, milliseconds);
  };
  std::vector<std::future<double>> rates;
  for (int i = 0; i < threads; ++i)
    rates.push_back(std::async(std::launch::async, work, i));
  double sum = 0;
  for (std::future<double> &rate : rates)
    sum += rate.get();
  return sum;
}

} // namespace spargejit::bench

// SPDX-License-Identifier: Apache-2.0
//
// Launches: programs, scratch, threads.
#include "runtime/backend/cpu/CpuBackend.h"

#include "spargejit/library.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

namespace spargejit::cpu {
namespace {

/// A kernel over one tensor [b, h, n, d] that counts its programs in a float
/// array given as the tensor, one element a program.
LaunchInfo countingInfo(std::int64_t tile) {
  LaunchInfo info;
  info.entryName = "counting";
  info.arguments = {{"flag", KernelArgument::Kind::Index, 0, 0},
                    {"x", KernelArgument::Kind::Tensor, 4, 1}};
  info.gridArgument = 1;
  info.gridTile = tile;
  return info;
}

std::vector<std::int64_t> slotsFor(void *data, std::int64_t b, std::int64_t h,
                                   std::int64_t n, std::int64_t d) {
  return {0, std::bit_cast<std::int64_t>(data), b, h, n, d, h * n * d, n * d, d,
          1};
}

void countProgram(const std::int64_t *args, std::int64_t program, void *) {
  ++std::bit_cast<std::atomic<int> *>(args[1])[program];
}

TEST(CpuBackend, RunsEveryProgramOnce) {
  for (int threads : {0, 1, 2})
    for (std::int64_t length : {0, 1, 15, 16, 17, 1000}) {
      LaunchInfo info = countingInfo(16);
      std::int64_t expected = 2 * 3 * ((length + 15) / 16);
      std::vector<std::atomic<int>> counts(
          static_cast<std::size_t>(expected + 1));
      auto slots = slotsFor(counts.data(), 2, 3, length, 64);
      ASSERT_EQ(programCount(info, slots.data()), expected);
      ASSERT_TRUE(runLaunch(info, countProgram, slots.data(), threads).ok());
      for (std::int64_t i = 0; i < expected; ++i)
        ASSERT_EQ(counts[static_cast<std::size_t>(i)], 1) << i;
      ASSERT_EQ(counts.back(), 0);
    }
}

TEST(CpuBackend, AddsUpScratch) {
  LaunchInfo info = countingInfo(16);
  info.staticScratchBytes = 100;
  // 3 bytes a column, columns to a multiple of 8, counted by sizes[2].
  info.dynamicScratch = {{3, 8, 4}, {1, 1, 0}};
  auto slots = slotsFor(nullptr, 1, 1, 61, 64);
  slots[0] = 65;
  EXPECT_EQ(scratchBytes(info, slots.data()), 128 + 192 + 128);
}

/// Fills its scratch and checks that nobody else writes there meanwhile.
void fillScratch(const std::int64_t *args, std::int64_t program,
                 void *scratch) {
  auto *bytes = static_cast<unsigned char *>(scratch);
  auto mark = static_cast<unsigned char>(program);
  std::memset(bytes, mark, 4096);
  bool same = reinterpret_cast<std::uintptr_t>(scratch) % 64 == 0;
  for (int i = 0; i < 4096; ++i)
    same = same && static_cast<volatile unsigned char *>(bytes)[i] == mark;
  if (same)
    ++std::bit_cast<std::atomic<int> *>(args[1])[program];
}

TEST(CpuBackend, GivesEachWorkerItsOwnAlignedScratch) {
  LaunchInfo info = countingInfo(1);
  info.staticScratchBytes = 4096;
  std::vector<std::atomic<int>> counts(2000);
  auto slots = slotsFor(counts.data(), 1, 1, 2000, 64);
  ASSERT_TRUE(runLaunch(info, fillScratch, slots.data(), 0).ok());
  for (const auto &count : counts)
    ASSERT_EQ(count, 1);
}

TEST(CpuBackend, ReusesScratchBetweenLaunches) {
  LaunchInfo info = countingInfo(1);
  info.staticScratchBytes = 4096;
  std::vector<std::atomic<int>> counts(2000);
  auto slots = slotsFor(counts.data(), 1, 1, 2000, 64);
  ASSERT_TRUE(runLaunch(info, fillScratch, slots.data(), 1).ok());
  const std::int64_t before = counters().bytesAllocated;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(runLaunch(info, fillScratch, slots.data(), 1).ok());
  EXPECT_EQ(counters().bytesAllocated, before);
}

TEST(CpuBackend, TellsWhenThereIsNoMemoryForScratch) {
  LaunchInfo info = countingInfo(1);
  info.staticScratchBytes = std::int64_t{1} << 60;
  std::vector<std::atomic<int>> counts(4);
  auto slots = slotsFor(counts.data(), 1, 1, 4, 64);
  Status status = runLaunch(info, countProgram, slots.data(), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::OutOfResources);
  EXPECT_EQ(status.message(), "1152921504606846976 bytes of scratch for a "
                              "worker of counting cannot be had");
  for (const auto &count : counts)
    EXPECT_EQ(count, 0);
}

} // namespace
} // namespace spargejit::cpu

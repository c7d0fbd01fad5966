// SPDX-License-Identifier: Apache-2.0
//
// Memory of the fake device, which a test can read.
#include "runtime/backend/cuda/DeviceMemory.h"

#include "runtime/base/KernelSpec.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace spargejit::cuda {
namespace {

class DeviceMemoryTest : public unit::FakeDeviceTest {
protected:
  std::size_t blocks() const { return fake_.allocations.size(); }
  const std::size_t blocksBefore_ = fakeBlocks();

private:
  static std::size_t fakeBlocks() {
    return unit::fakeCuda().allocations.size();
  }
};

TEST_F(DeviceMemoryTest, IsFreedWithItsLastReference) {
  auto memory = allocateMemory(*device_, 1000);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(fake_.allocations.at(memory->get()), 1000u);
  auto copy = *memory;
  memory = Status(ErrorCode::Internal, "");
  EXPECT_EQ(blocks(), blocksBefore_ + 1);
  copy.reset();
  EXPECT_EQ(blocks(), blocksBefore_);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(DeviceMemoryTest, HasAnAddressEvenForNothing) {
  auto memory = allocateMemory(*device_, 0);
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  EXPECT_NE(memory->get(), nullptr);
}

TEST_F(DeviceMemoryTest, TellsHowMuchCannotBeHad) {
  auto memory = allocateMemory(*device_, std::int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), ErrorCode::OutOfResources);
  EXPECT_EQ(memory.status().message(),
            "1125899906842624 bytes of memory on cuda:0: cuMemAlloc failed: "
            "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
}

TEST_F(DeviceMemoryTest, ComesToTheHostAfterTheStream) {
  std::vector<int> from{1, 2, 3}, to(3);
  ASSERT_TRUE(copyToHost(*device_, from.data(), to.data(), 12, stream(4)).ok());
  EXPECT_EQ(to, from);
  EXPECT_EQ(fake_.callsOf("cuStreamSynchronize"), 1);
  fake_.failures["cuStreamSynchronize"] = {999};
  EXPECT_EQ(copyToHost(*device_, from.data(), to.data(), 12, stream(4)).code(),
            ErrorCode::DriverError);
}

TEST_F(DeviceMemoryTest, ComesFromTheHostAfterTheStream) {
  std::vector<int> from{1, 2, 3}, to(3);
  ASSERT_TRUE(
      copyFromHost(*device_, from.data(), to.data(), 12, stream(4)).ok());
  EXPECT_EQ(to, from);
  EXPECT_EQ(fake_.callsOf("cuStreamSynchronize"), 1);
  fake_.failures["cuMemcpyHtoDAsync_v2"] = {700};
  EXPECT_EQ(
      copyFromHost(*device_, from.data(), to.data(), 12, stream(4)).code(),
      ErrorCode::DriverError);
}

TEST_F(DeviceMemoryTest, FillsTheElementsOfAViewAndNothingElse) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::int64_t batch = 1 + random.below(3), heads = 1 + random.below(3),
                       rows = 1 + random.below(9), dim = 8;
    const bool lengthMajor = random.below(2) == 0;
    const std::int64_t pad = random.below(3);
    const std::int64_t row = lengthMajor ? heads * dim + pad : dim + pad;
    const std::int64_t head = lengthMajor ? dim : rows * row;
    const std::int64_t whole = lengthMajor ? rows * row : heads * head;
    std::vector<std::uint16_t> memory(static_cast<std::size_t>(batch * whole),
                                      0x5a5a);
    auto view =
        TensorView::strided(memory.data(), DataType::BFloat16,
                            {batch, heads, rows, dim}, {whole, head, row, 1});
    ASSERT_TRUE(fillZeros(*device_, view, nullptr).ok());
    std::size_t zeros = 0;
    for (std::uint16_t value : memory)
      zeros += value == 0;
    EXPECT_EQ(zeros, static_cast<std::size_t>(view.elementCount()));
    for (std::int64_t i = 0; i < batch * heads * rows * dim; ++i)
      EXPECT_EQ(
          memory[static_cast<std::size_t>(i / (heads * rows * dim) * whole +
                                          i / (rows * dim) % heads * head +
                                          i / dim % rows * row + i % dim)],
          0);
  }
}

TEST_F(DeviceMemoryTest, FillsWordsInRowsAndColumns) {
  for (std::int64_t stride : {1, 3}) {
    std::vector<std::uint32_t> memory(64, 7);
    auto view = TensorView::strided(memory.data(), DataType::Float32, {2, 2, 5},
                                    {32, 16, stride});
    ASSERT_TRUE(fillWords(*device_, view, 0xff800000, nullptr).ok());
    std::vector<std::uint32_t> expected(64, 7);
    for (std::size_t base : {0, 16, 32, 48})
      for (std::size_t i = 0; i < 5; ++i)
        expected[base + i * static_cast<std::size_t>(stride)] = 0xff800000;
    EXPECT_EQ(memory, expected);
  }
}

TEST_F(DeviceMemoryTest, CountsUp) {
  std::vector<std::int32_t> memory(2 * 3 * 4 * 5, -7);
  auto view =
      TensorView::contiguous(memory.data(), DataType::Int32, {2, 3, 4, 5});
  ASSERT_TRUE(fillCounting(*device_, view, nullptr).ok());
  for (std::size_t i = 0; i < memory.size(); ++i)
    EXPECT_EQ(memory[i], static_cast<std::int32_t>(i % 5));
}

TEST_F(DeviceMemoryTest, KeepsAWorkspaceForEachStream) {
  Workspaces workspaces(*device_);
  void *first = workspaces.take(1000, stream(5))->base;
  void *other = workspaces.take(1000, stream(6))->base;
  EXPECT_NE(first, other);
  fake_.calls.clear();
  EXPECT_EQ(workspaces.take(400, stream(5))->base, first);
  EXPECT_EQ(workspaces.take(1000, stream(6))->base, other);
  EXPECT_EQ(fake_.callsOf("cuMemAlloc_v2"), 0);
}

TEST_F(DeviceMemoryTest, GrowsAWorkspaceAndKeepsWhatAGraphMayUse) {
  {
    Workspaces workspaces(*device_);
    void *small = workspaces.take(1000, stream(5))->base;
    void *large = workspaces.take(1100, stream(5))->base;
    EXPECT_NE(small, large);
    EXPECT_EQ(fake_.allocations.count(small), 1u);
    EXPECT_GE(fake_.allocations.at(large), 2000u);
    EXPECT_EQ(workspaces.take(2000, stream(5))->base, large);
  }
  EXPECT_EQ(blocks(), blocksBefore_);
}

TEST_F(DeviceMemoryTest, PutsZeroedCountersBehindAWorkspace) {
  Workspaces workspaces(*device_);
  auto countersOf = [&](std::int64_t bytes, int number) {
    auto lease = workspaces.take(bytes, stream(number));
    EXPECT_TRUE(lease.ok());
    auto *base = static_cast<std::byte *>(lease->base);
    auto *counters = static_cast<std::byte *>(lease->counters);
    EXPECT_GE(counters - base, bytes);
    EXPECT_EQ((counters - base) % 64, 0);
    EXPECT_LE(static_cast<std::size_t>(counters - base) + 4 * kCounters,
              fake_.allocations.at(base));
    auto *first = static_cast<std::int32_t *>(lease->counters);
    EXPECT_EQ(std::count(first, first + kCounters, 0), kCounters);
    return first;
  };
  std::int32_t *none = countersOf(0, 5);
  EXPECT_EQ(*none, 0);
  EXPECT_EQ(countersOf(0, 5), none);
  EXPECT_NE(countersOf(0, 6), none) << "streams run at once";
  std::int32_t *grown = countersOf(1000, 5);
  EXPECT_NE(grown, none);
  EXPECT_EQ(*grown, 0);
  *grown = 7; // the device's business between launches
  EXPECT_EQ(
      static_cast<std::int32_t *>(workspaces.take(900, stream(5))->counters),
      grown);
  EXPECT_EQ(*grown, 7);
}

TEST_F(DeviceMemoryTest, GrowsBesideACapture) {
  Workspaces workspaces(*device_);
  void *base = workspaces.take(1000, stream(5))->base;
  fake_.capturing.insert(stream(5));
  auto same = workspaces.take(1000, stream(5));
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(same->base, base);
  same->lock.unlock();
  auto more = workspaces.take(5000, stream(5));
  ASSERT_TRUE(more.ok()) << more.status().message();
  EXPECT_EQ(fake_.allocations.count(base), 1u) << "a graph may know it";
  EXPECT_EQ(*static_cast<std::int32_t *>(more->counters), 0);
  // A stream that nobody prepared has memory of its own.
  fake_.capturing.insert(stream(6));
  auto fresh = workspaces.take(1000, stream(6));
  ASSERT_TRUE(fresh.ok()) << fresh.status().message();
  EXPECT_NE(fresh->base, base);
  EXPECT_EQ(*static_cast<std::int32_t *>(fresh->counters), 0);
  // Zeroed at once, by streams that are not captured, and nothing is recorded.
  EXPECT_FALSE(fake_.captureBroken);
  EXPECT_EQ(fake_.callsOf("cuStreamCreate"), 2);
  EXPECT_EQ(fake_.callsOf("cuStreamDestroy_v2"), 2);
  EXPECT_EQ(fake_.callsOf("cuStreamSynchronize"), 2);
  EXPECT_EQ(fake_.capturedFills, 0);
}

TEST_F(DeviceMemoryTest, RefusesTheLegacyStreamBesideACapture) {
  Workspaces workspaces(*device_);
  fake_.capturing.insert(stream(5));
  auto lease = workspaces.take(1000, nullptr);
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(lease.status().message(),
            "config.stream: the stream is being captured, and this call would "
            "have to allocate a workspace: expected a prepare() with these "
            "arguments before the capture");
  EXPECT_FALSE(fake_.captureBroken);
}

TEST_F(DeviceMemoryTest, TellsWhyItCannotGrowBesideACapture) {
  for (const char *symbol : {"cuStreamCreate", "cuMemsetD32Async",
                             "cuStreamSynchronize", "cuStreamDestroy_v2"}) {
    Workspaces workspaces(*device_);
    fake_.capturing = {stream(5)};
    fake_.failures[symbol] = {999};
    auto lease = workspaces.take(1000, stream(5));
    ASSERT_FALSE(lease.ok()) << symbol;
    EXPECT_EQ(lease.status().code(), ErrorCode::DriverError) << symbol;
    auto again = workspaces.take(1000, stream(5));
    EXPECT_TRUE(again.ok()) << symbol;
  }
}

TEST_F(DeviceMemoryTest, LendsAWorkspaceToOneCallAtATime) {
  Workspaces workspaces(*device_);
  auto lease = workspaces.take(1000, stream(5));
  bool taken = false;
  std::thread waiting([&] {
    auto second = workspaces.take(1000, stream(5));
    taken = second.ok();
    EXPECT_EQ(second->base, lease->base);
  });
  // Another stream is not held up meanwhile.
  EXPECT_TRUE(workspaces.take(10, stream(6)).ok());
  EXPECT_FALSE(taken);
  lease->lock.unlock();
  waiting.join();
  EXPECT_TRUE(taken);
}

TEST_F(DeviceMemoryTest, KnowsThePerThreadStreamsApart) {
  Workspaces workspaces(*device_);
  const auto perThread = stream(kStreamPerThread);
  void *mine = workspaces.take(1000, perThread)->base;
  void *theirs = nullptr;
  std::thread([&] { theirs = workspaces.take(1000, perThread)->base; }).join();
  EXPECT_NE(mine, theirs);
}

TEST_F(DeviceMemoryTest, WaitsWhenAStreamsHandleIsUsedAgain) {
  Workspaces workspaces(*device_);
  fake_.streamIds[stream(5)] = 17;
  void *base = workspaces.take(1000, stream(5))->base;
  EXPECT_EQ(workspaces.take(1000, stream(5))->base, base);
  EXPECT_EQ(fake_.callsOf("cuCtxSynchronize"), 0);
  fake_.streamIds[stream(5)] = 18;
  EXPECT_EQ(workspaces.take(1000, stream(5))->base, base);
  EXPECT_EQ(fake_.callsOf("cuCtxSynchronize"), 1);
  EXPECT_EQ(workspaces.take(1000, stream(5))->base, base);
  EXPECT_EQ(fake_.callsOf("cuCtxSynchronize"), 1);
  // A capture breaks when a stream's identity is asked for in it.
  fake_.capturing.insert(stream(5));
  EXPECT_EQ(workspaces.take(1000, stream(5))->base, base);
  EXPECT_FALSE(fake_.captureBroken);
}

} // namespace
} // namespace spargejit::cuda

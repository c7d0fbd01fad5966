// SPDX-License-Identifier: Apache-2.0
//
// The way to the card: loading, launching, contexts, tensor maps, captures and
// errors, with small kernels of the tests' own.
#include "runtime/backend/cuda/DeviceMemory.h"
#include "runtime/jit/AssemblyReport.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/gpu/device/PtxKernels.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/jit/PtxTexts.h"

#include <array>
#include <thread>

namespace spargejit::gpu {
namespace {

using cuda::LoadedKernel;
using Kernel = std::shared_ptr<const LoadedKernel>;

class DriverPath : public GpuTest {
protected:
  Kernel load(const LaunchInfo &info, const char *ptx,
              std::string *log = nullptr) {
    auto kernel = LoadedKernel::load(device(), info, ptx, log);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? *kernel : nullptr;
  }
  /// Slots of a dense tensor of rank 4, and numbers after it.
  static std::vector<std::int64_t>
  slotsOf(const void *data, std::array<std::int64_t, 4> sizes,
          std::vector<std::int64_t> more = {}) {
    std::vector<std::int64_t> slots{reinterpret_cast<std::intptr_t>(data)};
    slots.insert(slots.end(), sizes.begin(), sizes.end());
    slots.insert(slots.end(), {sizes[1] * sizes[2] * sizes[3],
                               sizes[2] * sizes[3], sizes[3], 1});
    slots.insert(slots.end(), more.begin(), more.end());
    return slots;
  }
  std::vector<std::int64_t> addOneSlots(const DeviceArray<std::int32_t> &x) {
    return slotsOf(x.data(), {1, 1, static_cast<std::int64_t>(x.size()), 1});
  }
};

TEST_F(DriverPath, LaunchesAKernelOverAGrid) {
  Kernel kernel = load(addOneInfo(), kAddOnePtx);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(current(), nullptr);
  std::vector<std::int32_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int32_t>(7 * i);
  DeviceArray<std::int32_t> x(gpu(), values);
  auto slots = addOneSlots(x);
  ASSERT_EQ(kernel->run(slots.data(), nullptr).message(), "");
  EXPECT_EQ(current(), nullptr);
  for (std::int32_t &value : values)
    ++value;
  EXPECT_EQ(x.read(), values);
  EXPECT_GT(kernel->resources().registers, 0);
  EXPECT_EQ(kernel->resources().localBytes, 0);
  EXPECT_GE(kernel->resources().residentCtas, 8);
}

TEST_F(DriverPath, GivesBackTheCallersContext) {
  void *other = nullptr;
  gpu().call("cuCtxCreate_v2", &other, 0U, 0); // current from now on
  const cuda::ContextHandle before = current();
  ASSERT_NE(before, nullptr);
  Kernel kernel = load(addOneInfo(), kAddOnePtx);
  EXPECT_EQ(current(), before);
  DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>(128, 1));
  auto slots = addOneSlots(x);
  EXPECT_EQ(kernel->run(slots.data(), nullptr).message(), "");
  EXPECT_EQ(current(), before);
  EXPECT_EQ(x.read(), std::vector<std::int32_t>(128, 2));
  EXPECT_EQ(current(), before);
  gpu().call("cuCtxDestroy_v2", other);
}

TEST_F(DriverPath, NamesAMissingEntry) {
  LaunchInfo info = addOneInfo();
  info.entryName = "add_two";
  auto kernel = LoadedKernel::load(device(), info, kAddOnePtx);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::DriverError);
  EXPECT_NE(
      kernel.status().message().find("entry add_two: cuModuleGetFunction "
                                     "failed: CUDA_ERROR_NOT_FOUND (500)"),
      std::string::npos)
      << kernel.status().message();
}

TEST_F(DriverPath, ComparesTheParametersWithTheCode) {
  LaunchInfo info = addOneInfo();
  info.tensorMaps = copyBoxInfo().tensorMaps;
  auto kernel = LoadedKernel::load(device(), info, kAddOnePtx);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().message(), "add_one: expected parameters of [72, "
                                       "128] bytes in the code, got [72]");
}

TEST_F(DriverPath, GivesTheAssemblersWords) {
  auto kernel = LoadedKernel::load(device(), addOneInfo(), unit::kBrokenPtx);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::CompileFailed);
  const std::string &message = kernel.status().message();
  EXPECT_NE(message.find("CUDA_ERROR_INVALID_PTX (218)"), std::string::npos)
      << message;
  EXPECT_NE(message.find("frobnicate"), std::string::npos) << message;
}

TEST_F(DriverPath, SaysWhichDriverNewerCodeNeeds) {
  std::string ptx = kAddOnePtx;
  ptx.replace(ptx.find("8.0"), 3, "9.9");
  auto kernel = LoadedKernel::load(device(), addOneInfo(), ptx);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::Unsupported)
      << kernel.status().message();
  EXPECT_NE(kernel.status().message().find("PTX 9.9"), std::string::npos);
}

/// PTX that the driver has not seen: it keeps what it assembles, with no log.
std::string unseen(const std::string &ptx) {
  auto random = numerics::randomForTest();
  return ptx + "// " + std::to_string(random.next()) + "\n";
}

TEST_F(DriverPath, ReportsLikePtxas) {
  std::string log;
  LaunchInfo info = addOneInfo();
  info.entryName = "spills";
  info.arguments.clear();
  info.arguments.push_back({"data", KernelArgument::Kind::Index, 0, 0});
  std::string ptx = unseen(unit::spillingPtx(80, 24));
  auto kernel = LoadedKernel::load(device(), info, ptx, &log);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  jit::AssemblyReport report = jit::parseAssemblerLog(log);
  EXPECT_TRUE(report.complete) << log;
  EXPECT_GT(report.spillStoreBytes, 0) << log;
  EXPECT_EQ(report.registers, (*kernel)->resources().registers);
  EXPECT_GT((*kernel)->resources().localBytes, 0);

  info.entryName = "ignored";
  ptx = unseen(unit::kIgnoredRegistersPtx);
  kernel = LoadedKernel::load(device(), info, ptx, &log);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(jit::parseAssemblerLog(log).losses.size(), 1u) << log;

  // What the log says of code that the driver has kept.
  kernel = LoadedKernel::load(device(), info, ptx, &log);
  ASSERT_TRUE(kernel.ok());
  std::printf("log of code seen before: \"%s\"\n", log.c_str());
}

// The box as the copy engine and the tensor core see it: 16-byte pieces of a
// row at place (piece xor row mod 8).
TEST_F(DriverPath, LoadsABoxThroughATensorMap) {
  constexpr std::int64_t kBatch = 2, kHeads = 3, kRows = 40, kColumns = 72;
  Kernel kernel = load(copyBoxInfo(), kCopyBoxPtx);
  ASSERT_TRUE(kernel);
  std::vector<std::uint16_t> values(kBatch * kRows * kHeads * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint16_t>(1 + i);
  DeviceArray<std::uint16_t> x(gpu(), values);
  DeviceArray<std::uint16_t> out(gpu(), 16 * 64);
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 50; ++repeat) {
    const std::int64_t b = random.below(kBatch), h = random.below(kHeads);
    // Also beyond the end, where zeros are read.
    const std::int64_t row = random.below(kRows + 8);
    out.write(std::vector<std::uint16_t>(16 * 64, 0xffff));
    std::vector<std::int64_t> slots{reinterpret_cast<std::intptr_t>(x.data()),
                                    kBatch,
                                    kHeads,
                                    kRows,
                                    kColumns,
                                    kRows * kHeads * kColumns,
                                    kColumns,
                                    kHeads * kColumns,
                                    1};
    auto outSlots = slotsOf(out.data(), {1, 1, 16, 64}, {b, h, row});
    slots.insert(slots.end(), outSlots.begin(), outSlots.end());
    ASSERT_EQ(kernel->run(slots.data(), nullptr).message(), "");
    std::vector<std::uint16_t> found = out.read();
    for (std::int64_t r = 0; r < 16; ++r)
      for (std::int64_t c = 0; c < 64; ++c) {
        std::uint16_t expected =
            row + r < kRows
                ? values[static_cast<std::size_t>(
                      ((b * kRows + row + r) * kHeads + h) * kColumns + c)]
                : 0;
        std::int64_t place = r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8;
        ASSERT_EQ(found[static_cast<std::size_t>(place)], expected)
            << "batch " << b << " head " << h << " row " << row << "+" << r
            << " column " << c;
      }
  }
}

TEST_F(DriverPath, RunsInTheOrderOfItsStream) {
  Kernel spin = load(spinInfo(), kSpinPtx);
  Kernel addOne = load(addOneInfo(), kAddOnePtx);
  Stream stream(gpu()), other(gpu());
  DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>{40});
  DeviceArray<std::int32_t> y(gpu(), std::vector<std::int32_t>{40});
  auto spinSlots = slotsOf(x.data(), {1, 1, 1, 1}, {20'000'000});
  auto slots = addOneSlots(x);
  ASSERT_EQ(spin->run(spinSlots.data(), stream.handle()).message(), "");
  ASSERT_EQ(addOne->run(slots.data(), stream.handle()).message(), "");
  // The other stream does not wait for the first.
  auto otherSlots = addOneSlots(y);
  ASSERT_EQ(addOne->run(otherSlots.data(), other.handle()).message(), "");
  other.synchronise();
  int busy = 0;
  {
    cuda::CurrentContext scope(device());
    auto *query = reinterpret_cast<int (*)(cuda::StreamHandle)>(
        gpu().driver->symbol("cuStreamQuery"));
    busy = query(stream.handle());
  }
  constexpr int kNotReady = 600;
  EXPECT_EQ(busy, kNotReady);
  stream.synchronise();
  EXPECT_EQ(x.read()[0], 2);
  EXPECT_EQ(y.read()[0], 41);
}

TEST_F(DriverPath, ServesThreadsThatHaveNoContext) {
  Kernel addOne = load(addOneInfo(), kAddOnePtx);
  constexpr int kThreads = 8, kLaunches = 200;
  std::vector<std::thread> threads;
  std::vector<std::int32_t> results(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Stream stream(gpu());
      DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>{t});
      auto slots = addOneSlots(x);
      for (int i = 0; i < kLaunches; ++i)
        EXPECT_EQ(addOne->run(slots.data(), stream.handle()).message(), "");
      stream.synchronise();
      results[static_cast<std::size_t>(t)] = x.read()[0];
      EXPECT_EQ(current(), nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int t = 0; t < kThreads; ++t)
    EXPECT_EQ(results[static_cast<std::size_t>(t)], t + kLaunches);
}

TEST_F(DriverPath, CanBeCapturedAndReplayed) {
  Kernel addOne = load(addOneInfo(), kAddOnePtx);
  Stream stream(gpu());
  DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>{0});
  auto slots = addOneSlots(x);
  stream.beginCapture();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(addOne->run(slots.data(), stream.handle()).message(), "");
  EXPECT_EQ(cuda::expectNoCapture(device(), stream.handle(), "do it").code(),
            ErrorCode::InvalidArgument);
  // Other threads may load and allocate meanwhile.
  std::thread([&] {
    EXPECT_TRUE(LoadedKernel::load(device(), spinInfo(), kSpinPtx).ok());
    EXPECT_TRUE(cuda::allocateMemory(device(), 1000).ok());
  }).join();
  Graph graph = stream.endCapture();
  EXPECT_EQ(x.read()[0], 0);
  for (int i = 0; i < 5; ++i)
    graph.launch(stream);
  stream.synchronise();
  EXPECT_EQ(x.read()[0], 15);
}

TEST_F(DriverPath, FillsAndCopiesMemory) {
  DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>(120, -7));
  auto view = TensorView::contiguous(x.data(), DataType::Int32, {2, 3, 4, 5},
                                     {DeviceKind::Cuda, 0});
  ASSERT_EQ(cuda::fillCounting(device(), view, nullptr).message(), "");
  std::vector<std::int32_t> host(120);
  ASSERT_EQ(
      cuda::copyToHost(device(), x.data(), host.data(), 480, nullptr).message(),
      "");
  for (std::size_t i = 0; i < host.size(); ++i)
    EXPECT_EQ(host[i], static_cast<std::int32_t>(i % 5));
  auto column = TensorView::strided(x.data(), DataType::Int32, {1, 1, 24},
                                    {120, 120, 5}, {DeviceKind::Cuda, 0});
  ASSERT_EQ(cuda::fillWords(device(), column, 99, nullptr).message(), "");
  host = x.read();
  for (std::size_t i = 0; i < host.size(); ++i)
    EXPECT_EQ(host[i], i % 5 == 0 ? 99 : static_cast<std::int32_t>(i % 5));
}

TEST_F(DriverPath, TellsHowMuchMemoryCannotBeHad) {
  auto memory = cuda::allocateMemory(device(), std::int64_t{1} << 45);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), ErrorCode::OutOfResources);
  EXPECT_NE(memory.status().message().find("CUDA_ERROR_OUT_OF_MEMORY (2)"),
            std::string::npos);
}

TEST_F(DriverPath, RefusesMoreSharedMemoryThanThereIs) {
  LaunchInfo info = addOneInfo();
  info.sharedBytes = 256 << 10;
  auto kernel = LoadedKernel::load(device(), info, kAddOnePtx);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::OutOfResources);
  info.sharedBytes = device().sharedBytes();
  auto most = LoadedKernel::load(device(), info, kAddOnePtx);
  ASSERT_TRUE(most.ok()) << most.status().message();
  DeviceArray<std::int32_t> x(gpu(), std::vector<std::int32_t>(128, 1));
  auto slots = addOneSlots(x);
  EXPECT_EQ((*most)->run(slots.data(), nullptr).message(), "");
  EXPECT_EQ(x.read(), std::vector<std::int32_t>(128, 2));
}

/// Reads a forbidden address, and prints what later calls say of it. The
/// context is lost with it, so this runs in a process of its own.
void faultAndReport() {
  Gpu *gpu = Gpu::find();
  auto fault = LoadedKernel::load(*gpu->device, faultInfo(), kFaultPtx);
  DeviceArray<std::int32_t> x(*gpu, 1);
  std::vector<std::int64_t> slots{
      reinterpret_cast<std::intptr_t>(x.data()), 1, 1, 1, 1, 1, 1, 1, 1};
  Status launched = (*fault)->run(slots.data(), nullptr);
  cuda::CurrentContext current(*gpu->device);
  gpu->driver->functions().contextSynchronize();
  Status later = (*fault)->run(slots.data(), nullptr);
  std::fprintf(stderr, "launch: %s; later: %s\n",
               launched.ok() ? "given" : launched.message().c_str(),
               later.message().c_str());
  std::fflush(stderr);
  std::_Exit(0);
}

TEST_F(DriverPath, TellsWhatAnEarlierLaunchLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(faultAndReport(), testing::ExitedWithCode(0),
              "launch: given; later: .*an earlier asynchronous launch in this "
              "context left this error, not this call");
}

} // namespace
} // namespace spargejit::gpu

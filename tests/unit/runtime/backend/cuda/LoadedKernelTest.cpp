// SPDX-License-Identifier: Apache-2.0
//
// Loading code and launching it, as the driver sees it.
#include "runtime/backend/cuda/LoadedKernel.h"

#include "runtime/backend/cuda/TensorMaps.h"
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

namespace spargejit::cuda {
namespace {

using unit::FakeLaunch;
using unit::FakeTensorMap;

/// x [.., .., rows, ..] of rank 4 with a tensor map, and a number.
LaunchInfo exampleInfo() {
  LaunchInfo info;
  info.entryName = "scale";
  info.arguments = {{"x", KernelArgument::Kind::Tensor, 4, 0},
                    {"factor", KernelArgument::Kind::Float, 0, 9}};
  info.gridArgument = 0;
  info.gridTile = 128;
  info.threads = 384;
  info.sharedBytes = 200 << 10;
  info.tensorMaps = {{0, DataType::Float16, 128, 64, 128}};
  return info;
}

class LoadedKernelTest : public unit::FakeDeviceTest {
protected:
  Result<std::shared_ptr<const LoadedKernel>> load() {
    return LoadedKernel::load(*device_, info_, image_, &log_);
  }
  std::shared_ptr<const LoadedKernel> loaded() {
    auto kernel = load();
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? *kernel : nullptr;
  }
  void expectFailure(ErrorCode code, const std::string &message) {
    auto kernel = load();
    ASSERT_FALSE(kernel.ok()) << "expected: " << message;
    EXPECT_EQ(kernel.status().code(), code);
    EXPECT_EQ(kernel.status().message(), message);
    EXPECT_EQ(fake_.modules, modulesBefore_);
    EXPECT_EQ(current(), nullptr);
  }

  LaunchInfo info_ = exampleInfo();
  std::string image_ = ".version 8.6\n// entry scale 80 128\n";
  std::string log_;
  const int modulesBefore_ = fake_.modules;
  /// [2, 3, 1000, 64], dense.
  std::array<std::int64_t, 10> slots_{0x1000, 2,     3,  1000, 64,
                                      192000, 64000, 64, 1,    0x3f000000};
};

TEST_F(LoadedKernelTest, ReadiesCodeForLaunches) {
  fake_.infoLog = "Used 168 registers";
  fake_.registers = 168;
  fake_.staticSharedBytes = 1024;
  fake_.residentCtas = 2;
  info_.assemblerLevel = 1;
  {
    auto kernel = loaded();
    ASSERT_TRUE(kernel);
    EXPECT_EQ(fake_.lastImage, image_);
    EXPECT_EQ(fake_.assemblerLevel, 1);
    EXPECT_EQ(log_, "Used 168 registers");
    EXPECT_EQ(kernel->resources().registers, 168);
    EXPECT_EQ(kernel->resources().localBytes, 0);
    EXPECT_EQ(kernel->resources().sharedBytes, 1024);
    EXPECT_EQ(kernel->resources().residentCtas, 2);
    EXPECT_EQ(fake_.dynamicSharedBytes, 200 << 10);
    EXPECT_EQ(fake_.callsOf("cuFuncLoad"), 1);
    EXPECT_EQ(fake_.modules, modulesBefore_ + 1);
    EXPECT_EQ(current(), nullptr);
  }
  EXPECT_EQ(fake_.modules, modulesBefore_);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(LoadedKernelTest, PassesSlotsThenTensorMaps) {
  auto kernel = loaded();
  driver_->functions().contextPush(unit::foreignContext());
  ASSERT_TRUE(kernel->run(slots_.data(), stream(0x70)).ok());
  EXPECT_EQ(current(), unit::foreignContext());
  ContextHandle popped = nullptr;
  driver_->functions().contextPop(&popped);

  ASSERT_EQ(fake_.launches.size(), 1u);
  const FakeLaunch &launch = fake_.launches[0];
  EXPECT_EQ(launch.entry, "scale");
  EXPECT_EQ(launch.context, device_->handle());
  EXPECT_EQ(launch.stream, stream(0x70));
  EXPECT_EQ(launch.grid[0], 2u * 3 * 8);
  EXPECT_EQ(launch.grid[1] * launch.grid[2], 1u);
  EXPECT_EQ(launch.block[0], 384u);
  EXPECT_EQ(launch.block[1] * launch.block[2], 1u);
  EXPECT_EQ(launch.sharedBytes, 200u << 10);
  ASSERT_EQ(launch.parameters.size(), 2u);
  EXPECT_EQ(
      std::memcmp(launch.parameters[0].data(), slots_.data(), sizeof slots_),
      0);
  FakeTensorMap map;
  std::memcpy(&map, launch.parameters[1].data(), sizeof map);
  EXPECT_EQ(map.address, 0x1000u);
  EXPECT_EQ(map.sizes[1], 1000u);
  EXPECT_EQ(map.elementType, tensor_map::kFloat16);
}

TEST_F(LoadedKernelTest, LaunchesClustersEarly) {
  info_.members = 8;
  auto kernel = loaded();
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr, LaunchOrder::Early).ok());
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  ASSERT_EQ(fake_.launches.size(), 2u);
  EXPECT_EQ(fake_.launches[0].grid[0], 8u * 2 * 3 * 8);
  EXPECT_TRUE(fake_.launches[0].isEarly);
  EXPECT_FALSE(fake_.launches[1].isEarly);
}

// Shared memory that follows from the call: 64 bytes for each of the 1000 rows
// of a tensor (slot 3), in hundreds.
TEST_F(LoadedKernelTest, SizesSharedMemoryByTheCall) {
  info_.sharedBytes = 1024;
  info_.dynamicScratch = {{64, 100, 3}};
  fake_.staticSharedBytes = 512;
  auto kernel = loaded();
  ASSERT_TRUE(kernel);
  // All that there is may be asked for.
  EXPECT_EQ(fake_.dynamicSharedBytes, device_->sharedBytes() - 512);
  slots_[3] = 901;
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  EXPECT_EQ(fake_.launches[0].sharedBytes, 1024u + 64 * 1000);
  slots_[3] = 4000;
  Status status = kernel->run(slots_.data(), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_NE(status.message().find("got 257024"), std::string::npos)
      << status.message();
}

TEST_F(LoadedKernelTest, FillsTheDeviceWithPersistentCtas) {
  info_.persistent = true;
  fake_.residentCtas = 2;
  fake_.multiprocessors = 20;
  device_ = *DeviceContext::open(*driver_, 0);
  auto kernel = loaded();
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  slots_[3] = 800; // 7 tiles
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  slots_[3] = 769; // and still
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  slots_[3] = 768; // 6 tiles: fewer programs than CTAs
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  ASSERT_EQ(fake_.launches.size(), 4u);
  EXPECT_EQ(fake_.launches[0].grid[0], 40u);
  EXPECT_EQ(fake_.launches[1].grid[0], 40u);
  EXPECT_EQ(fake_.launches[2].grid[0], 40u);
  EXPECT_EQ(fake_.launches[3].grid[0], 36u);
  // A kernel may leave room for the next, and gets no more than fit.
  for (auto [wanted, got] : {std::pair(1, 20u), std::pair(3, 40u)}) {
    info_.ctasPerMultiprocessor = wanted;
    slots_[3] = 800;
    ASSERT_TRUE(loaded()->run(slots_.data(), nullptr).ok());
    EXPECT_EQ(fake_.launches.back().grid[0], got);
  }
}

// What runs beside another launch wants its division of a multiprocessor.
TEST_F(LoadedKernelTest, DividesMemoryAlikeWhereLaunchesRunTogether) {
  ASSERT_TRUE(loaded()->run(slots_.data(), nullptr).ok());
  EXPECT_EQ(fake_.launches.back().sharedPercent, -1);
  info_.arguments.push_back({"progress", KernelArgument::Kind::Tensor, 1, 10});
  image_ = ".version 8.6\n// entry scale 104 128\n";
  std::vector<std::int64_t> slots(slots_.begin(), slots_.end());
  slots.resize(13);
  for (auto [bytes, percent] :
       {std::pair(0, 72), std::pair(81 << 10, 72), std::pair(82 << 10, 100)}) {
    info_.sharedBytes = bytes;
    ASSERT_TRUE(loaded()->run(slots.data(), nullptr, LaunchOrder::Early).ok());
    EXPECT_EQ(fake_.launches.back().sharedPercent, percent);
    EXPECT_TRUE(fake_.launches.back().isEarly);
  }
}

// A launch whose CTAs stay divides memory as the next one does.
TEST_F(LoadedKernelTest, LeavesMemoryToTheNextLaunch) {
  info_.arguments.push_back({"progress", KernelArgument::Kind::Tensor, 1, 10});
  image_ = ".version 8.6\n// entry scale 104 128\n";
  std::vector<std::int64_t> slots(slots_.begin(), slots_.end());
  slots.resize(13);
  for (auto [bytes, wants] :
       {std::pair(81 << 10, false), std::pair(82 << 10, true)}) {
    info_.sharedBytes = bytes;
    auto next = loaded();
    EXPECT_EQ(next->wantsAllShared(slots.data()), wants);
    EXPECT_FALSE(next->leavesRoom());
  }
  info_.sharedBytes = 0;
  info_.persistent = true;
  auto kernel = loaded();
  EXPECT_TRUE(kernel->leavesRoom());
  for (auto [allShared, percent] :
       {std::pair(false, 72), std::pair(true, 100)}) {
    ASSERT_TRUE(
        kernel->run(slots.data(), nullptr, LaunchOrder::Early, allShared).ok());
    EXPECT_EQ(fake_.launches.back().sharedPercent, percent);
  }
}

TEST_F(LoadedKernelTest, LaunchesNothingForNoProgram) {
  auto kernel = loaded();
  for (std::size_t size : {1, 2, 3}) {
    auto slots = slots_;
    slots[size] = 0;
    EXPECT_TRUE(kernel->run(slots.data(), nullptr).ok());
  }
  EXPECT_TRUE(fake_.launches.empty());
}

TEST_F(LoadedKernelTest, RefusesMorePrograms) {
  auto kernel = loaded();
  slots_[1] = std::int64_t{1} << 30;
  Status status = kernel->run(slots_.data(), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_EQ(status.message(), "scale: expected fewer than 2^31 tiles of 128 "
                              "rows, got sizes [1073741824, 3, 1000]");
  slots_[1] = std::int64_t{1} << 62;
  EXPECT_EQ(kernel->run(slots_.data(), nullptr).code(), ErrorCode::Unsupported);
  EXPECT_TRUE(fake_.launches.empty());
}

TEST_F(LoadedKernelTest, NamesATensorThatNoMapDescribes) {
  auto kernel = loaded();
  slots_[7] = 65;
  Status status = kernel->run(slots_.data(), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_EQ(
      status.message().rfind("x.strides[2]: expected a multiple of 16", 0), 0u);
  EXPECT_TRUE(fake_.launches.empty());
  EXPECT_EQ(current(), nullptr);
}

// A thread keeps the descriptors of each kernel's last tensors.
TEST_F(LoadedKernelTest, DescribesTensorsOnceAndAnewWhereTheyDiffer) {
  auto first = loaded();
  auto second = loaded();
  fake_.calls.clear();
  auto encoded = [&] { return fake_.callsOf("cuTensorMapEncodeTiled"); };
  auto run = [&](const LoadedKernel &kernel) {
    EXPECT_EQ(kernel.run(slots_.data(), nullptr).message(), "");
  };
  // The kernels of a pass take turns.
  for (int repeat = 0; repeat < 3; ++repeat) {
    run(*first);
    run(*second);
    EXPECT_EQ(encoded(), 2);
  }
  const auto before = slots_;
  int expected = 2;
  for (auto [slot, value] : {std::pair(0, 0x2000), std::pair(3, 999),
                             std::pair(5, 193000), std::pair(7, 128)}) {
    slots_[static_cast<std::size_t>(slot)] = value;
    run(*first);
    EXPECT_EQ(encoded(), ++expected) << slot;
    FakeTensorMap map;
    std::memcpy(&map, fake_.launches.back().parameters[1].data(), sizeof map);
    EXPECT_EQ(map.address, static_cast<std::uint64_t>(slots_[0]));
    EXPECT_EQ(map.sizes[1], static_cast<std::uint64_t>(slots_[3]));
    EXPECT_EQ(map.strides[2], 2 * static_cast<std::uint64_t>(slots_[5]));
    EXPECT_EQ(map.strides[0], 2 * static_cast<std::uint64_t>(slots_[7]));
  }
  // Numbers are no part of them.
  slots_[9] = 0;
  run(*first);
  EXPECT_EQ(encoded(), expected);
  slots_ = before;
  run(*second);
  EXPECT_EQ(encoded(), expected);
  run(*first);
  EXPECT_EQ(encoded(), ++expected);
  std::thread([&] { run(*first); }).join();
  EXPECT_EQ(encoded(), ++expected);
}

TEST_F(LoadedKernelTest, DescribesTensorsForEachDevice) {
  auto here = loaded();
  auto other = DeviceContext::open(*driver_, 1);
  ASSERT_TRUE(other.ok());
  auto there = LoadedKernel::load(**other, info_, image_);
  ASSERT_TRUE(there.ok());
  fake_.calls.clear();
  ASSERT_TRUE(here->run(slots_.data(), nullptr).ok());
  ASSERT_TRUE((*there)->run(slots_.data(), nullptr).ok());
  EXPECT_EQ(fake_.callsOf("cuTensorMapEncodeTiled"), 2);
}

TEST_F(LoadedKernelTest, DoesNothingButLaunch) {
  auto kernel = loaded();
  ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  fake_.calls.clear();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(kernel->run(slots_.data(), nullptr).ok());
  for (const auto &[symbol, count] : fake_.calls)
    EXPECT_TRUE(
        symbol == "cuCtxGetCurrent" || symbol == "cuCtxPushCurrent_v2" ||
        symbol == "cuCtxPopCurrent_v2" || symbol == "cuTensorMapEncodeTiled" ||
        symbol == "cuLaunchKernelEx")
        << symbol;
  EXPECT_EQ(fake_.callsOf("cuLaunchKernelEx"), 100);
}

TEST_F(LoadedKernelTest, TellsWhyALaunchFailed) {
  auto kernel = loaded();
  fake_.failures["cuLaunchKernelEx"] = {result::kIllegalAddress};
  Status status = kernel->run(slots_.data(), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::DriverError);
  EXPECT_EQ(
      status.message().rfind(
          "scale: cuLaunchKernelEx failed: CUDA_ERROR_ILLEGAL_ADDRESS", 0),
      0u);
  EXPECT_NE(status.message().find("earlier asynchronous launch"),
            std::string::npos);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(LoadedKernelTest, GivesTheAssemblersWords) {
  fake_.failures["cuModuleLoadDataEx"] = {result::kInvalidPtx};
  fake_.errorLog = "ptxas application ptx input, line 8; error : no";
  expectFailure(ErrorCode::CompileFailed,
                "cuModuleLoadDataEx refused the code: unknown error (218): the "
                "driver has no text for it\nptxas application ptx input, line "
                "8; error : no");
}

TEST_F(LoadedKernelTest, SaysWhichDriverTheCodeNeeds) {
  fake_.failures["cuModuleLoadDataEx"] = {result::kUnsupportedPtxVersion};
  expectFailure(ErrorCode::Unsupported,
                "expected a driver that knows PTX 8.6, got one of CUDA 13.0 (" +
                    unit::fakeCudaPath() +
                    "): install a newer driver, or let SPARGEJIT_PTXAS name a "
                    "ptxas program. unknown error (222): the driver has no "
                    "text for it");
}

TEST_F(LoadedKernelTest, SaysThatTheDriverHasNoAssembler) {
  fake_.failures["cuModuleLoadDataEx"] = {result::kJitCompilerNotFound};
  auto kernel = load();
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::Unsupported);
  EXPECT_NE(kernel.status().message().find("libnvidia-ptxjitcompiler"),
            std::string::npos);
}

TEST_F(LoadedKernelTest, TellsWhatAnEarlierLaunchLeft) {
  fake_.failures["cuModuleLoadDataEx"] = {result::kIllegalAddress};
  auto kernel = load();
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), ErrorCode::DriverError);
  EXPECT_NE(kernel.status().message().find("earlier asynchronous launch"),
            std::string::npos);
}

TEST_F(LoadedKernelTest, NamesAMissingEntry) {
  image_ = "// entry other 80 128\n";
  expectFailure(ErrorCode::DriverError,
                "entry scale: cuModuleGetFunction failed: unknown error (500): "
                "the driver has no text for it");
}

TEST_F(LoadedKernelTest, ComparesTheParametersWithTheCode) {
  for (const char *bytes : {"72 128", "80", "80 128 128", "80 64"}) {
    image_ = std::string("// entry scale ") + bytes + "\n";
    auto kernel = load();
    ASSERT_FALSE(kernel.ok()) << bytes;
    EXPECT_EQ(kernel.status().code(), ErrorCode::Internal);
  }
  image_ = "// entry scale 72 128\n";
  expectFailure(ErrorCode::Internal, "scale: expected parameters of [80, 128] "
                                     "bytes in the code, got [72, 128]");
}

TEST_F(LoadedKernelTest, TellsHowMuchSharedMemoryThereIs) {
  info_.sharedBytes = 232449;
  expectFailure(ErrorCode::OutOfResources,
                "scale: expected at most 232448 bytes of shared memory a CTA "
                "on Fake GPU 0, got 232449 dynamic and 0 static");
  info_.sharedBytes = 232448;
  fake_.staticSharedBytes = 8;
  expectFailure(ErrorCode::OutOfResources,
                "scale: expected at most 232448 bytes of shared memory a CTA "
                "on Fake GPU 0, got 232448 dynamic and 8 static");
}

// Slots 1 to 4 are sizes of the first tensor.
TEST_F(LoadedKernelTest, GivesScratchItsSharedMemory) {
  info_.sharedBytes = 1000;
  info_.dynamicScratch.push_back({64, 1, 3, 8});
  auto kernel = loaded();
  ASSERT_TRUE(kernel);
  EXPECT_EQ(fake_.dynamicSharedBytes, 232448);
  auto sharedBytesFor = [&](std::int64_t columns) {
    fake_.launches.clear();
    slots_[3] = columns;
    EXPECT_EQ(kernel->run(slots_.data(), nullptr).message(), "");
    return fake_.launches.size() == 1 ? fake_.launches[0].sharedBytes : 0;
  };
  EXPECT_EQ(sharedBytesFor(100), 1000u + 6400);
  EXPECT_EQ(sharedBytesFor(3616), 1000u + 231424);
  // One part in eight where all of it does not fit.
  EXPECT_EQ(sharedBytesFor(3617), 1000u + 28992);
  slots_[3] = 1 << 20;
  Status status = kernel->run(slots_.data(), nullptr);
  EXPECT_EQ(status.code(), ErrorCode::Unsupported);
  EXPECT_NE(status.message().find("1048576 columns"), std::string::npos)
      << status.message();
}

TEST_F(LoadedKernelTest, TellsWhenACtaFitsNoMultiprocessor) {
  fake_.residentCtas = 0;
  expectFailure(ErrorCode::OutOfResources,
                "scale: a CTA of 384 threads with 168 registers each and "
                "204800 bytes of shared memory does not fit a multiprocessor "
                "of Fake GPU 0");
}

TEST_F(LoadedKernelTest, HasALimitOfTensorMaps) {
  info_.tensorMaps.resize(kMaxTensorMaps + 1);
  expectFailure(ErrorCode::Internal,
                "scale: expected at most 8 tensor maps, got 9");
}

TEST_F(LoadedKernelTest, LoadsWhileAnotherThreadCaptures) {
  fake_.capturing.insert(stream(5));
  EXPECT_TRUE(loaded());
  EXPECT_FALSE(fake_.captureBroken);
}

} // namespace
} // namespace spargejit::cuda

// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of tensors that the copy engine can address, and refusals of
// those that it cannot.
#include "runtime/backend/cuda/TensorMaps.h"

#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/backend/cuda/FakeCudaTest.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace spargejit::cuda {
namespace {

using Slots = std::array<std::int64_t, 9>;

class TensorMapsTest : public unit::FakeDeviceTest {
protected:
  Status encode(const Slots &slots) {
    Status status =
        encodeTensorMap(*driver_, map_, argument_, slots.data(), bits_);
    std::memcpy(&found_, &bits_, sizeof found_);
    return status;
  }
  void expectRefusal(const Slots &slots, const std::string &message) {
    Status status = encode(slots);
    ASSERT_FALSE(status.ok()) << "expected: " << message;
    EXPECT_EQ(status.code(), ErrorCode::Unsupported);
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(fake_.callsOf("cuTensorMapEncodeTiled"), 0);
  }

  TensorMap map_{0, DataType::BFloat16, 128, 64, 128};
  KernelArgument argument_{"k", KernelArgument::Kind::Tensor, 4, 0};
  TensorMapBits bits_{};
  unit::FakeTensorMap found_{};
  /// [2, 3, 200, 72] in memory of [2, 200, 3, 72].
  Slots slots_{0x7f0000001000, 2, 3, 200, 72, 43200, 72, 216, 1};
};

TEST_F(TensorMapsTest, DescribesATensorInnermostFirst) {
  ASSERT_TRUE(encode(slots_).ok());
  EXPECT_EQ(found_.address, 0x7f0000001000u);
  EXPECT_EQ(found_.rank, 4);
  EXPECT_TRUE(std::ranges::equal(found_.sizes, std::array{72, 200, 3, 2}));
  EXPECT_TRUE(std::ranges::equal(found_.strides, std::array{432, 144, 86400}));
  EXPECT_EQ(found_.boxColumns, 64);
  EXPECT_EQ(found_.boxRows, 128);
  EXPECT_EQ(found_.boxHeads, 1);
  EXPECT_EQ(found_.boxBatch, 1);
  EXPECT_EQ(found_.elementType, tensor_map::kBFloat16);
  EXPECT_EQ(found_.swizzle, tensor_map::kSwizzle128);
  EXPECT_EQ(found_.promotion, tensor_map::kPromotion256);
}

TEST_F(TensorMapsTest, KnowsElementTypesAndSwizzles) {
  map_.elementType = DataType::Float16;
  map_.swizzleBytes = 64;
  ASSERT_TRUE(encode(slots_).ok());
  EXPECT_EQ(found_.elementType, tensor_map::kFloat16);
  EXPECT_EQ(found_.swizzle, tensor_map::kSwizzle64);
  map_.elementType = DataType::Float32;
  map_.swizzleBytes = 0;
  ASSERT_TRUE(encode(slots_).ok());
  EXPECT_EQ(found_.elementType, tensor_map::kFloat32);
  EXPECT_EQ(found_.swizzle, tensor_map::kSwizzleNone);
  EXPECT_EQ(found_.strides[0], 864u);
  map_.elementType = DataType::Float8E4M3; // bytes, whatever they stand for
  ASSERT_TRUE(encode({0x7f0000001000, 2, 3, 200, 64, 38400, 64, 192, 1}).ok());
  EXPECT_EQ(found_.elementType, tensor_map::kUint8);
  map_.elementType = DataType::Float32;
  map_.swizzleBytes = 32;
  ASSERT_TRUE(encode(slots_).ok());
  EXPECT_EQ(found_.swizzle, tensor_map::kSwizzle32);
}

TEST_F(TensorMapsTest, TakesAnyStrideOfASingleElement) {
  slots_[1] = 1;
  for (std::int64_t stride : {std::int64_t{0}, std::int64_t{7},
                              std::int64_t{-3}, std::int64_t{1} << 50}) {
    slots_[5] = stride;
    ASSERT_TRUE(encode(slots_).ok()) << stride;
    EXPECT_EQ(found_.sizes[3], 1u);
  }
}

TEST_F(TensorMapsTest, TakesAHeadThatAllShare) {
  slots_[6] = 0;
  ASSERT_TRUE(encode(slots_).ok());
  EXPECT_EQ(found_.strides[1], 0u);
}

TEST_F(TensorMapsTest, NamesWhatCannotBeAddressed) {
  auto with = [&](std::size_t slot, std::int64_t value) {
    Slots slots = slots_;
    slots[slot] = value;
    return slots;
  };
  expectRefusal(with(0, 0x7f0000001008),
                "k.data: expected an address that is a multiple of 16 bytes on "
                "a GPU, got 0x7f0000001008");
  expectRefusal(with(7, 65),
                "k.strides[2]: expected a multiple of 16 bytes on a GPU, got "
                "130 (65 elements of 2 bytes): pad the rows to a multiple of 8 "
                "elements");
  expectRefusal(with(6, 68),
                "k.strides[1]: expected a multiple of 16 bytes on a GPU, got "
                "136 (68 elements of 2 bytes): pad the rows to a multiple of 8 "
                "elements");
  expectRefusal(with(7, -216),
                "k.strides[2]: expected from 0 to less than 2^40 bytes on a "
                "GPU, got -216 elements of 2 bytes");
  expectRefusal(with(5, std::int64_t{1} << 39),
                "k.strides[0]: expected from 0 to less than 2^40 bytes on a "
                "GPU, got 549755813888 elements of 2 bytes");
  expectRefusal(with(5, std::int64_t{1} << 62),
                "k.strides[0]: expected from 0 to less than 2^40 bytes on a "
                "GPU, got 4611686018427387904 elements of 2 bytes");
  expectRefusal(with(3, (std::int64_t{1} << 32) + 1),
                "k.sizes[2]: expected at most 2^32 on a GPU, got 4294967297");
}

// The fake driver holds to the documented limits as well.
TEST_F(TensorMapsTest, LetsNothingPassThatTheDriverRefuses) {
  auto random = numerics::randomForTest();
  int described = 0;
  for (int repeat = 0; repeat < 3000; ++repeat) {
    Slots slots{0x7f0000001000 + 8 * random.below(3)};
    for (std::size_t i = 1; i < 5; ++i)
      slots[i] = 1 + random.below(3);
    for (std::size_t i = 5; i < 8; ++i)
      slots[i] =
          random.below(4) == 0 ? random.below(200) - 20 : 8 * random.below(60);
    slots[8] = 1;
    Status status = encode(slots);
    if (status.ok())
      ++described;
    else
      EXPECT_EQ(status.code(), ErrorCode::Unsupported) << status.message();
  }
  EXPECT_GT(described, 100);
}

TEST_F(TensorMapsTest, TellsWhatTheDriverRefused) {
  fake_.failures["cuTensorMapEncodeTiled"] = {999};
  Status status = encode(slots_);
  EXPECT_EQ(status.code(), ErrorCode::Internal);
  EXPECT_EQ(status.message(),
            "k: the driver refuses a tensor map of sizes [72, 200, 3, 2] and "
            "strides [432, 144, 86400] bytes, innermost first, in boxes of "
            "128x64: CUDA_ERROR_UNKNOWN (999): unknown error");
}

} // namespace
} // namespace spargejit::cuda

// SPDX-License-Identifier: Apache-2.0
//
// Views and owned tensors.
#include "spargejit/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace spargejit {
namespace {

using Four = std::array<std::int64_t, 4>;

TEST(TensorView, ContiguousIsRowMajor) {
  TensorView view =
      TensorView::contiguous(nullptr, DataType::Float16, {2, 3, 4, 5});
  EXPECT_EQ(view.rank, 4);
  EXPECT_EQ(view.sizes, (Four{2, 3, 4, 5}));
  EXPECT_EQ(view.strides, (Four{60, 20, 5, 1}));
  EXPECT_EQ(view.elementCount(), 120);
}

TEST(TensorView, TransposedExchangesSizesAndStrides) {
  TensorView view =
      TensorView::contiguous(nullptr, DataType::Float32, {2, 3, 4, 5})
          .transposed(1, 2);
  EXPECT_EQ(view.sizes, (Four{2, 4, 3, 5}));
  EXPECT_EQ(view.strides, (Four{60, 5, 20, 1}));
}

TEST(TensorView, TransposedNeedsDimensionsThatAreThere) {
  const TensorView view =
      TensorView::contiguous(nullptr, DataType::Float32, {2, 3, 4});
  EXPECT_EQ(view.transposed(0, 3).rank, -1);
  EXPECT_EQ(view.transposed(-1, 1).rank, -1);
  EXPECT_EQ(view.transposed(1 << 30, 0).rank, -1);
  EXPECT_EQ(TensorView::contiguous(nullptr, DataType::Float32, {1, 2, 3, 4, 5})
                .transposed(0, 4)
                .rank,
            -1);
}

TEST(TensorView, OfZeroSizeHasNoElements) {
  EXPECT_EQ(TensorView::contiguous(nullptr, DataType::Float32, {2, 0, 4})
                .elementCount(),
            0);
}

TEST(TensorView, OfTooManySizesKeepsTheirNumber) {
  TensorView view =
      TensorView::contiguous(nullptr, DataType::Float32, {1, 2, 3, 4, 5});
  EXPECT_EQ(view.rank, 5);
}

TEST(TensorView, StridedNeedsAStrideForEachSize) {
  EXPECT_EQ(
      TensorView::strided(nullptr, DataType::Float32, {2, 3}, {3, 1}).rank, 2);
  EXPECT_EQ(TensorView::strided(nullptr, DataType::Float32, {2, 3}, {1}).rank,
            -1);
}

TEST(Tensor, AllocatesAlignedMemoryThatCopiesShare) {
  auto tensor = Tensor::allocate(DataType::BFloat16, {3, 5, 7});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->view().data) % 64, 0u);
  EXPECT_EQ(tensor->view().strides, (Four{35, 7, 1, 0}));
  // All of it can be written (the address sanitizer looks on).
  std::memset(tensor->data<char>(), 0x5a, 3 * 5 * 7 * 2);
  Tensor copy = *tensor;
  EXPECT_EQ(copy.view().data, tensor->view().data);
}

TEST(Tensor, IsNotEmptyWithZeroElements) {
  EXPECT_TRUE(Tensor().empty());
  auto tensor = Tensor::allocate(DataType::Float32, {0, 4});
  ASSERT_TRUE(tensor.ok());
  EXPECT_FALSE(tensor->empty());
  EXPECT_EQ(tensor->view().elementCount(), 0);
}

TEST(Tensor, RefusesSizesThatCannotBe) {
  auto negative = Tensor::allocate(DataType::Float32, {4, -1});
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(negative.status().message(),
            "sizes[1]: expected 0 or more, got -1");

  auto dtype = Tensor::allocate(static_cast<DataType>(77), {4});
  ASSERT_FALSE(dtype.ok());
  EXPECT_EQ(dtype.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(dtype.status().message(),
            "dtype: expected a DataType, got the number 77");
  auto rank = Tensor::allocate(DataType::Float32, {1, 1, 1, 1, 1});
  ASSERT_FALSE(rank.ok());
  EXPECT_EQ(rank.status().message(),
            "sizes: expected at most 4 dimensions, got 5");

  std::int64_t big = std::int64_t{1} << 40;
  auto overflow = Tensor::allocate(DataType::Float32, {big, big});
  ASSERT_FALSE(overflow.ok());
  EXPECT_EQ(overflow.status().code(), ErrorCode::OutOfResources);

  auto huge = Tensor::allocate(DataType::Bool, {std::int64_t{1} << 60});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.status().code(), ErrorCode::OutOfResources);
}

TEST(DataType, HasSizesAndNames) {
  EXPECT_EQ(dataTypeSize(DataType::Float32), 4u);
  EXPECT_EQ(dataTypeSize(DataType::BFloat16), 2u);
  EXPECT_EQ(dataTypeSize(DataType::Float16), 2u);
  EXPECT_EQ(dataTypeSize(DataType::Int32), 4u);
  EXPECT_EQ(dataTypeSize(DataType::Bool), 1u);
  EXPECT_EQ(dataTypeSize(DataType::Float8E4M3), 1u);
  EXPECT_STREQ(dataTypeName(DataType::Float32), "float32");
  EXPECT_STREQ(dataTypeName(DataType::BFloat16), "bfloat16");
  EXPECT_STREQ(dataTypeName(DataType::Float16), "float16");
  EXPECT_STREQ(dataTypeName(DataType::Int32), "int32");
  EXPECT_STREQ(dataTypeName(DataType::Bool), "bool");
  EXPECT_STREQ(dataTypeName(DataType::Float8E4M3), "float8_e4m3fn");
}

} // namespace
} // namespace spargejit

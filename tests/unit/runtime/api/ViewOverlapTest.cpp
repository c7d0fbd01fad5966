// SPDX-License-Identifier: Apache-2.0
//
// Overlap of strided views, against marking every byte.
#include "runtime/api/ViewOverlap.h"

#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace spargejit::api {
namespace {

constexpr std::int64_t kArenaBytes = 1 << 16;
alignas(64) char arena[kArenaBytes];

/// Calls visit(first byte) for every element.
template <typename Visit>
void forEachElement(const TensorView &view, Visit visit) {
  auto size = static_cast<std::int64_t>(dataTypeSize(view.dtype));
  for (std::int64_t n = 0; n < view.elementCount(); ++n) {
    std::int64_t rest = n, offset = 0;
    for (int i = view.rank; i-- > 0;) {
      auto dimension = static_cast<std::size_t>(i);
      offset += rest % view.sizes[dimension] * view.strides[dimension];
      rest /= view.sizes[dimension];
    }
    visit(static_cast<char *>(view.data) - arena + offset * size, size);
  }
}

bool overlapByMarking(const TensorView &a, const TensorView &b) {
  std::set<std::int64_t> bytes;
  forEachElement(a, [&](std::int64_t first, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i)
      bytes.insert(first + i);
  });
  bool overlap = false;
  forEachElement(b, [&](std::int64_t first, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i)
      overlap |= bytes.count(first + i) > 0;
  });
  return overlap;
}

TensorView randomView(reference::Random &random) {
  std::vector<std::int64_t> sizes, strides;
  int rank = static_cast<int>(1 + random.below(4));
  for (int i = 0; i < rank; ++i) {
    sizes.push_back(random.below(5));
    strides.push_back(random.below(25) - 6);
  }
  DataType type = random.pick(std::vector<DataType>{
      DataType::Float32, DataType::BFloat16, DataType::Bool});
  return TensorView::strided(arena + kArenaBytes / 2 + random.below(160) - 80,
                             type, sizes, strides);
}

std::string describe(const TensorView &view) {
  std::string text = dataTypeName(view.dtype);
  text += " at " + std::to_string(static_cast<char *>(view.data) - arena);
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i)
    text += " " + std::to_string(view.sizes[i]) + "*" +
            std::to_string(view.strides[i]);
  return text;
}

TEST(ViewOverlap, AgreesWithMarkingBytes) {
  auto random = numerics::randomForTest();
  int overlapping = 0;
  constexpr int kPairs = 20000;
  for (int i = 0; i < kPairs; ++i) {
    TensorView a = randomView(random), b = randomView(random);
    bool expected = overlapByMarking(a, b);
    ASSERT_EQ(viewsOverlap(a, b), expected)
        << describe(a) << " and " << describe(b);
    ASSERT_EQ(viewsOverlap(b, a), expected);
    overlapping += expected;
  }
  // Both answers are frequent, or the test would show little.
  EXPECT_GT(overlapping, kPairs / 20);
  EXPECT_LT(overlapping, kPairs * 19 / 20);
}

TEST(ViewOverlap, TellsSlicesOfPackedMemoryApart) {
  // [batch, length, 4 tensors, heads, dim] with q, k, v and o in one buffer, at
  // a size where marking is out of the question.
  constexpr std::int64_t kHeads = 40, kLength = 75600, kDim = 128;
  constexpr std::int64_t kRow = 4 * kHeads * kDim;
  auto slice = [&](std::int64_t number) {
    return TensorView::strided(
        reinterpret_cast<char *>(std::uintptr_t{1} << 40) +
            number * kHeads * kDim * 2,
        DataType::BFloat16, {2, kHeads, kLength, kDim},
        {kLength * kRow, kDim, kRow, 1});
  };
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(viewsOverlap(slice(i), slice(j)), i == j) << i << " " << j;
}

TEST(ViewOverlap, FindsNoOverlapWithNothing) {
  TensorView a = TensorView::contiguous(arena, DataType::Float32, {4, 4});
  TensorView empty = TensorView::contiguous(arena, DataType::Float32, {4, 0});
  EXPECT_FALSE(viewsOverlap(a, empty));
  EXPECT_TRUE(viewsOverlap(a, a));
}

TEST(ViewOverlap, ProvesElementsDistinct) {
  auto random = numerics::randomForTest();
  int distinct = 0;
  for (int i = 0; i < 20000; ++i) {
    TensorView view = randomView(random);
    if (!elementsAreDistinct(view))
      continue;
    ++distinct;
    std::set<std::int64_t> places;
    forEachElement(view, [&](std::int64_t first, std::int64_t) {
      ASSERT_TRUE(places.insert(first).second) << describe(view);
    });
  }
  EXPECT_GT(distinct, 1000);
  // All that callers give: dense, transposed, sliced, with a step back.
  TensorView dense =
      TensorView::contiguous(arena, DataType::Float32, {2, 3, 4, 5});
  EXPECT_TRUE(elementsAreDistinct(dense));
  EXPECT_TRUE(elementsAreDistinct(dense.transposed(1, 2)));
  dense.strides[0] = -dense.strides[0];
  EXPECT_TRUE(elementsAreDistinct(dense));
  dense.strides[1] = 0;
  EXPECT_FALSE(elementsAreDistinct(dense));
}

} // namespace
} // namespace spargejit::api

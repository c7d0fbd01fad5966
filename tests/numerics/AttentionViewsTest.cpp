// SPDX-License-Identifier: Apache-2.0
//
// Views: strides, slices of packed memory, offsets beyond 32 bits, and memory
// that ends where a page ends.
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <sys/mman.h>
#include <vector>

namespace spargejit::numerics {
namespace {

const std::vector<Layout> kLayouts = {Layout::HeadMajor, Layout::LengthMajor,
                                      Layout::PackedQkv, Layout::PaddedRows,
                                      Layout::Reversed,  Layout::OddBase};

class AttentionViews : public TypedBackendTest {};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(AttentionViews);

// Where the elements lie changes no bit of the result.
// cases: 55, 57
TEST_P(AttentionViews, EveryLayoutGivesTheSameBits) {
  for (const bool causal : {false, true}) {
    OutputBits dense;
    for (const Layout inputs : kLayouts) {
      for (const Layout outputs : kLayouts) {
        // Outputs take every layout once the inputs have one.
        if (inputs != Layout::HeadMajor && inputs != outputs)
          continue;
        Random random = randomForTest(); // the same numbers every time
        AttentionCase shape = {.dtype = dtype(),
                               .batch = 2,
                               .qHeads = 4,
                               .kvHeads = 2,
                               .qLen = 150,
                               .kvLen = 210,
                               .headDim = 72,
                               .causal = causal};
        shape.inputs.layout = inputs;
        shape.outputs.layout = outputs;
        AttentionTrial trial(backend(), shape, random);
        trial.useLists(shape.randomMask(random, 0.6), random,
                       {.shuffled = true});
        const OutputBits bits = runForBits(trial);
        if (dense.o.empty()) {
          dense = bits;
          EXPECT_TRUE(trial.matchesReference(random));
        }
        EXPECT_EQ(bits, dense) << shape.describe();
      }
    }
  }
}

// q, k and v as three slices of one [batch, length, 3, heads, dim] buffer, used
// where they lie.
// cases: 57
TEST_P(AttentionViews, SlicesOfOnePackedBuffer) {
  Random random = randomForTest();
  const AttentionCase shape = {.dtype = dtype(),
                               .batch = 2,
                               .qHeads = 3,
                               .kvHeads = 3,
                               .qLen = 180,
                               .kvLen = 180,
                               .headDim = 40};
  AttentionTrial trial(backend(), shape, random);
  const OutputBits separate = runForBits(trial);
  TestTensor packed(backend(), dtype(), {2, 180, 9, 40});
  const TestTensor *const parts[] = {&trial.q, &trial.k, &trial.v};
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t n = 0; n < 180; ++n)
      for (std::int64_t part = 0; part < 3; ++part)
        for (std::int64_t h = 0; h < 3; ++h)
          for (std::int64_t d = 0; d < 40; ++d)
            reference::storeElement(
                reference::elementAddress(packed.host(), b, n, part * 3 + h, d),
                dtype(), reference::elementAt(parts[part]->host(), b, h, n, d));
  packed.upload();
  const auto slice = [&](std::int64_t part) {
    TensorView view = packed.view().transposed(1, 2);
    view.data = reference::elementAddress(view, 0, part * 3);
    view.sizes[1] = 3;
    return view;
  };
  trial.o.poison();
  trial.o.upload();
  ASSERT_TRUE(succeeded(attentionInto(trial.o.view(), slice(0), slice(1),
                                      slice(2), trial.config)));
  trial.o.download();
  EXPECT_EQ(trial.o.bits(), separate.o);
  EXPECT_TRUE(packed.isUnchanged());
}

// One key head and one value head for all, by a head stride of 0; one batch of
// keys for two of queries.
TEST_P(AttentionViews, BroadcastKeysByAStrideOfZero) {
  Random random = randomForTest();
  const AttentionCase shape = {.dtype = dtype(),
                               .batch = 2,
                               .qHeads = 4,
                               .kvHeads = 1,
                               .qLen = 70,
                               .kvLen = 100,
                               .headDim = 64};
  AttentionTrial trial(backend(), shape, random);
  for (std::int64_t n = 0; n < 100; ++n) // batch 1 as batch 0
    for (std::int64_t d = 0; d < 64; ++d)
      for (const TestTensor *tensor : {&trial.k, &trial.v})
        reference::storeElement(
            reference::elementAddress(tensor->host(), 1, 0, n, d), dtype(),
            reference::elementAt(tensor->host(), 0, 0, n, d));
  const OutputBits grouped = runForBits(trial);
  TensorView k = trial.k.view();
  TensorView v = trial.v.view();
  for (TensorView *view : {&k, &v}) {
    view->strides[0] = view->strides[1] = 0;
    view->sizes[1] = 4;
  }
  trial.o.poison();
  trial.o.upload();
  ASSERT_TRUE(succeeded(
      attentionInto(trial.o.view(), trial.q.view(), k, v, trial.config)));
  trial.o.download();
  EXPECT_EQ(trial.o.bits(), grouped.o);
}

// A row stride of 144 bytes (77 tokens, head dimension 72) is no multiple of 64
// or 128 bytes.
// cases: 59
TEST_P(AttentionViews, UnevenRowStrides) {
  Random random = randomForTest();
  for (const Layout layout : {Layout::LengthMajor, Layout::PaddedRows}) {
    AttentionCase shape = {
        .dtype = dtype(), .qLen = 77, .kvLen = 77, .headDim = 72};
    shape.inputs.layout = shape.outputs.layout = layout;
    AttentionTrial trial(backend(), shape, random);
    EXPECT_TRUE(trial.isRight(random));
  }
}

// Tensors end where a page ends, or begin where one begins, and the next page
// cannot be touched: nothing reads or writes outside, not even what it would
// throw away. Elements beyond the end are no keys of weight e^0 either.
// cases: 12, 13
TEST_P(AttentionViews, NothingOutsideTheTensorsIsTouched) {
  if (!backend().hasFences())
    GTEST_SKIP() << backend().name() << " has no memory with fences";
  Random random = randomForTest();
  for (const std::int64_t headDim : {8, 40, 64, 104, 128}) {
    for (const auto &[qLen, kvLen] :
         {std::pair{1, 65}, std::pair{77, 23}, std::pair{130, 215},
          std::pair{64, 128}, std::pair{3, 1}}) {
      for (const bool atEnd : {true, false}) {
        AttentionCase shape = {.dtype = dtype(),
                               .batch = 1,
                               .qHeads = 2,
                               .kvHeads = 2,
                               .qLen = qLen,
                               .kvLen = kvLen,
                               .headDim = headDim};
        shape.maskBlockKv = random.chance(0.5) ? 64 : 16;
        shape.inputs = {Layout::HeadMajor, Surroundings::Fence, atEnd};
        shape.outputs = shape.inputs;
        AttentionTrial trial(backend(), shape, random);
        if (random.chance(0.5))
          trial.useMask(shape.randomMask(random, 0.7));
        EXPECT_TRUE(trial.isRight(random));
      }
    }
  }
}

class AttentionOffsets : public BackendTest {};
SPARGEJIT_ON_EVERY_BACKEND(AttentionOffsets);

// 37,719 keys leave 23 in the last block of 64: no NaN behind them may matter.
// cases: 12
TEST_P(AttentionOffsets, LastBlockOfALongSequence) {
  Random random = randomForTest();
  const std::int64_t kvLen = isReduced() ? 3 * 64 + 23 : 37719;
  AttentionTrial trial(
      backend(),
      {.dtype = DataType::BFloat16, .qLen = 130, .kvLen = kvLen, .headDim = 64},
      random);
  BlockMask mask = trial.shape.randomMask(random, 0.05);
  for (std::int64_t i = 0; i < mask.qBlocks; ++i)
    mask.set(0, 0, i, mask.kvBlocks - 1, true);
  trial.useLists(mask, random, {.shuffled = true});
  EXPECT_TRUE(trial.isRight(random));
}

/// Address space of which only the touched pages take memory.
std::shared_ptr<float> reserve(std::int64_t elements) {
  const auto size = static_cast<std::size_t>(elements) * sizeof(float);
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  return {static_cast<float *>(memory), [size](float *p) { munmap(p, size); }};
}

// Rows, heads and batches so far apart that element offsets pass 2^32: wrong
// for 32-bit products, signed or not.
// cases: 53
TEST_P(AttentionOffsets, ElementOffsetsBeyond32Bits) {
  if (backend().device().kind != DeviceKind::Cpu)
    GTEST_SKIP() << "address space without memory is the CPU's";
  Random random = randomForTest();
  constexpr std::int64_t kLength = 100;
  constexpr std::int64_t kHeadDim = 16;
  const AttentionCase shape = {.batch = 2,
                               .qHeads = 2,
                               .kvHeads = 2,
                               .qLen = kLength,
                               .kvLen = kLength,
                               .headDim = kHeadDim};
  for (const std::size_t wide : {0U, 1U, 2U}) { // batch, head, row
    AttentionTrial trial(backend(), shape, random);
    const OutputBits near = runForBits(trial);
    std::vector<std::int64_t> strides = {2 * kLength * kHeadDim,
                                         kLength * kHeadDim, kHeadDim, 1};
    strides[wide] =
        wide == 2 ? (std::int64_t{1} << 32) / 70 : (std::int64_t{1} << 32) + 64;
    std::vector<std::shared_ptr<float>> memory;
    std::vector<TensorView> views;
    for (const TestTensor *tensor : {&trial.q, &trial.k, &trial.v, &trial.o}) {
      memory.push_back(reserve(strides[wide] * (wide == 2 ? kLength : 2)));
      if (memory.back() == nullptr)
        GTEST_SKIP() << "no 16 GiB of address space";
      views.push_back(TensorView::strided(memory.back().get(),
                                          DataType::Float32,
                                          {2, 2, kLength, kHeadDim}, strides));
      if (tensor == &trial.o)
        continue;
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 2; ++h)
          for (std::int64_t n = 0; n < kLength; ++n)
            for (std::int64_t d = 0; d < kHeadDim; ++d)
              reference::storeElement(
                  reference::elementAddress(views.back(), b, h, n, d),
                  DataType::Float32,
                  reference::elementAt(tensor->host(), b, h, n, d));
    }
    ASSERT_TRUE(succeeded(
        attentionInto(views[3], views[0], views[1], views[2], trial.config)));
    std::vector<std::byte> far;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t n = 0; n < kLength; ++n) {
          const auto *row = static_cast<const std::byte *>(
              reference::elementAddress(views[3], b, h, n, 0));
          far.insert(far.end(), row, row + kHeadDim * sizeof(float));
        }
    EXPECT_EQ(far, near.o) << "wide dimension " << wide;
  }
}

} // namespace
} // namespace spargejit::numerics

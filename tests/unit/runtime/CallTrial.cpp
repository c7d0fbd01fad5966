// SPDX-License-Identifier: Apache-2.0
//
// Random calls.
#include "tests/unit/runtime/CallTrial.h"

#include "tests/reference/Comparison.h"
#include "tests/reference/ReferenceAttention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace spargejit::unit {

namespace {

/// What lies between the elements of every view: a NaN with a payload, so that
/// reading it shows in the result and writing there is seen.
constexpr std::uint32_t kGuard = 0x7fc0beef;

/// Calls visit(element) in row-major order.
template <typename Visit>
void forEachElement(const TensorView &view, Visit visit) {
  auto *data = static_cast<float *>(view.data);
  for (std::int64_t n = 0; n < view.elementCount(); ++n) {
    std::int64_t rest = n, offset = 0;
    for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
      offset += rest % view.sizes[i] * view.strides[i];
      rest /= view.sizes[i];
    }
    visit(data[offset]);
  }
}

std::vector<double> valuesOf(const TensorView &view) {
  std::vector<double> values;
  forEachElement(view, [&](float value) { values.push_back(value); });
  return values;
}

} // namespace

TensorView viewOf(const reference::BlockMask &mask) {
  return TensorView::contiguous(
      const_cast<std::uint8_t *>(mask.bits.data()), DataType::Bool,
      {mask.batch, mask.heads, mask.qBlocks, mask.kvBlocks});
}

std::unique_ptr<CallTrial::Array>
CallTrial::makeArray(reference::Random &random,
                     std::vector<std::int64_t> sizes) {
  // Dimensions 1 and 2 in either order, rows a little apart.
  const std::int64_t row = (sizes.size() == 4 ? sizes[3] : 1) + random.below(3);
  const bool headsInside = random.chance(0.5);
  std::vector<std::int64_t> strides(sizes.size(), 1);
  strides[1] = headsInside ? row : row * sizes[2];
  strides[2] = headsInside ? row * sizes[1] : row;
  strides[0] = row * sizes[1] * sizes[2] + random.below(9);
  auto array = std::make_unique<Array>();
  array->memory.resize(static_cast<std::size_t>(strides[0] * sizes[0] + 8),
                       std::bit_cast<float>(kGuard));
  array->view = TensorView::strided(array->memory.data() + 4, DataType::Float32,
                                    sizes, strides);
  return array;
}

CallTrial::CallTrial(reference::Random &random, CallShape shape) {
  auto drawn = [&](std::int64_t wanted, std::int64_t below) {
    return wanted >= 0 ? wanted : 1 + random.below(below);
  };
  const std::int64_t batch = 1 + random.below(2);
  const std::int64_t kvHeads = 1 + random.below(3);
  const std::int64_t qHeads = kvHeads * (1 + random.below(3));
  const std::int64_t qLen = drawn(shape.qLen, 200);
  const std::int64_t kvLen = drawn(shape.kvLen, 200);
  const std::int64_t headDim =
      shape.headDim >= 0 ? shape.headDim : 8 * (1 + random.below(5));
  q_ = makeArray(random, {batch, qHeads, qLen, headDim});
  k_ = makeArray(random, {batch, kvHeads, kvLen, headDim});
  v_ = makeArray(random, {batch, kvHeads, kvLen, headDim});
  o_ = makeArray(random, {batch, qHeads, qLen, headDim});
  lse_ = makeArray(random, {batch, qHeads, qLen});
  for (Array *input : {q_.get(), k_.get(), v_.get()})
    forEachElement(input->view, [&](float &value) {
      value = static_cast<float>(random.normal());
    });
  poison();
  config.maskBlockQ = random.chance(0.5) ? 64 : 128;
  config.maskBlockKv = random.chance(0.5) ? 16 : 64;
  if (random.chance(0.3))
    config.softmaxScale = random.uniform() * 2 - 1;
}

std::int64_t CallTrial::kvBlocks() const {
  return reference::ceilDiv(k().sizes[2], config.maskBlockKv);
}

reference::BlockMask CallTrial::randomMask(reference::Random &random) const {
  reference::BlockMask mask(q().sizes[0], q().sizes[1],
                            reference::ceilDiv(q().sizes[2], config.maskBlockQ),
                            kvBlocks(), false);
  const double share = random.uniform();
  for (auto &bit : mask.bits)
    bit = random.chance(share);
  return mask;
}

void CallTrial::poison() {
  for (Array *output : {o_.get(), lse_.get()})
    forEachElement(output->view, [](float &value) {
      value = std::numeric_limits<float>::quiet_NaN();
    });
}

void CallTrial::expectGuards(const Array &array) {
  std::vector<float> copy = array.memory;
  TensorView view = array.view;
  view.data = copy.data() + 4;
  forEachElement(view,
                 [](float &value) { value = std::bit_cast<float>(kGuard); });
  for (float value : copy)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), kGuard)
        << "memory beside an output was written";
}

void CallTrial::expectReference(const reference::BlockMask *mask,
                                const TensorView &o) const {
  reference::AttentionArguments arguments;
  arguments.q = q();
  arguments.k = k();
  arguments.v = v();
  arguments.mask = mask;
  arguments.maskBlockQ = config.maskBlockQ;
  arguments.maskBlockKv = config.maskBlockKv;
  arguments.causal = config.causal;
  arguments.softmaxScale = config.softmaxScale.value_or(
      1 / std::sqrt(static_cast<double>(q().sizes[3])));
  auto expected = reference::referenceAttention(arguments);
  auto compared = reference::compare(valuesOf(o), expected.o);
  EXPECT_TRUE(compared.isWithin(reference::attentionBounds(DataType::Float32)))
      << "o: "
      << compared.describe({o.sizes[0], o.sizes[1], o.sizes[2], o.sizes[3]});
  auto lse = reference::compare(valuesOf(lse_->view), expected.lse);
  EXPECT_TRUE(lse.isWithin(reference::lseBound(DataType::Float32, 20)))
      << "lse: " << lse.describe({o.sizes[0], o.sizes[1], o.sizes[2]});
  expectGuards(*o_);
  expectGuards(*lse_);
}

} // namespace spargejit::unit

// SPDX-License-Identifier: Apache-2.0
//
// Layouts, poison and the checks for bytes that changed.
#include "tests/numerics/harness/TestTensor.h"

#include "tests/reference/Elements.h"

#include <algorithm>
#include <cstring>

namespace spargejit::numerics {
namespace {

/// Bytes before and after a tensor in poisoned surroundings: more than the
/// largest tile row (256 float32) and a multiple of a page's alignment needs.
constexpr std::size_t kZoneBytes = 4096;

/// As float32, bfloat16 and float16 a NaN; as int32 far out of any range; as
/// bool true.
std::byte poisonOf(DataType type) {
  return type == DataType::Int32 ? std::byte{0x7f} : std::byte{0xff};
}

std::int64_t elementBytes(DataType type) {
  switch (type) {
  case DataType::Float32:
  case DataType::Int32:
    return 4;
  case DataType::BFloat16:
  case DataType::Float16:
    return 2;
  case DataType::Bool:
  case DataType::Float8E4M3:
    return 1;
  }
  return 0;
}

/// Calls visit(i, j, k, l) for every element, last index fastest.
template <typename Visit>
void forEachElement(const TensorView &view, Visit visit) {
  std::array<std::int64_t, 4> n = view.sizes;
  for (std::size_t d = static_cast<std::size_t>(view.rank); d < 4; ++d)
    n[d] = 1;
  for (std::int64_t i = 0; i < n[0]; ++i)
    for (std::int64_t j = 0; j < n[1]; ++j)
      for (std::int64_t k = 0; k < n[2]; ++k)
        for (std::int64_t l = 0; l < n[3]; ++l)
          visit(i, j, k, l);
}

} // namespace

std::vector<std::int64_t> stridesOf(Layout layout,
                                    const std::vector<std::int64_t> &sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * sizes[d];
  if (sizes.size() != 4)
    return strides;
  const std::int64_t heads = sizes[1];
  const std::int64_t length = sizes[2];
  const std::int64_t dim = sizes[3];
  switch (layout) {
  case Layout::HeadMajor:
  case Layout::OddBase:
    return strides;
  case Layout::LengthMajor:
    return {length * heads * dim, dim, heads * dim, 1};
  case Layout::PackedQkv:
    return {length * 3 * heads * dim, dim, 3 * heads * dim, 1};
  case Layout::PaddedRows:
    return {heads * (length * (dim + 8) + 24), length * (dim + 8) + 24, dim + 8,
            1};
  case Layout::Reversed:
    return {heads * length * dim, -length * dim, -dim, 1};
  }
  return strides;
}

TestTensor::TestTensor(TestBackend &backend, DataType type,
                       const std::vector<std::int64_t> &sizes,
                       const Placement &placement)
    : TestTensor(backend, type, sizes, stridesOf(placement.layout, sizes),
                 placement) {}

TestTensor::TestTensor(TestBackend &backend, DataType type,
                       const std::vector<std::int64_t> &sizes,
                       const std::vector<std::int64_t> &strides,
                       const Placement &placement)
    : backend_(&backend), placement_(placement) {
  const std::int64_t size = elementBytes(type);
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  bool hasElements = true;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    hasElements = hasElements && sizes[d] > 0;
    const std::int64_t reach = strides[d] * (sizes[d] - 1);
    (reach < 0 ? lowest : highest) += reach;
    hostView_.sizes[d] = sizes[d];
    hostView_.strides[d] = strides[d];
  }
  hostView_.dtype = type;
  hostView_.rank = static_cast<int>(sizes.size());
  const auto span =
      static_cast<std::size_t>(hasElements ? (highest - lowest + 1) * size : 0);
  std::size_t zone = kZoneBytes;
  if (placement.surroundings == Surroundings::Fence)
    zone = 0;
  else if (placement.layout == Layout::OddBase)
    zone += static_cast<std::size_t>(size);
  image_.resize(span + 2 * zone);
  memory_ = backend.allocate(image_.size(), placement.surroundings,
                             placement.fenceAtEnd);
  const std::size_t first =
      zone + static_cast<std::size_t>(hasElements ? -lowest * size : 0);
  deviceView_ = hostView_;
  deviceView_.device = backend.device();
  deviceView_.data = memory_.get() + first;
  hostView_.data = image_.data() + first;
  markElements();
  poison();
}

void TestTensor::markElements() {
  isElement_.assign(image_.size(), false);
  const auto size = static_cast<std::size_t>(elementBytes(hostView_.dtype));
  forEachElement(hostView_, [&](auto i, auto j, auto k, auto l) {
    const auto *address = static_cast<const std::byte *>(
        reference::elementAddress(hostView_, i, j, k, l));
    const auto at = static_cast<std::size_t>(address - image_.data());
    for (std::size_t byte = 0; byte < size; ++byte)
      isElement_[at + byte] = true;
  });
}

void TestTensor::fill(const std::function<double()> &value) {
  forEachElement(hostView_, [&](auto i, auto j, auto k, auto l) {
    reference::storeElement(reference::elementAddress(hostView_, i, j, k, l),
                            hostView_.dtype, value());
  });
}

void TestTensor::fillNormal(reference::Random &random) {
  fill([&] { return random.normal(); });
}

void TestTensor::poison() {
  std::fill(image_.begin(), image_.end(), poisonOf(hostView_.dtype));
}

void TestTensor::upload() {
  backend_->write(memory_.get(), image_.data(), image_.size());
}

void TestTensor::download() {
  backend_->read(image_.data(), memory_.get(), image_.size());
}

std::vector<double> TestTensor::values() const {
  std::vector<double> values;
  values.reserve(image_.size() / 4);
  forEachElement(hostView_, [&](auto i, auto j, auto k, auto l) {
    values.push_back(reference::elementAt(hostView_, i, j, k, l));
  });
  return values;
}

std::vector<double>
TestTensor::valuesOfRows(const std::vector<std::int64_t> &rows) const {
  std::vector<double> values;
  const std::int64_t dim = hostView_.rank == 4 ? hostView_.sizes[3] : 1;
  for (std::int64_t i = 0; i < hostView_.sizes[0]; ++i)
    for (std::int64_t j = 0; j < hostView_.sizes[1]; ++j)
      for (const std::int64_t row : rows)
        for (std::int64_t l = 0; l < dim; ++l)
          values.push_back(reference::elementAt(hostView_, i, j, row, l));
  return values;
}

std::vector<std::byte> TestTensor::bits() const {
  std::vector<std::byte> bytes;
  const auto size = elementBytes(hostView_.dtype);
  forEachElement(hostView_, [&](auto i, auto j, auto k, auto l) {
    const auto *address = static_cast<const std::byte *>(
        reference::elementAddress(hostView_, i, j, k, l));
    bytes.insert(bytes.end(), address, address + size);
  });
  return bytes;
}

testing::AssertionResult TestTensor::gapsAreIntact() const {
  const std::byte poison = poisonOf(hostView_.dtype);
  for (std::size_t at = 0; at < image_.size(); ++at)
    if (!isElement_[at] && image_[at] != poison)
      return testing::AssertionFailure()
             << "byte "
             << static_cast<std::ptrdiff_t>(at) -
                    (static_cast<const std::byte *>(hostView_.data) -
                     image_.data())
             << " from the first element was written; it belongs to no element";
  return testing::AssertionSuccess();
}

testing::AssertionResult TestTensor::isUnchanged() const {
  std::vector<std::byte> now(image_.size());
  backend_->read(now.data(), memory_.get(), now.size());
  for (std::size_t at = 0; at < image_.size(); ++at)
    if (now[at] != image_[at])
      return testing::AssertionFailure()
             << "an input was written, at byte "
             << static_cast<std::ptrdiff_t>(at) -
                    (static_cast<const std::byte *>(hostView_.data) -
                     image_.data())
             << " from its first element";
  return testing::AssertionSuccess();
}

} // namespace spargejit::numerics

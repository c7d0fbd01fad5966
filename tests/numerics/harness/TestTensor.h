// SPDX-License-Identifier: Apache-2.0
//
// A tensor under test: any strides, hostile surroundings, a host image to
// prepare and to compare.
#pragma once

#include "tests/numerics/harness/TestBackend.h"
#include "tests/reference/Random.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace spargejit::numerics {

/// How the elements of a rank-4 tensor [batch, heads, length, dim] lie.
enum class Layout {
  HeadMajor,   ///< [batch, heads, length, dim], dense
  LengthMajor, ///< [batch, length, heads, dim], dense
  PackedQkv,   ///< [batch, length, 3, heads, dim]: one of three slices
  PaddedRows,  ///< rows further apart than they are long, heads too
  Reversed,    ///< negative strides for heads and length
  OddBase,     ///< dense, but the first element one element after 64 bytes
};

/// Strides of `layout` for `sizes`, in elements; any rank from 1 to 4.
std::vector<std::int64_t> stridesOf(Layout layout,
                                    const std::vector<std::int64_t> &sizes);

/// Where a tensor is put.
struct Placement {
  Layout layout = Layout::HeadMajor;
  Surroundings surroundings = Surroundings::Poison;
  /// With a fence: which end of the tensor touches it.
  bool fenceAtEnd = true;
};

class TestTensor {
public:
  /// Everything poisoned: elements, the gaps between them, the surroundings.
  TestTensor(TestBackend &backend, DataType type,
             const std::vector<std::int64_t> &sizes,
             const Placement &placement = {});
  TestTensor(TestBackend &backend, DataType type,
             const std::vector<std::int64_t> &sizes,
             const std::vector<std::int64_t> &strides,
             const Placement &placement);
  TestTensor(const TestTensor &) = delete;
  TestTensor &operator=(const TestTensor &) = delete;

  /// The view to hand to the library.
  const TensorView &view() const { return deviceView_; }
  /// The same elements in the host image.
  const TensorView &host() const { return hostView_; }

  /// Sets every element of the host image, last index fastest.
  void fill(const std::function<double()> &value);
  void fillNormal(reference::Random &random);
  /// Poison in every element (and gap) again.
  void poison();

  /// Host image to the back end's memory.
  void upload();
  /// The back end's memory to the host image.
  void download();

  /// All elements of the host image, row-major.
  std::vector<double> values() const;
  /// Elements of the rows given: [d0, d1, rows] or [d0, d1, rows, d3].
  std::vector<double> valuesOfRows(const std::vector<std::int64_t> &rows) const;
  /// The elements' bytes, row-major: for comparing bit by bit.
  std::vector<std::byte> bits() const;

  /// After a run that may write elements: the bytes of gaps and surroundings
  /// are as uploaded. Compares the host image, so download first.
  testing::AssertionResult gapsAreIntact() const;
  /// After a run that may only read: the back end still has the host image.
  testing::AssertionResult isUnchanged() const;

private:
  void markElements();

  TestBackend *backend_;
  Placement placement_;
  std::vector<std::byte> image_;
  std::vector<bool> isElement_; ///< per byte of the image
  std::shared_ptr<std::byte> memory_;
  TensorView hostView_;
  TensorView deviceView_;
};

} // namespace spargejit::numerics

// SPDX-License-Identifier: Apache-2.0
//
// One call with random float32 inputs in strided memory with guard elements
// between the rows, outputs poisoned, and its comparison with the float64
// reference.
#pragma once

#include "spargejit/attention.h"
#include "tests/reference/BlockMask.h"
#include "tests/reference/Random.h"

#include <memory>
#include <vector>

namespace spargejit::unit {

/// Sizes of a trial; -1 is drawn.
struct CallShape {
  std::int64_t qLen = -1;
  std::int64_t kvLen = -1;
  std::int64_t headDim = -1;
};

/// The bool view of a reference mask.
TensorView viewOf(const reference::BlockMask &mask);

class CallTrial {
public:
  explicit CallTrial(reference::Random &random, CallShape shape = {});

  const TensorView &q() const { return q_->view; }
  const TensorView &k() const { return k_->view; }
  const TensorView &v() const { return v_->view; }
  const TensorView &o() const { return o_->view; }
  AttentionOutputs outputs() const { return {&lse_->view, lists}; }
  std::int64_t kvBlocks() const;

  reference::BlockMask randomMask(reference::Random &random) const;

  /// Fills o and lse with NaN.
  void poison();

  /// o and lse are the reference's for this mask (null: all keys), and no
  /// guard element was written. Records gtest failures.
  void expectReference(const reference::BlockMask *mask) const {
    expectReference(mask, o());
  }
  void expectReference(const reference::BlockMask *mask,
                       const TensorView &o) const;

  AttentionConfig config;
  BlockLists *lists = nullptr;

private:
  /// A view into memory of its own that is larger than the view.
  struct Array {
    std::vector<float> memory;
    TensorView view;
  };
  static std::unique_ptr<Array> makeArray(reference::Random &random,
                                          std::vector<std::int64_t> sizes);
  static void expectGuards(const Array &array);

  std::unique_ptr<Array> q_, k_, v_, o_, lse_;
};

} // namespace spargejit::unit

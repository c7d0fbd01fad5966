// SPDX-License-Identifier: Apache-2.0
//
// A back end under test: where its tensors live and how bytes get there. Every
// table of this folder runs over all of them; a new back end is one more entry
// in availableBackends().
#pragma once

#include "spargejit/tensor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace spargejit::numerics {

/// What lies around a tensor's memory.
enum class Surroundings {
  Poison, ///< bytes that read as NaN, on both sides; checked afterwards
  Fence,  ///< pages that fault when touched, right before and right after
};

/// What a back end implements so far. What it does not, it must refuse with
/// Unsupported and the argument's name.
struct Abilities {
  bool float32 = true;
  /// Scales of zero and below.
  bool anyScale = true;
  /// Bool masks; lists are always taken.
  bool masks = true;
  /// Negative strides, and addresses of less than 16 bytes' alignment.
  bool anyLayout = true;
  /// Methods that select blocks.
  bool selection = true;
  /// Attention in eight bits of every head dimension, and not only of those in
  /// kEightBitHeadDims (EightBitTest.cpp).
  bool anyEightBitWidth = true;
  /// Backward passes; without them a call names the kernel that is missing.
  bool gradients = true;
};

class TestBackend {
public:
  virtual ~TestBackend() = default;
  virtual std::string name() const = 0;
  virtual Abilities abilities() const { return {}; }
  virtual Device device() const = 0;
  /// True when Surroundings::Fence can be had.
  virtual bool hasFences() const = 0;
  /// `size` bytes, freed with the last reference. With a fence, the last byte
  /// (`fenceAtEnd`) or the first byte touches the forbidden page.
  virtual std::shared_ptr<std::byte>
  allocate(std::size_t size, Surroundings surroundings, bool fenceAtEnd) = 0;
  virtual void write(std::byte *to, const std::byte *from,
                     std::size_t size) = 0;
  virtual void read(std::byte *to, const std::byte *from, std::size_t size) = 0;
};

/// The back ends that this machine can run; the CPU is always there. A GPU is
/// there when the driver opens and the device has kernels.
const std::vector<TestBackend *> &availableBackends();

/// Base of the suites that run once for every back end.
class BackendTest : public testing::TestWithParam<TestBackend *> {
protected:
  TestBackend &backend() const { return *GetParam(); }
};

/// Ends the test, skipped, where the back end does not implement something.
#define SPARGEJIT_NEEDS(ability)                                               \
  if (!backend().abilities().ability)                                          \
  GTEST_SKIP() << backend().name() << " does not implement " #ability

inline std::string
backendNameOf(const testing::TestParamInfo<TestBackend *> &info) {
  return info.param->name();
}

} // namespace spargejit::numerics

/// Runs the suite, a class derived from BackendTest, on every back end.
#define SPARGEJIT_ON_EVERY_BACKEND(suite)                                      \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      , suite, testing::ValuesIn(::spargejit::numerics::availableBackends()),  \
      ::spargejit::numerics::backendNameOf)

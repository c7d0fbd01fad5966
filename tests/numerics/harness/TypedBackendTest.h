// SPDX-License-Identifier: Apache-2.0
//
// Base of the suites that run for every back end and every data type.
#pragma once

#include "tests/numerics/harness/AttentionTrial.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace spargejit::numerics {

class TypedBackendTest
    : public testing::TestWithParam<std::tuple<TestBackend *, DataType>> {
protected:
  void SetUp() override {
    if (dtype() == DataType::Float32)
      SPARGEJIT_NEEDS(float32);
  }
  TestBackend &backend() const { return *std::get<0>(GetParam()); }
  DataType dtype() const { return std::get<1>(GetParam()); }
};

inline std::string typedBackendNameOf(
    const testing::TestParamInfo<std::tuple<TestBackend *, DataType>> &info) {
  return std::get<0>(info.param)->name() + "_" +
         dataTypeName(std::get<1>(info.param));
}

} // namespace spargejit::numerics

/// Runs the suite, a class derived from TypedBackendTest, on every back end
/// with every data type.
#define SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(suite)                             \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      , suite,                                                                 \
      testing::Combine(                                                        \
          testing::ValuesIn(::spargejit::numerics::availableBackends()),       \
          testing::Values(::spargejit::DataType::Float32,                      \
                          ::spargejit::DataType::BFloat16,                     \
                          ::spargejit::DataType::Float16)),                    \
      ::spargejit::numerics::typedBackendNameOf)

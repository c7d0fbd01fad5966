// SPDX-License-Identifier: Apache-2.0
//
// Frozen cases: the reference must give the frozen values again, and so must
// the library within the bounds of its data type, with the very same mask.
#include "tests/golden/GoldenCase.h"
#include "tests/reference/Comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace spargejit::golden {
namespace {

using Frozen = std::pair<GoldenCase, GoldenValues>;

std::vector<Frozen> frozenCases() {
  std::vector<Frozen> cases;
  for (const nlohmann::json &entry : readCases(SPARGEJIT_GOLDEN_FILE))
    cases.emplace_back(entry.at("case").get<GoldenCase>(),
                       entry.at("expected").get<GoldenValues>());
  return cases;
}

/// o and lse of the library as float64, and its mask.
GoldenValues computeByLibrary(const GoldenCase &c, const GoldenInputs &inputs) {
  AttentionConfig config;
  config.method = c.method;
  config.topK = c.topK;
  config.topP = c.topP;
  config.maskBlockQ = c.maskBlockQ;
  config.maskBlockKv = c.maskBlockKv;
  config.causal = c.causal;
  const Tensor lse =
      Tensor::allocate(DataType::Float32, {c.batch, c.qHeads, c.qLen}).value();
  BlockLists lists;
  AttentionOutputs outputs;
  outputs.lse = &lse.view();
  outputs.lists = &lists;
  const Tensor o = attention(inputs.q.view(), inputs.k.view(), inputs.v.view(),
                             config, outputs)
                       .value();
  std::vector<double> output;
  std::vector<double> sums;
  for (std::int64_t i = 0; i < o.view().elementCount(); ++i)
    output.push_back(reference::loadElement(
        o.data<std::byte>() +
            i * static_cast<std::int64_t>(dataTypeSize(c.dtype)),
        c.dtype));
  for (std::int64_t i = 0; i < lse.view().elementCount(); ++i)
    sums.push_back(lse.data<float>()[i]);
  return summarise(
      inputs,
      reference::maskOfLists(lists.indices.view(), lists.counts.view(),
                             reference::ceilDiv(c.kvLen, c.maskBlockKv)),
      output, sums);
}

class Golden : public testing::TestWithParam<Frozen> {};

TEST_P(Golden, ReferenceGivesTheFrozenValues) {
  const auto &[which, frozen] = GetParam();
  const GoldenInputs inputs(which);
  const GoldenValues now = computeByReference(which, inputs);
  EXPECT_EQ(now.inputDigest, frozen.inputDigest) << "the inputs moved";
  EXPECT_EQ(now.maskDigest, frozen.maskDigest) << "the mask moved";
  EXPECT_EQ(now.selected, frozen.selected);
  // exp and log of another standard library may differ in their last bits.
  const auto o = reference::compare(now.o, frozen.o);
  EXPECT_TRUE(o.isWithin({1e-12, 1e-12, 1e-14}))
      << o.describe({static_cast<std::int64_t>(now.o.size())});
  EXPECT_TRUE(reference::compare(now.lse, frozen.lse).isWithin(1e-12));
  EXPECT_NEAR(now.norm, frozen.norm, 1e-12 * frozen.norm);
}

TEST_P(Golden, LibraryGivesTheFrozenValues) {
  const auto &[which, frozen] = GetParam();
  const GoldenInputs inputs(which);
  const GoldenValues now = computeByLibrary(which, inputs);
  EXPECT_EQ(now.maskDigest, frozen.maskDigest) << "the mask moved";
  EXPECT_EQ(now.selected, frozen.selected);
  const auto bounds = reference::attentionBounds(which.dtype);
  const auto o = reference::compare(now.o, frozen.o);
  // Single elements, so the bound of single elements.
  EXPECT_LE(o.maxAbsolute, bounds.maxAbsolute)
      << o.describe({static_cast<std::int64_t>(now.o.size())});
  EXPECT_EQ(o.nonFiniteMismatches, 0);
  EXPECT_TRUE(reference::compare(now.lse, frozen.lse)
                  .isWithin(reference::lseBound(which.dtype, 10)));
  EXPECT_NEAR(now.norm, frozen.norm, bounds.relativeL2 * frozen.norm);
}

INSTANTIATE_TEST_SUITE_P(, Golden, testing::ValuesIn(frozenCases()),
                         [](const auto &info) {
                           return info.param.first.name;
                         });

} // namespace
} // namespace spargejit::golden

// SPDX-License-Identifier: Apache-2.0
//
// The float64 gradients against central differences of the float64 attention,
// and what must be exactly 0.
#include "tests/reference/ReferenceGradients.h"

#include "tests/reference/HostArray.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace spargejit::reference {
namespace {

/// Exact in float32 around elements that are multiples of 2^-12.
constexpr double kStep = 0x1p-10;

struct SmallCase {
  const char *name;
  bool masked;
  bool causal;
  bool withDLse;
  std::int64_t qLen;
  std::int64_t kvLen;
};

class ReferenceGradients : public testing::TestWithParam<SmallCase> {
protected:
  ReferenceGradients()
      : q_(DataType::Float32, {2, 4, GetParam().qLen, 3}),
        k_(DataType::Float32, {2, 2, GetParam().kvLen, 3}),
        v_(DataType::Float32, {2, 2, GetParam().kvLen, 3}),
        dO_(DataType::Float32, {2, 4, GetParam().qLen, 3}),
        dLse_(DataType::Float32, {2, 4, GetParam().qLen, 1}) {
    Random random(20261130);
    for (HostArray *array : {&q_, &k_, &v_, &dO_, &dLse_})
      array->fill([&](auto, auto, auto, auto) {
        return std::round(random.normal() * 0x1p12) * 0x1p-12;
      });
    arguments_.q = q_.view();
    arguments_.k = k_.view();
    arguments_.v = v_.view();
    arguments_.causal = GetParam().causal;
    arguments_.softmaxScale = 0.7;
    arguments_.maskBlockQ = arguments_.maskBlockKv = 2;
    mask_ = BlockMask(2, 4, ceilDiv(GetParam().qLen, 2),
                      ceilDiv(GetParam().kvLen, 2), false);
    for (auto &bit : mask_.bits)
      bit = random.chance(0.6) ? 1 : 0;
    // A row of blocks and a column of blocks with nothing.
    for (std::int64_t j = 0; j < mask_.kvBlocks; ++j)
      mask_.set(1, 2, 0, j, false);
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t i = 0; i < mask_.qBlocks; ++i)
        mask_.set(0, h, i, 1, false);
    if (GetParam().masked)
      arguments_.mask = &mask_;
  }

  TensorView dLseView() const {
    TensorView view = dLse_.view();
    view.rank = 3;
    view.strides = {view.strides[0], view.strides[1], view.strides[2], 0};
    return view;
  }

  double loss() const {
    const AttentionValues values = referenceAttention(arguments_);
    const TensorView dLse = dLseView();
    double sum = 0;
    std::size_t row = 0;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 4; ++h)
        for (std::int64_t n = 0; n < GetParam().qLen; ++n, ++row) {
          for (std::int64_t d = 0; d < 3; ++d)
            sum += dO_.get(b, h, n, d) *
                   values.o[row * 3 + static_cast<std::size_t>(d)];
          if (GetParam().withDLse && std::isfinite(values.lse[row]))
            sum += elementAt(dLse, b, h, n) * values.lse[row];
        }
    return sum;
  }

  /// Every element of x moved up and down.
  void check(HostArray &x, const std::vector<double> &gradient,
             const char *name) {
    const auto sizes = x.view().sizes;
    std::size_t at = 0;
    for (std::int64_t b = 0; b < sizes[0]; ++b)
      for (std::int64_t h = 0; h < sizes[1]; ++h)
        for (std::int64_t n = 0; n < sizes[2]; ++n)
          for (std::int64_t d = 0; d < sizes[3]; ++d, ++at) {
            const double middle = x.get(b, h, n, d);
            x.set(b, h, n, d, middle + kStep);
            const double above = loss();
            x.set(b, h, n, d, middle - kStep);
            const double below = loss();
            x.set(b, h, n, d, middle);
            EXPECT_NEAR(gradient[at], (above - below) / (2 * kStep), 2e-5)
                << name << " [" << b << ", " << h << ", " << n << ", " << d
                << "]";
          }
  }

  HostArray q_, k_, v_, dO_, dLse_;
  BlockMask mask_;
  AttentionArguments arguments_;
};

TEST_P(ReferenceGradients, AreSlopesOfTheLoss) {
  const Gradients gradients = referenceGradients(
      arguments_, dO_.view(),
      GetParam().withDLse ? std::optional(dLseView()) : std::nullopt);
  check(q_, gradients.dq, "dq");
  check(k_, gradients.dk, "dk");
  check(v_, gradients.dv, "dv");
}

TEST_P(ReferenceGradients, AreZeroWhereNothingIsSelected) {
  if (!GetParam().masked)
    GTEST_SKIP() << "every block is selected";
  const Gradients gradients =
      referenceGradients(arguments_, dO_.view(), std::nullopt);
  const auto qLen = static_cast<std::size_t>(GetParam().qLen);
  for (std::size_t at = 0; at < 2 * 3; ++at) // rows 0 and 1 of (1, 2)
    EXPECT_EQ(gradients.dq[(4 + 2) * qLen * 3 + at], 0);
  for (std::size_t at = 2 * 3; at < 4 * 3; ++at) { // keys 2 and 3 of (0, 0)
    EXPECT_EQ(gradients.dk[at], 0);
    EXPECT_EQ(gradients.dv[at], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ReferenceGradients,
    testing::Values(SmallCase{"Dense", false, false, false, 4, 5},
                    SmallCase{"DenseWithDLse", false, false, true, 5, 4},
                    SmallCase{"Causal", false, true, true, 4, 6},
                    SmallCase{"CausalWithEmptyRows", false, true, true, 6, 4},
                    SmallCase{"Masked", true, false, true, 5, 5},
                    SmallCase{"MaskedCausal", true, true, false, 5, 6}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace spargejit::reference

// SPDX-License-Identifier: Apache-2.0
//
// An attention problem in 8 bits on the host: q, k and v as attention_fwd_fp8
// takes them, and what they stand for. No code shared with the product.
#pragma once

#include "tests/gpu/kernels/Trial.h"

#include <cstdint>
#include <vector>

namespace spargejit::gpu_trial {

struct QuantisedTrial {
  /// [batch, heads, length, dim] of f8E4M3FN: q 8 log2(e) softmax_scale r and
  /// k / r, r of the k head.
  std::vector<std::uint8_t> q, k;
  /// [dim / valueDim, batch, kvHeads, imageRows, 128]: for each valueDim
  /// channels of v / vScale an image of valueDim + 8 rows and of columns for
  /// the keys in their places, 0 beyond the last key.
  std::vector<std::uint8_t> v;
  std::int64_t valueDim = 0, imageRows = 0;
  /// What the elements were multiplied with, [batch, heads], [batch, kvHeads]
  /// and [batch, kvHeads, dim]; vScale = 1 / vFactor.
  std::vector<float> qFactor, kFactor, vFactor, vScale;
  /// What q, k and v / vScale stand for, with the scale and lists that go with
  /// them: the problem that the kernel solves, but for rounding of its own.
  Trial rounded;
};

/// Rounded to nearest even, what is too large to 448.
std::uint8_t toEightBits(float value);
float fromEightBits(std::uint8_t bits);

QuantisedTrial quantise(const Trial &trial, std::int64_t valueDim);

/// The row of `trial.rounded`, with the channels' scales.
ReferenceRow referenceRow(const QuantisedTrial &trial, std::int64_t batch,
                          std::int64_t head, std::int64_t row);

} // namespace spargejit::gpu_trial

// SPDX-License-Identifier: Apache-2.0
//
// float32 <-> bfloat16 and float16 on the host, for tests and the command line:
// round to nearest, ties to even; overflow gives infinity; NaN stays a quiet
// NaN; subnormal numbers are kept.
#pragma once

#include "spargejit/tensor.h"

#include <cstdint>
#include <span>

namespace spargejit {

std::uint16_t bfloat16FromFloat(float value);
float floatFromBfloat16(std::uint16_t bits);
std::uint16_t float16FromFloat(float value);
float floatFromFloat16(std::uint16_t bits);

/// Rounds `values` to `dtype` (Float32, BFloat16 or Float16) and writes them
/// side by side to `out`, which has room for them.
void convertFromFloat(std::span<const float> values, DataType dtype, void *out);
/// The reverse: reads out.size() elements of `dtype` at `data`. Exact.
void convertToFloat(const void *data, DataType dtype, std::span<float> out);

} // namespace spargejit

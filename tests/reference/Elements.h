// SPDX-License-Identifier: Apache-2.0
//
// Elements of every tested data type as float64 and back, written
// independently of the product's conversions.
#pragma once

#include "spargejit/tensor.h"

#include <cstdint>

namespace spargejit::reference {

/// The element at `address` as float64; exact. Bool gives 0 or 1.
double loadElement(const void *address, DataType type);

/// Rounds to nearest, ties to even, overflow to infinity (in eight bits, which
/// have none, to the largest number); NaN stays NaN.
void storeElement(void *address, DataType type, double value);

/// What `value` becomes in `type`.
double roundedTo(DataType type, double value);

/// Address of element (i, j, k, l); trailing indices beyond the rank are 0.
void *elementAddress(const TensorView &view, std::int64_t i, std::int64_t j = 0,
                     std::int64_t k = 0, std::int64_t l = 0);

/// The element itself; exact.
double elementAt(const TensorView &view, std::int64_t i, std::int64_t j = 0,
                 std::int64_t k = 0, std::int64_t l = 0);

} // namespace spargejit::reference

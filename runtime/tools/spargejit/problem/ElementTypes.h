// SPDX-License-Identifier: Apache-2.0
//
// Float types by name, and whole tensors converted between them.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace spargejit::problem {

/// True for float32, bfloat16 and float16.
bool isFloatType(DataType type);
/// "float32", "bfloat16", "float16"; nothing for other names.
std::optional<DataType> floatTypeFromName(const std::string &name);

/// The sizes of all dimensions.
std::vector<std::int64_t> shapeOf(const TensorView &view);

/// The dense tensor `from` in float type `to`, rounded to nearest; `from`
/// itself when it has that type. OutOfResources.
Result<Tensor> convertTensor(const Tensor &from, DataType to);

/// Sets every element of a dense float tensor to NaN, so that elements that a
/// run leaves unwritten are found.
void poison(const Tensor &tensor);

} // namespace spargejit::problem

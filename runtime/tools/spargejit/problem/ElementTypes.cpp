// SPDX-License-Identifier: Apache-2.0
//
// ElementTypes.h over the library's own conversions.
#include "runtime/tools/spargejit/problem/ElementTypes.h"

#include "runtime/base/DataTypeConversion.h"

#include <algorithm>
#include <array>
#include <limits>

namespace spargejit::problem {

bool isFloatType(DataType type) {
  return type == DataType::Float32 || type == DataType::BFloat16 ||
         type == DataType::Float16;
}

std::optional<DataType> floatTypeFromName(const std::string &name) {
  for (DataType type :
       {DataType::Float32, DataType::BFloat16, DataType::Float16})
    if (name == dataTypeName(type))
      return type;
  return std::nullopt;
}

std::vector<std::int64_t> shapeOf(const TensorView &view) {
  return {view.sizes.begin(), view.sizes.begin() + view.rank};
}

Result<Tensor> convertTensor(const Tensor &from, DataType to) {
  const TensorView &view = from.view();
  if (view.dtype == to)
    return from;
  Result<Tensor> result = Tensor::allocate(to, shapeOf(view));
  if (!result)
    return result;
  // In pieces, so that no third copy of a large tensor exists.
  std::array<float, 4096> values;
  const char *source = from.data<const char>();
  char *target = result->data<char>();
  std::size_t left = static_cast<std::size_t>(view.elementCount());
  while (left > 0) {
    std::size_t count = std::min(left, values.size());
    std::span<float> piece(values.data(), count);
    convertToFloat(source, view.dtype, piece);
    convertFromFloat(piece, to, target);
    source += count * dataTypeSize(view.dtype);
    target += count * dataTypeSize(to);
    left -= count;
  }
  return result;
}

void poison(const Tensor &tensor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  char *element = tensor.data<char>();
  std::size_t bytes = dataTypeSize(tensor.view().dtype);
  for (std::int64_t i = tensor.view().elementCount(); i > 0; --i) {
    convertFromFloat({&nan, 1}, tensor.view().dtype, element);
    element += bytes;
  }
}

} // namespace spargejit::problem

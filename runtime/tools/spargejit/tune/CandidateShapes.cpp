// SPDX-License-Identifier: Apache-2.0
//
// Problems and outputs of candidates.
#include "runtime/tools/spargejit/tune/CandidateShapes.h"

#include <algorithm>
#include <cstring>

namespace spargejit::tool {

namespace {

/// Rows of poison before and after an output, in every head.
constexpr std::int64_t kGuardRows = 3;
/// NaN in every type: what is not written is found as well.
constexpr unsigned char kPoison = 0xff;

} // namespace

std::vector<autotune::ProblemShape>
smallShapes(const autotune::ProblemShape &problem, std::int64_t fewRows) {
  std::vector<autotune::ProblemShape> shapes;
  for (auto [qLen, kvLen] : {std::pair<std::int64_t, std::int64_t>(fewRows, 67),
                             {256, 512},
                             {301, 997}}) {
    autotune::ProblemShape shape = problem;
    shape.batch = 1;
    shape.qHeads = 2;
    shape.kvHeads = qLen == 301 ? 1 : 2;
    shape.qLen = qLen;
    shape.kvLen = kvLen;
    shape.density = problem.density < 1 ? 0.4 : 1;
    shapes.push_back(shape);
  }
  return shapes;
}

Result<Tensor> guardedTensor(DataType dtype, std::int64_t heads,
                             std::int64_t length, std::int64_t headDim) {
  std::vector<std::int64_t> sizes = {1, heads, length + 2 * kGuardRows};
  if (headDim > 0)
    sizes.push_back(headDim);
  auto tensor = Tensor::allocate(dtype, sizes);
  if (tensor.ok())
    std::memset(tensor->view().data, kPoison,
                static_cast<std::size_t>(tensor->view().elementCount()) *
                    dataTypeSize(dtype));
  return tensor;
}

TensorView insideOf(const Tensor &guarded) {
  TensorView view = guarded.view();
  view.sizes[2] -= 2 * kGuardRows;
  view.data = static_cast<char *>(view.data) +
              kGuardRows * view.strides[2] *
                  static_cast<std::int64_t>(dataTypeSize(view.dtype));
  return view;
}

bool guardsAreIntact(const Tensor &guarded) {
  const TensorView &view = guarded.view();
  const auto rowBytes =
      static_cast<std::int64_t>(dataTypeSize(view.dtype)) * view.strides[2];
  const auto *bytes = static_cast<const unsigned char *>(view.data);
  for (std::int64_t head = 0; head < view.sizes[0] * view.sizes[1]; ++head)
    for (std::int64_t row = 0; row < view.sizes[2]; ++row) {
      if (row >= kGuardRows && row < view.sizes[2] - kGuardRows)
        continue;
      const auto *begin = bytes + (head * view.sizes[2] + row) * rowBytes;
      if (std::any_of(begin, begin + rowBytes,
                      [](unsigned char byte) { return byte != kPoison; }))
        return false;
    }
  return true;
}

Status moveTo(Device device, std::initializer_list<Tensor *> tensors) {
  for (Tensor *tensor : tensors) {
    if (tensor->view().device == device)
      continue;
    auto copy = tensor->copyTo(device);
    if (!copy.ok())
      return copy.status();
    *tensor = *std::move(copy);
  }
  return Status();
}

} // namespace spargejit::tool

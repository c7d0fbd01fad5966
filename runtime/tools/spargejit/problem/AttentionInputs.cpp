// SPDX-License-Identifier: Apache-2.0
//
// AttentionInputs.h over the file readers and the synthetic maker.
#include "runtime/tools/spargejit/problem/AttentionInputs.h"

#include "runtime/tools/spargejit/files/Npy.h"
#include "runtime/tools/spargejit/files/Safetensors.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>

namespace spargejit::problem {

namespace {

Result<Tensor> readFloatTensor(const files::SafetensorsFile &file,
                               const std::string &path,
                               const std::string &name) {
  const files::SafetensorsEntry *entry = file.find(name);
  if (entry && entry->dtype != "F32" && entry->dtype != "BF16" &&
      entry->dtype != "F16")
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("{}: tensor {}: expected dtype F32, BF16 or F16, "
                              "got {}",
                              path, name, entry->dtype));
  return file.read(name);
}

Status readSafetensors(const std::string &path, AttentionInputs &inputs) {
  Result<files::SafetensorsFile> file = files::SafetensorsFile::open(path);
  if (!file)
    return file.status();
  for (auto [name, into] :
       {std::pair{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}}) {
    Result<Tensor> tensor = readFloatTensor(*file, path, name);
    if (!tensor)
      return tensor.status();
    *into = *std::move(tensor);
  }
  inputs.description = path;
  return Status();
}

Status readThreeNpy(const InputSource &source, AttentionInputs &inputs) {
  for (auto [path, into] : {std::pair{&source.npyQ, &inputs.q},
                            {&source.npyK, &inputs.k},
                            {&source.npyV, &inputs.v}}) {
    Result<Tensor> tensor = files::readNpy(*path);
    if (!tensor)
      return tensor.status();
    if (!isFloatType(tensor->view().dtype))
      return Status(ErrorCode::InvalidArgument,
                    fmt::format("{}: expected float32 or float16, got {}",
                                *path, dataTypeName(tensor->view().dtype)));
    *into = *std::move(tensor);
  }
  inputs.description =
      fmt::format("{}, {}, {}", source.npyQ, source.npyK, source.npyV);
  return Status();
}

Status makeSynthetic(const InputSource &source, DataType dtype, int threads,
                     AttentionInputs &inputs) {
  Result<std::vector<std::int64_t>> sizes =
      parseSyntheticShape(source.synthetic);
  if (!sizes)
    return sizes.status();
  SyntheticShape shape{(*sizes)[0], (*sizes)[1], (*sizes)[2], (*sizes)[3]};
  Result<SyntheticTensors> made =
      makeSyntheticInputs(shape, dtype, source.seed, threads);
  if (!made)
    return made.status();
  inputs.q = made->q;
  inputs.k = made->k;
  inputs.v = made->v;
  inputs.description = fmt::format("synthetic, seed {}", source.seed);
  return Status();
}

/// Without a dtype to convert all to, q, k and v must agree.
Status checkOneDtype(const AttentionInputs &inputs,
                     std::optional<DataType> wanted) {
  const DataType q = inputs.q.view().dtype;
  for (auto [name, tensor] :
       {std::pair{"k", &inputs.k}, std::pair{"v", &inputs.v}})
    if (!wanted && tensor->view().dtype != q)
      return Status(ErrorCode::InvalidArgument,
                    fmt::format("{}: expected q, k and v of one dtype, or "
                                "--dtype to convert them to, got {} for q and "
                                "{} for {}",
                                inputs.description, dataTypeName(q),
                                dataTypeName(tensor->view().dtype), name));
  return Status();
}

} // namespace

Result<TensorView> viewAsBhnd(const Tensor &tensor, Layout layout) {
  const TensorView &view = tensor.view();
  if (view.rank < 2 || view.rank > 4)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("expected 2, 3 or 4 dimensions, got {} ({})",
                              view.rank, fmt::join(shapeOf(view), ", ")));
  std::vector<std::int64_t> sizes = shapeOf(view);
  if (sizes.size() == 2) // one head: before or after the length is the same
    sizes.insert(layout == Layout::Bhnd ? sizes.begin() : sizes.begin() + 1, 1);
  if (sizes.size() == 3)
    sizes.insert(sizes.begin(), 1);
  TensorView dense =
      TensorView::contiguous(view.data, view.dtype, sizes, view.device);
  return layout == Layout::Bhnd ? dense : dense.transposed(1, 2);
}

Result<AttentionInputs> inputsOn(const AttentionInputs &inputs, Device device) {
  AttentionInputs there = inputs;
  for (auto [tensor, view] : {std::pair{&there.q, &there.qView},
                              {&there.k, &there.kView},
                              {&there.v, &there.vView}}) {
    if (tensor->view().device == device)
      continue;
    Result<Tensor> copy = tensor->copyTo(device);
    if (!copy)
      return copy.status();
    *tensor = *std::move(copy);
    view->data = tensor->view().data;
    view->device = device;
  }
  return there;
}

Result<std::vector<std::int64_t>> parseSyntheticShape(const std::string &text) {
  std::vector<std::int64_t> sizes;
  const char *at = text.data();
  const char *end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1)
      break;
    sizes.push_back(size);
    at = next;
    if (at == end || *at != ',')
      break;
    ++at;
  }
  // More elements than this would not fit in any machine's memory.
  constexpr double kMaxElements = 0x1p40;
  double elements = 1;
  for (std::int64_t size : sizes)
    elements *= static_cast<double>(size);
  if (elements > kMaxElements)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("expected B,H,N,D of at most 2^40 elements in "
                              "all, got {}",
                              text));
  if (sizes.size() != 4 || at != end)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("expected B,H,N,D (batch, heads, tokens, head "
                              "dimension), each at least 1, got {}",
                              text));
  return sizes;
}

Result<AttentionInputs> loadInputs(const InputSource &source, Layout layout,
                                   std::optional<DataType> dtype, int threads) {
  AttentionInputs inputs;
  Status status;
  if (!source.safetensors.empty()) {
    status = readSafetensors(source.safetensors, inputs);
  } else if (!source.synthetic.empty()) {
    layout = Layout::Bhnd;
    status = makeSynthetic(source, dtype.value_or(DataType::Float32), threads,
                           inputs);
  } else {
    status = readThreeNpy(source, inputs);
  }
  if (!status)
    return status;

  if (Status same = checkOneDtype(inputs, dtype); !same)
    return same;
  inputs.layout = layout;
  inputs.originalDtype = inputs.q.view().dtype;
  DataType wanted = dtype.value_or(inputs.originalDtype);
  for (auto [name, tensor, view] : {std::tuple{"q", &inputs.q, &inputs.qView},
                                    {"k", &inputs.k, &inputs.kView},
                                    {"v", &inputs.v, &inputs.vView}}) {
    Result<Tensor> converted = convertTensor(*tensor, wanted);
    if (!converted)
      return converted.status();
    *tensor = *std::move(converted);
    Result<TensorView> seen = viewAsBhnd(*tensor, layout);
    if (!seen)
      return Status(seen.status())
          .withContext(fmt::format("{}: tensor {}", inputs.description, name));
    *view = *seen;
  }
  return inputs;
}

Result<TensorView> loadBlockMask(const std::string &path, std::int64_t batch,
                                 std::int64_t heads, Tensor &storage) {
  Result<Tensor> mask = files::readNpy(path);
  if (!mask)
    return mask.status();
  const TensorView &view = mask->view();
  if (view.dtype != DataType::Bool || view.rank < 2)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("{}: expected bool [batch, heads, query blocks, "
                              "key blocks], got {} ({})",
                              path, dataTypeName(view.dtype),
                              fmt::join(shapeOf(view), ", ")));
  std::vector<std::int64_t> sizes = shapeOf(view);
  sizes.insert(sizes.begin(), 4 - sizes.size(), 1);
  std::vector<std::int64_t> strides = {sizes[1] * sizes[2] * sizes[3],
                                       sizes[2] * sizes[3], sizes[3], 1};
  for (auto [dimension, size] :
       {std::pair<std::size_t, std::int64_t>{0, batch}, {1, heads}})
    if (sizes[dimension] == 1) {
      sizes[dimension] = size;
      strides[dimension] = 0;
    }
  storage = *std::move(mask);
  return TensorView::strided(storage.data<void>(), DataType::Bool, sizes,
                             strides);
}

} // namespace spargejit::problem

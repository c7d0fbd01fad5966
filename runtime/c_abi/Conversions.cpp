// SPDX-License-Identifier: Apache-2.0
//
// Conversions.h. What the C++ functions check by themselves is left to them.
#include "runtime/c_abi/Conversions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace spargejit::c_abi {

namespace {

static_assert(SpargejitFloat32 == static_cast<int>(DataType::Float32) &&
              SpargejitBFloat16 == static_cast<int>(DataType::BFloat16) &&
              SpargejitFloat16 == static_cast<int>(DataType::Float16) &&
              SpargejitInt32 == static_cast<int>(DataType::Int32) &&
              SpargejitBool == static_cast<int>(DataType::Bool) &&
              SpargejitFloat8E4M3 == static_cast<int>(DataType::Float8E4M3));
static_assert(
    SpargejitPrecisionInputs == static_cast<int>(Precision::Inputs) &&
    SpargejitPrecisionFp8Exact == static_cast<int>(Precision::Fp8Exact) &&
    SpargejitPrecisionFp8Balanced == static_cast<int>(Precision::Fp8Balanced) &&
    SpargejitPrecisionFp8Fast == static_cast<int>(Precision::Fp8Fast));
static_assert(SpargejitCpu == static_cast<int>(DeviceKind::Cpu) &&
              SpargejitCuda == static_cast<int>(DeviceKind::Cuda));
static_assert(TensorView::kMaxRank == 4);

template <typename... Values>
Status invalid(fmt::format_string<Values...> text, Values &&...values) {
  return {ErrorCode::InvalidArgument,
          fmt::format(text, std::forward<Values>(values)...)};
}

/// Memory that stays the caller's.
std::shared_ptr<void> borrow(void *memory) {
  return {std::shared_ptr<void>(), memory};
}

/// A failure that begins with the name of a field, with its owner's in front:
/// names are put together on failure only.
Status ofOwner(const char *owner, const Status &failure) {
  return {failure.code(), owner + failure.message()};
}

/// A view, where one is given.
Status toOptional(const char *name, const SpargejitTensor *tensor,
                  std::optional<TensorView> &to) {
  if (!tensor)
    return {};
  auto view = toView(name, tensor);
  if (view.ok())
    to = *view;
  return view.status();
}

/// The fields that need no check of their own.
void copySettings(const SpargejitConfig &from, AttentionConfig &to) {
  if (from.method)
    to.method = from.method;
  if (from.customSource)
    to.customSource = from.customSource;
  to.stream = from.stream;
  to.topK = from.topK;
  to.topP = from.topP;
  if (from.hasSoftmaxScale)
    to.softmaxScale = from.softmaxScale;
  to.denseKeys = {from.denseKeys[0], from.denseKeys[1]};
  to.denseRows = {from.denseRows[0], from.denseRows[1]};
  to.maskBlockQ = from.maskBlockQ;
  to.maskBlockKv = from.maskBlockKv;
  to.causal = from.causal != 0;
  to.validateLists = from.validateLists != 0;
  to.threads = from.threads;
  to.precision = static_cast<Precision>(from.precision);
  to.keptBytes = from.keptBytes;
  to.tune = from.tune == 1 ? TuneMode::OnFirstUse : TuneMode::Off;
}

/// The size in front of a struct, which is at least that of the first version.
Result<std::size_t> sizeOf(const char *name, const void *versioned,
                           std::size_t firstSize) {
  if (!versioned)
    return invalid("{}: expected a struct, got null", name);
  std::size_t size = 0;
  std::memcpy(&size, versioned, sizeof size);
  if (size < firstSize || size > kMaxStructSize)
    return invalid("{}.structSize: expected sizeof the struct, {} or more, got "
                   "{}",
                   name, firstSize, size);
  return size;
}

} // namespace

Result<TensorView> toView(const char *name, const SpargejitTensor *tensor) {
  if (!tensor)
    return invalid("{}: expected a tensor, got null", name);
  if (tensor->dtype < SpargejitFloat32 || tensor->dtype > SpargejitFloat8E4M3)
    return invalid("{}.dtype: expected {} to {}, got {}", name,
                   int{SpargejitFloat32}, int{SpargejitFloat8E4M3},
                   tensor->dtype);
  if (tensor->deviceKind != SpargejitCpu && tensor->deviceKind != SpargejitCuda)
    return invalid("{}.deviceKind: expected {} or {}, got {}", name,
                   int{SpargejitCpu}, int{SpargejitCuda}, tensor->deviceKind);
  const bool isCpu = tensor->deviceKind == SpargejitCpu;
  if (tensor->deviceOrdinal < 0 || (isCpu && tensor->deviceOrdinal != 0))
    return invalid("{}.deviceOrdinal: expected {}, got {}", name,
                   isCpu ? "0, since there is one CPU" : "0 or more",
                   tensor->deviceOrdinal);
  if (tensor->rank < 0 || tensor->rank > TensorView::kMaxRank)
    return invalid("{}.rank: expected 0 to {}, got {}", name,
                   int{TensorView::kMaxRank}, tensor->rank);
  TensorView view;
  view.data = tensor->data;
  view.dtype = static_cast<DataType>(tensor->dtype);
  view.rank = tensor->rank;
  std::copy_n(tensor->sizes, tensor->rank, view.sizes.begin());
  std::copy_n(tensor->strides, tensor->rank, view.strides.begin());
  view.device = {static_cast<DeviceKind>(tensor->deviceKind),
                 tensor->deviceOrdinal};
  return view;
}

Result<Tensor> toDense(const char *owner, const char *field,
                       const SpargejitTensor *tensor, const char *why) {
  auto view = toView(field, tensor);
  if (!view.ok())
    return ofOwner(owner, view.status());
  std::int64_t stride = 1;
  for (int i = view->rank; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    if (view->sizes[at] != 1 && view->strides[at] != stride &&
        view->elementCount() != 0)
      return invalid("{}{}.strides[{}]: expected {}, since {}, got {}", owner,
                     field, i, stride, why, view->strides[at]);
    stride *= view->sizes[at];
  }
  return Tensor::adopt(borrow(view->data), view->dtype,
                       {view->sizes.begin(), view->sizes.begin() + view->rank},
                       view->device);
}

Status toLse(const SpargejitOutputs &outputs, TensorView &lse,
             AttentionOutputs &to) {
  if (!outputs.lse)
    return {};
  auto view = toView("outputs.lse", outputs.lse);
  if (!view.ok())
    return view.status();
  lse = *view;
  to.lse = &lse;
  return {};
}

Result<BlockLists> toLists(const char *name, const SpargejitLists *lists) {
  if (!lists)
    return invalid("{}: expected lists, got null", name);
  auto indices = toDense(name, ".indices", &lists->indices, "lists are dense");
  if (!indices.ok())
    return indices.status();
  auto counts = toDense(name, ".counts", &lists->counts, "lists are dense");
  if (!counts.ok())
    return counts.status();
  return BlockLists{*std::move(indices), *std::move(counts), lists->maskBlockQ,
                    lists->maskBlockKv,  lists->qLen,        lists->kvLen};
}

Status toConfig(const SpargejitConfig *config, CallConfig &to) {
  auto from = versioned("config", config);
  if (!from.ok())
    return from.status();
  if (from->tune != 0 && from->tune != 1)
    return invalid("config.tune: expected 0 or 1, got {}", from->tune);
  if (from->precision < SpargejitPrecisionInputs ||
      from->precision > SpargejitPrecisionFp8Fast)
    return {ErrorCode::Unsupported,
            fmt::format("config.precision: expected {} to {}, got {}",
                        int{SpargejitPrecisionInputs},
                        int{SpargejitPrecisionFp8Fast}, from->precision)};
  copySettings(*from, to.config);
  for (Status status :
       {toOptional("config.topKByHead", from->topKByHead, to.config.topKByHead),
        toOptional("config.topPByHead", from->topPByHead, to.config.topPByHead),
        toOptional("config.blockMask", from->blockMask, to.config.blockMask)})
    if (!status.ok())
      return status;
  if (from->lists) {
    auto lists = toLists("config.lists", from->lists);
    if (!lists.ok())
      return lists.status();
    to.lists = *std::move(lists);
    to.config.lists = &to.lists;
  }
  return {};
}

Status readVersioned(const char *name, const void *from, void *to,
                     StructSizes sizes) {
  auto size = sizeOf(name, from, sizes.first);
  if (!size.ok())
    return size.status();
  const auto *bytes = static_cast<const unsigned char *>(from);
  for (std::size_t i = sizes.known; i < *size; ++i)
    if (bytes[i] != 0)
      return {ErrorCode::Unsupported,
              fmt::format("{}: expected the fields that this version of the "
                          "library knows, got a later one at byte {}",
                          name, i)};
  std::memcpy(to, from, std::min(*size, sizes.known));
  return {};
}

Status writeVersioned(const char *name, const void *from, void *to,
                      std::size_t knownSize) {
  auto size = sizeOf(name, to, knownSize);
  if (!size.ok())
    return size.status();
  // The size stays the caller's.
  std::memcpy(static_cast<char *>(to) + sizeof *size,
              static_cast<const char *>(from) + sizeof *size,
              knownSize - sizeof *size);
  return {};
}

} // namespace spargejit::c_abi

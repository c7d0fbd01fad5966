// SPDX-License-Identifier: Apache-2.0
//
// From the structs of spargejit/c.h to those of the C++ surface.
#pragma once

#include "spargejit/attention.h"
#include "spargejit/c.h"
#include "spargejit/training.h"

#include <cstddef>

namespace spargejit::c_abi {

/// `name` is what messages call the argument. InvalidArgument for null, and
/// for a rank, type or device that there is not.
Result<TensorView> toView(const char *name, const SpargejitTensor *tensor);

/// A dense tensor on the caller's memory, whose name is `owner` and `field`
/// (".indices") behind it. InvalidArgument also where it is not dense; `why`
/// says why it must be.
Result<Tensor> toDense(const char *owner, const char *field,
                       const SpargejitTensor *tensor, const char *why);

/// The view of lse, where it is wanted, in `lse`, which `to` then refers to.
Status toLse(const SpargejitOutputs &outputs, TensorView &lse,
             AttentionOutputs &to);

/// Lists on the caller's memory. InvalidArgument also where they are not dense.
Result<BlockLists> toLists(const char *name, const SpargejitLists *lists);

/// A config with the lists that it points to.
struct CallConfig {
  AttentionConfig config;
  BlockLists lists;
  CallConfig() = default;
  CallConfig(const CallConfig &) = delete;
  CallConfig &operator=(const CallConfig &) = delete;
};

/// Fills `to` with what the caller's struct has. InvalidArgument for null and
/// for what AttentionConfig cannot hold.
Status toConfig(const SpargejitConfig *config, CallConfig &to);

/// Beyond it, what a caller gives for the size of a struct is none.
inline constexpr std::size_t kMaxStructSize = 65536;

/// Sizes of a struct in the first version and now.
struct StructSizes {
  std::size_t first, known;
};
template <typename Struct>
inline constexpr StructSizes kSizesOf{sizeof(Struct), sizeof(Struct)};
template <>
inline constexpr StructSizes kSizesOf<SpargejitConfig>{
    offsetof(SpargejitConfig, keptBytes), sizeof(SpargejitConfig)};

/// Copies a struct that begins with its size as the caller knows it, into one
/// of zeros as this library knows it. InvalidArgument for a size that no
/// version had; Unsupported for bytes beyond those known here that are not 0.
Status readVersioned(const char *name, const void *from, void *to,
                     StructSizes sizes);

/// The other way; the size in front of the caller's struct stays.
Status writeVersioned(const char *name, const void *from, void *to,
                      std::size_t knownSize);

/// readVersioned() of a struct type.
template <typename Struct>
Result<Struct> versioned(const char *name, const Struct *from) {
  Struct known{};
  if (Status status = readVersioned(name, from, &known, kSizesOf<Struct>);
      !status)
    return status;
  return known;
}

} // namespace spargejit::c_abi

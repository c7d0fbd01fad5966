// SPDX-License-Identifier: Apache-2.0
//
// The method and kernel texts of kernels_ir, compiled into the library.
#pragma once

#include <string_view>
#include <vector>

namespace spargejit::kernels_ir {

struct EmbeddedText {
  /// Path below kernels_ir, for example "methods/topk.mlir" or
  /// "kernels/portable/attention_fwd.mlir".
  std::string_view path;
  std::string_view text;
};

/// All texts, sorted by path.
const std::vector<EmbeddedText> &embeddedTexts();

/// The text at `path`, or nullptr.
const EmbeddedText *findEmbeddedText(std::string_view path);

/// Digest of all paths and texts (XXH3, 128 bits, hexadecimal); part of every
/// KernelKey.
std::string_view contentHash();

} // namespace spargejit::kernels_ir

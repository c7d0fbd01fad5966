// SPDX-License-Identifier: Apache-2.0
//
// The table behind EmbeddedTexts.h; its data is written by EmbedTexts.cmake.
#include "kernels_ir/embed/EmbeddedTexts.h"

#define XXH_INLINE_ALL
#include <algorithm>
#include <cstdio>
#include <string>
#include <xxhash.h>

namespace spargejit::kernels_ir {

const std::vector<EmbeddedText> &embeddedTexts() {
  static const std::vector<EmbeddedText> kTexts = {
#include "EmbeddedTextsData.inc"
  };
  return kTexts;
}

const EmbeddedText *findEmbeddedText(std::string_view path) {
  const std::vector<EmbeddedText> &texts = embeddedTexts();
  auto it =
      std::find_if(texts.begin(), texts.end(),
                   [&](const EmbeddedText &text) { return text.path == path; });
  return it == texts.end() ? nullptr : &*it;
}

std::string_view contentHash() {
  static const std::string kHash = [] {
    // Each field is preceded by its length, so that no two tables print alike.
    std::string all;
    for (const EmbeddedText &text : embeddedTexts())
      for (std::string_view field : {text.path, text.text})
        all.append(std::to_string(field.size())).append(":").append(field);
    XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
    char digits[33];
    std::snprintf(digits, sizeof digits, "%016llx%016llx",
                  static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return std::string(digits);
  }();
  return kHash;
}

} // namespace spargejit::kernels_ir

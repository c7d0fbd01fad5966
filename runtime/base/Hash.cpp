// SPDX-License-Identifier: Apache-2.0
//
// XXH3, 128 bits, from xxHash.
#include "runtime/base/Hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace spargejit {

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Digest hashText(std::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

FieldHasher &FieldHasher::field(std::string_view text) {
  bytes_.append(std::to_string(text.size())).append(":").append(text);
  return *this;
}

FieldHasher &FieldHasher::field(std::int64_t number) {
  return field(std::to_string(number));
}

Digest FieldHasher::digest() const { return hashText(bytes_); }

} // namespace spargejit

// SPDX-License-Identifier: Apache-2.0
//
// 128-bit digests (XXH3) of texts and of lists of fields.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spargejit {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// 32 hexadecimal digits.
  std::string hex() const;
  friend auto operator<=>(const Digest &, const Digest &) = default;
};

/// For unordered containers: a digest is a good hash already.
struct DigestHash {
  std::size_t operator()(const Digest &digest) const {
    return static_cast<std::size_t>(digest.low);
  }
};

/// Digest of the bytes alone.
Digest hashText(std::string_view text);

/// Digest of a list of fields. Each is preceded by its length, so that no two
/// different lists are hashed alike.
class FieldHasher {
public:
  FieldHasher &field(std::string_view text);
  FieldHasher &field(std::int64_t number);
  Digest digest() const;

private:
  std::string bytes_;
};

} // namespace spargejit

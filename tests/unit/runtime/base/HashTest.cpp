// SPDX-License-Identifier: Apache-2.0
//
// Digests.
#include "runtime/base/Hash.h"

#include <gtest/gtest.h>

namespace spargejit {
namespace {

TEST(Hash, IsXxh3Of128Bits) {
  // The published value of XXH3_128bits for no bytes and seed 0.
  EXPECT_EQ(hashText("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(hashText("a"), hashText("b"));
}

TEST(Hash, KeepsListsOfFieldsApart) {
  auto digest = [](std::initializer_list<std::string_view> fields) {
    FieldHasher hasher;
    for (std::string_view field : fields)
      hasher.field(field);
    return hasher.digest();
  };
  EXPECT_EQ(digest({"ab", "c"}), digest({"ab", "c"}));
  EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
  EXPECT_NE(digest({"ab", "c"}), digest({"abc"}));
  EXPECT_NE(digest({"a", ""}), digest({"a"}));
  EXPECT_NE(digest({"1:a"}), digest({"a"}));
}

TEST(Hash, ANumberIsItsText) {
  EXPECT_EQ(FieldHasher().field(-12).digest(),
            FieldHasher().field("-12").digest());
}

} // namespace
} // namespace spargejit

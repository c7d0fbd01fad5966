// SPDX-License-Identifier: Apache-2.0
//
// What is in a kernel's key, and what is not.
#include "runtime/cache/KernelKey.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace spargejit::cache {
namespace {

KernelSpec exampleSpec() {
  KernelSpec spec;
  spec.kernel = "attention_fwd";
  spec.parameters = {{"elem", DataType::BFloat16}, {"head_dim", 128}};
  spec.target = {"host", "znver4", "+avx2"};
  return spec;
}

TEST(KernelKey, IsTheSameForTheSameKernel) {
  auto a = KernelKey::of(exampleSpec(), "text", "generator 1");
  auto b = KernelKey::of(exampleSpec(), "text", "generator 1");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hex(), b.hex());
  EXPECT_EQ(a.hex().size(), 32u);
  EXPECT_EQ(KernelKeyHash()(a), KernelKeyHash()(b));
}

TEST(KernelKey, ChangesWithEverythingThatDeterminesTheArtifact) {
  std::set<std::string> keys;
  auto add = [&](const std::function<void(KernelSpec &)> &change,
                 std::string_view text = "text",
                 std::string_view generator = "generator 1") {
    KernelSpec spec = exampleSpec();
    change(spec);
    keys.insert(KernelKey::of(spec, text, generator).hex());
  };
  auto nothing = [](KernelSpec &) {};
  add(nothing);
  add(nothing, "other text");
  add(nothing, "text", "generator 2");
  add([](KernelSpec &spec) { spec.kernel = "pool"; });
  add([](KernelSpec &spec) { spec.parameters["head_dim"] = 64; });
  add([](KernelSpec &spec) { spec.parameters["elem"] = DataType::Float16; });
  add([](KernelSpec &spec) { spec.parameters["causal"] = 1; });
  add([](KernelSpec &spec) { spec.parameters.erase("elem"); });
  add([](KernelSpec &spec) { spec.target.architecture = "sm_90a"; });
  add([](KernelSpec &spec) { spec.target.cpu = "znver3"; });
  add([](KernelSpec &spec) { spec.target.features = "+avx2,+fma"; });
  EXPECT_EQ(keys.size(), 11u);
}

TEST(KernelKey, KeepsFieldsApart) {
  KernelSpec a = exampleSpec(), b = exampleSpec();
  a.target.cpu = "xy";
  a.target.features = "z";
  b.target.cpu = "x";
  b.target.features = "yz";
  EXPECT_FALSE(KernelKey::of(a, "t", "g") == KernelKey::of(b, "t", "g"));
}

TEST(KernelKey, ListsItsPlainFields) {
  auto key = KernelKey::of(exampleSpec(), "text", "generator 1");
  std::vector<std::pair<std::string, std::string>> expected{
      {"key_version", "1"},
      {"kernel", "attention_fwd"},
      {"text", hashText("text").hex()},
      {"generator", "generator 1"},
      {"architecture", "host"},
      {"cpu", "znver4"},
      {"features", "+avx2"},
      {"type elem", "bfloat16"},
      {"size head_dim", "128"}};
  EXPECT_EQ(key.fields(), expected);
}

TEST(KernelKey, DescribesASpec) {
  EXPECT_EQ(describeSpec(exampleSpec()),
            "attention_fwd for host (elem=bfloat16, head_dim=128)");
}

TEST(KernelKey, IsMadeOfItsFields) {
  auto key = KernelKey::of(exampleSpec(), "text", "generator 1");
  EXPECT_EQ(KernelKey::ofFields(key.fields()), key);
  auto more = key.with("assembler", "ptxas 13");
  EXPECT_FALSE(more == key);
  EXPECT_FALSE(more == key.with("assembler", "ptxas 12"));
  EXPECT_EQ(more.fields().size(), key.fields().size() + 1);
  EXPECT_EQ(KernelKey::ofFields(more.fields()), more);
}

} // namespace
} // namespace spargejit::cache

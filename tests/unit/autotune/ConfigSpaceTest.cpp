// SPDX-License-Identifier: Apache-2.0
//
// Tuning spaces, as kernel texts declare them.
#include "autotune/space/ConfigSpace.h"

#include <gtest/gtest.h>

namespace spargejit::autotune {
namespace {

constexpr const char *kText = R"(# A kernel.
tune tile_kv = 64, 128, 192
tune stages = 2, 3
derive boxes = tile_kv / mask_block_kv
require tile_kv % mask_block_kv == 0 : boxes are whole
require shared_bytes <= 100000 : shared memory of a CTA
shared_bytes = stages * tile_kv * head_dim * 2
cost = 1000 / tile_kv + stages
)";

ConfigSpace exampleSpace() {
  auto space = ConfigSpace::parse(kText);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return *space;
}

TEST(ConfigSpace, ListsWhatIsRightCheapestFirst) {
  auto found =
      exampleSpace().enumerate({{"head_dim", 128}, {"mask_block_kv", 64}});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->total, 6);
  ASSERT_EQ(found->candidates.size(), 5u);
  // Of 192 keys two stages fit, and that is the least by cost.
  EXPECT_EQ(found->candidates[0].config,
            (Config{{"tile_kv", 192}, {"stages", 2}, {"boxes", 3}}));
  EXPECT_EQ(found->candidates[0].sharedBytes, 2 * 192 * 128 * 2);
  for (std::size_t i = 1; i < found->candidates.size(); ++i)
    EXPECT_LE(found->candidates[i - 1].cost, found->candidates[i].cost);
  EXPECT_EQ(found->candidates.back().config.at("tile_kv"), 64);
}

TEST(ConfigSpace, CountsWhatIsTurnedDownByReason) {
  auto found =
      exampleSpace().enumerate({{"head_dim", 256}, {"mask_block_kv", 128}});
  ASSERT_TRUE(found.ok());
  std::map<std::string, std::int64_t> rejected(found->rejected.begin(),
                                               found->rejected.end());
  EXPECT_EQ(rejected["boxes are whole"], 4);
  EXPECT_EQ(rejected["shared memory of a CTA"], 2);
  EXPECT_TRUE(found->candidates.empty());
}

TEST(ConfigSpace, SaysWhyAConfigurationIsNotRight) {
  ConfigSpace space = exampleSpace();
  const Values facts = {{"head_dim", 128}, {"mask_block_kv", 64}};
  auto whyNot = [&](const Config &config) {
    auto reason = space.whyNot(facts, config);
    EXPECT_TRUE(reason.ok());
    return reason.ok() && *reason ? **reason : "right";
  };
  EXPECT_EQ(whyNot({{"tile_kv", 128}, {"stages", 3}}), "right");
  EXPECT_EQ(whyNot({{"tile_kv", 192}, {"stages", 3}}),
            "shared memory of a CTA");
  EXPECT_EQ(whyNot({{"tile_kv", 100}, {"stages", 3}}),
            "tile_kv=100 is not among its values");
  EXPECT_EQ(whyNot({{"tile_kv", 128}}), "stages has no value");
}

TEST(ConfigSpace, NamesTheLineThatItCannotRead) {
  auto failure = [](const char *text) {
    auto space = ConfigSpace::parse(text);
    return space.ok() ? "none" : space.status().message();
  };
  EXPECT_EQ(failure("# nothing\n"),
            "expected a tuning space, found no line of tune");
  EXPECT_EQ(failure("tune a = 1\ntune b = 1, x\n"),
            "line 2: tune b: expected a whole number, got \"x\"");
  EXPECT_EQ(failure("require a > 1\n"),
            "line 1: require: expected \" : \" and a reason at the end");
  EXPECT_EQ(failure("\n\nprice = 1\n"),
            "line 3: expected tune, derive, require, shared_bytes or cost, got "
            "\"price\"");
  EXPECT_EQ(failure("tune = 1\n"),
            "line 1: expected name = value, got \"= 1\"");
  EXPECT_EQ(failure("derive a = 1 +\n"),
            "line 1: \"1 +\", column 4: expected a number or a name");
}

TEST(ConfigSpace, RefusesWhatCannotBeEvaluatedOrCounted) {
  EXPECT_FALSE(exampleSpace().enumerate({{"head_dim", 128}}).ok());
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += "tune p" + std::to_string(i) + " = 1, 2, 3, 4, 5, 6\n";
  auto space = ConfigSpace::parse(text);
  ASSERT_TRUE(space.ok());
  auto found = space->enumerate({});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(),
            "expected at most 1048576 configurations");
}

} // namespace
} // namespace spargejit::autotune

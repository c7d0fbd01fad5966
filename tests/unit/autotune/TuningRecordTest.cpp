// SPDX-License-Identifier: Apache-2.0
//
// Records as lines.
#include "autotune/db/TuningRecord.h"

#include "tests/unit/autotune/RecordTrial.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace spargejit::autotune {
namespace {

using Json = nlohmann::ordered_json;

TEST(TuningRecord, ComesBackWhole) {
  auto random = numerics::randomForTest();
  for (int repeat = 0; repeat < 50; ++repeat) {
    TuningRecord record = unit::randomRecord(random);
    record.isDefault = random.chance(0.5);
    record.isWinner = random.chance(0.5);
    record.spillBytes = random.below(100);
    record.failure = random.chance(0.3) ? "a \"reason\"\nof two lines" : "";
    const std::string line = recordLine(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    auto back = parseRecord(line);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_TRUE(isSameTrial(*back, record));
    EXPECT_EQ(back->problem.name, record.problem.name);
    EXPECT_EQ(back->isDefault, record.isDefault);
    EXPECT_EQ(back->isWinner, record.isWinner);
    EXPECT_EQ(back->medianUs, record.medianUs);
    EXPECT_EQ(back->spreadUs, record.spreadUs);
    EXPECT_EQ(back->count, record.count);
    EXPECT_EQ(back->registers, record.registers);
    EXPECT_EQ(back->spillBytes, record.spillBytes);
    EXPECT_EQ(back->maxError, record.maxError);
    EXPECT_EQ(back->date, record.date);
    EXPECT_EQ(back->failure, record.failure);
    EXPECT_EQ(recordLine(*back), line);
  }
}

TEST(TuningRecord, KeepsFieldsThatItDoesNotKnow) {
  auto random = numerics::randomForTest();
  Json line = Json::parse(recordLine(unit::randomRecord(random)));
  line["temperature"] = 61.5;
  line["clocks"] = {{"sm", 1980}};
  auto record = parseRecord(line.dump());
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(Json::parse(recordLine(*record)), line);
}

TEST(TuningRecord, RefusesALineWithoutAField) {
  auto random = numerics::randomForTest();
  const Json line = Json::parse(recordLine(unit::randomRecord(random)));
  for (const auto &field : line.items()) {
    Json changed = line;
    changed.erase(field.key());
    auto record = parseRecord(changed.dump());
    ASSERT_FALSE(record.ok()) << field.key();
    EXPECT_NE(record.status().message().find(field.key()), std::string::npos);
    changed[field.key()] = nullptr;
    EXPECT_FALSE(parseRecord(changed.dump()).ok()) << field.key();
  }
  for (const char *part : {"problem", "environment"})
    for (const auto &field : line[part].items()) {
      Json changed = line;
      changed[part].erase(field.key());
      EXPECT_FALSE(parseRecord(changed.dump()).ok()) << field.key();
    }
  for (const char *text : {"", "[]", "7", "{", "{}"})
    EXPECT_FALSE(parseRecord(text).ok()) << text;
}

TEST(TuningRecord, RefusesNumbersThatCannotBe) {
  auto random = numerics::randomForTest();
  const Json line = Json::parse(recordLine(unit::randomRecord(random)));
  auto refused = [&](const char *part, const char *name, const Json &value) {
    Json changed = line;
    (part ? changed[part] : changed)[name] = value;
    return !parseRecord(changed.dump()).ok();
  };
  EXPECT_TRUE(refused(nullptr, "median_us", -1.0));
  EXPECT_TRUE(refused(nullptr, "count", -1));
  EXPECT_TRUE(refused("problem", "q_len", 0));
  EXPECT_TRUE(refused("problem", "density", 0.0));
  EXPECT_TRUE(refused("problem", "density", 1.5));
  EXPECT_TRUE(refused("problem", "dtype", "int7"));
  EXPECT_TRUE(refused("config", "stages", 2.5));
  EXPECT_FALSE(refused("config", "stages", 9));
}

} // namespace
} // namespace spargejit::autotune

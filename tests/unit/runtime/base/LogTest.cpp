// SPDX-License-Identifier: Apache-2.0
//
// The log callback.
#include "runtime/base/Log.h"

#include <gtest/gtest.h>

#include <vector>

namespace spargejit {
namespace {

class Log : public testing::Test {
protected:
  void TearDown() override { setLogCallback({}); }
};

TEST_F(Log, IsSilentUntilACallbackIsThere) {
  EXPECT_FALSE(logWanted(LogLevel::Warning));
  logLine(LogLevel::Warning, "nobody hears this");
}

TEST_F(Log, HandsLevelAndLineToTheCallback) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  setLogCallback([&](LogLevel level, const std::string &line) {
    lines.emplace_back(level, line);
  });
  logFormatted(LogLevel::Info, "{} of {}", 1, 2);
  setLogCallback({});
  logLine(LogLevel::Info, "after");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first, LogLevel::Info);
  EXPECT_EQ(lines[0].second, "1 of 2");
}

TEST_F(Log, LetsACallbackReplaceItself) {
  int calls = 0;
  setLogCallback([&](LogLevel, const std::string &) {
    ++calls;
    setLogCallback({});
  });
  logLine(LogLevel::Info, "one");
  logLine(LogLevel::Info, "two");
  EXPECT_EQ(calls, 1);
}

} // namespace
} // namespace spargejit

// SPDX-License-Identifier: Apache-2.0
//
// The progress line where standard error is no terminal.
#include "runtime/tools/spargejit/report/Progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

namespace spargejit::report {
namespace {

using namespace std::chrono_literals;

TEST(Progress, SaysNothingAboutShortWork) {
  testing::internal::CaptureStderr();
  {
    Progress progress;
    progress.expect(10);
    progress.step("short", 10);
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, CountsWhatAStepReports) {
  testing::internal::CaptureStderr();
  {
    Progress progress;
    progress.expect(200);
    progress.step("rows", 200);
    progress.advance(50);
    std::this_thread::sleep_for(2300ms);
  }
  // How many lines and seconds depends on how busy the machine is.
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("rows: 25 %, ", 0), 0u) << text;
  EXPECT_PRED_FORMAT2(testing::IsSubstring, " s elapsed, about ", text);
}

TEST(Progress, ExtrapolatesFromTheStepBefore) {
  testing::internal::CaptureStderr();
  {
    Progress progress;
    progress.expect(4);
    progress.step("first", 1);
    std::this_thread::sleep_for(1500ms);
    progress.step("second", 3);
    std::this_thread::sleep_for(700ms);
  }
  std::string text = testing::internal::GetCapturedStderr();
  // A quarter is done, and the second step says nothing itself: what is shown
  // above that follows from the first step's speed.
  int percent = 0;
  ASSERT_EQ(std::sscanf(text.c_str(), "second: %d %%, ", &percent), 1) << text;
  EXPECT_GT(percent, 25) << text;
  EXPECT_LT(percent, 100) << text;
}

} // namespace
} // namespace spargejit::report

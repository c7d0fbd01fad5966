// SPDX-License-Identifier: Apache-2.0
//
// Progress.h: one mutex, one drawing thread.
#include "runtime/tools/spargejit/report/Progress.h"

#include "runtime/tools/spargejit/report/Note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace spargejit::report {

namespace {

using namespace std::chrono_literals;

// Work shorter than this shows nothing, as users of the command expect.
constexpr auto kQuietTime = 2s;
constexpr auto kTerminalPeriod = 200ms;
// A file is no place for a line every moment.
constexpr auto kLinePeriod = 10s;

double secondsSince(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from)
      .count();
}

std::string duration(double seconds) {
  if (seconds < 60)
    return fmt::format("{:.0f} s", seconds);
  auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

} // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1), thread_([this] { drawLoop(); }) {}

Progress::~Progress() {
  finish();
  thread_.join();
}

void Progress::expect(double units) {
  std::lock_guard lock(mutex_);
  endStep();
  total_ = units;
  done_ = 0;
}

void Progress::endStep() {
  done_ += stepUnits_;
  measuredUnits_ += stepUnits_;
  if (stepUnits_ > 0)
    measuredSeconds_ += secondsSince(stepStart_);
  stepUnits_ = 0;
  label_.clear();
}

void Progress::step(const std::string &label, double units) {
  std::lock_guard lock(mutex_);
  endStep();
  label_ = label;
  stepUnits_ = units;
  stepStart_ = Clock::now();
  advanced_ = 0;
}

void Progress::finish() {
  std::lock_guard lock(mutex_);
  if (finished_)
    return;
  finished_ = true;
  if (drawn_ && terminal_)
    std::fputs("\r\033[K", stderr);
  wake_.notify_all();
}

void Progress::drawLoop() {
  std::unique_lock lock(mutex_);
  auto next = start_ + kQuietTime;
  while (!wake_.wait_until(lock, next, [this] { return finished_; })) {
    draw();
    next = Clock::now() + (terminal_ ? Clock::duration(kTerminalPeriod)
                                     : Clock::duration(kLinePeriod));
  }
}

std::string Progress::line() const {
  double elapsed = secondsSince(start_);
  std::string text = label_.empty() ? "working" : label_;
  double inStep = static_cast<double>(advanced_.load());
  double speed = measuredSeconds_ > 0 ? measuredUnits_ / measuredSeconds_ : 0;
  double stepSeconds = secondsSince(stepStart_);
  if (inStep > 0 && stepSeconds > 0)
    speed = inStep / stepSeconds;
  else
    inStep = speed * stepSeconds;
  // A step that takes longer than foreseen waits just before its end.
  inStep = std::min(inStep, 0.99 * stepUnits_);
  if (total_ > 0 && speed > 0)
    return fmt::format(
        "{}: {:.0f} %, {} elapsed, about {} left", text,
        100 * std::min(1.0, (done_ + inStep) / total_), duration(elapsed),
        duration(std::max(0.0, total_ - done_ - inStep) / speed));
  return fmt::format("{}: {} elapsed", text, duration(elapsed));
}

void Progress::draw() {
  std::string text = line();
  drawn_ = true;
  if (terminal_)
    std::fputs(("\r\033[K" + text).c_str(), stderr);
  else
    note(text);
}

} // namespace spargejit::report

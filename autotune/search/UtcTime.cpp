// SPDX-License-Identifier: Apache-2.0
//
// ISO 8601.
#include "autotune/search/UtcTime.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace spargejit::autotune {

std::string utcNow() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto fraction =
      duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec, fraction);
}

} // namespace spargejit::autotune

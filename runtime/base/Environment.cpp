// SPDX-License-Identifier: Apache-2.0
//
// The only file that reads environment variables.
#include "runtime/base/Environment.h"

#include <fmt/format.h>

#include <cstdlib>

namespace spargejit {

namespace {

Status unexpected(const char *variable, const char *expected,
                  const std::string &found) {
  return Status(
      ErrorCode::InvalidArgument,
      fmt::format("{}: expected {}, got \"{}\"", variable, expected, found));
}

} // namespace

Result<Environment>
readEnvironment(const std::function<const char *(const char *)> &find) {
  auto text = [&](const char *variable) {
    const char *value = find(variable);
    return std::string(value ? value : "");
  };
  Environment settings;
  settings.dumpFolder = text("SPARGEJIT_DUMP");
  settings.ptxas = text("SPARGEJIT_PTXAS");
  settings.nvrtc = text("SPARGEJIT_NVRTC");
  settings.searchPath = text("PATH");
  if (std::string driver = text("SPARGEJIT_LIBCUDA"); !driver.empty())
    settings.cudaDriver = driver;

  std::string log = text("SPARGEJIT_LOG");
  if (log == "off")
    settings.leastLogLevel = std::nullopt;
  else if (log == "info")
    settings.leastLogLevel = LogLevel::Info;
  else if (log == "warning")
    settings.leastLogLevel = LogLevel::Warning;
  else if (!log.empty() && log != "debug")
    return unexpected("SPARGEJIT_LOG", "debug, info, warning or off", log);

  std::string jit = text("SPARGEJIT_JIT");
  if (!jit.empty() && jit != "on" && jit != "off")
    return unexpected("SPARGEJIT_JIT", "on or off", jit);
  settings.jit = jit != "off";
  return settings;
}

const Result<Environment> &environment() {
  static const Result<Environment> kSettings = readEnvironment(
      [](const char *variable) { return std::getenv(variable); });
  return kSettings;
}

} // namespace spargejit

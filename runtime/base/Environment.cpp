// SPDX-License-Identifier: Apache-2.0
//
// The only file that reads environment variables.
#include "runtime/base/Environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <sstream>

namespace spargejit {

namespace {

Status unexpected(const char *variable, const std::string &expected,
                  const std::string &found) {
  return Status(
      ErrorCode::InvalidArgument,
      fmt::format("{}: expected {}, got \"{}\"", variable, expected, found));
}

using Find = std::function<const char *(const char *)>;

std::string textOf(const Find &find, const char *variable) {
  const char *value = find(variable);
  return value ? value : "";
}

/// The XDG Base Directory Specification: a relative XDG_CACHE_HOME is ignored.
std::string userCacheFolder(const Find &find) {
  std::string base = textOf(find, "XDG_CACHE_HOME");
  if (base.starts_with('/'))
    return base + "/spargejit";
  std::string home = textOf(find, "HOME");
  return home.starts_with('/') ? home + "/.cache/spargejit" : std::string();
}

/// Paths with ':' between.
std::vector<std::string> splitPaths(const std::string &text) {
  std::vector<std::string> paths;
  std::istringstream stream(text);
  for (std::string path; std::getline(stream, path, ':');)
    if (!path.empty())
      paths.push_back(path);
  return paths;
}

Status readCacheSettings(const Find &find, Environment &settings) {
  std::string folder = textOf(find, "SPARGEJIT_CACHE_DIR");
  if (!folder.empty() && !folder.starts_with('/'))
    return unexpected("SPARGEJIT_CACHE_DIR", "the absolute path of a folder",
                      folder);
  std::string cache = textOf(find, "SPARGEJIT_CACHE");
  if (!cache.empty() && cache != "on" && cache != "off")
    return unexpected("SPARGEJIT_CACHE", "on or off", cache);
  if (cache != "off")
    settings.cacheFolder = folder.empty() ? userCacheFolder(find) : folder;

  std::string megabytes = textOf(find, "SPARGEJIT_CACHE_MAX_MB");
  if (!megabytes.empty()) {
    constexpr std::int64_t kMost = 1 << 30; // a petabyte
    const char *end = megabytes.data() + megabytes.size();
    auto [last, failure] =
        std::from_chars(megabytes.data(), end, settings.cacheMaxMegabytes);
    if (failure != std::errc() || last != end ||
        settings.cacheMaxMegabytes < 1 || settings.cacheMaxMegabytes > kMost)
      return unexpected("SPARGEJIT_CACHE_MAX_MB",
                        fmt::format("a whole number from 1 to {}", kMost),
                        megabytes);
  }

  settings.packFolders = splitPaths(textOf(find, "SPARGEJIT_PACK"));
  const std::string records = textOf(find, "SPARGEJIT_RECORDS");
  settings.usesRecords = records != "off";
  if (settings.usesRecords)
    settings.recordFiles = splitPaths(records);
  return Status();
}

} // namespace

Result<Environment>
readEnvironment(const std::function<const char *(const char *)> &find) {
  auto text = [&](const char *variable) { return textOf(find, variable); };
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

  std::string racecheck = text("SPARGEJIT_RACECHECK");
  if (!racecheck.empty() && racecheck != "on" && racecheck != "off")
    return unexpected("SPARGEJIT_RACECHECK", "on or off", racecheck);
  settings.racecheck = racecheck == "on";
  if (Status status = readCacheSettings(find, settings); !status)
    return status;
  return settings;
}

const Result<Environment> &environment() {
  static const Result<Environment> kSettings = readEnvironment(
      [](const char *variable) { return std::getenv(variable); });
  return kSettings;
}

} // namespace spargejit

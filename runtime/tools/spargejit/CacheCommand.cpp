// SPDX-License-Identifier: Apache-2.0
//
// `spargejit cache`: what is in the disk cache, whether it is in order, and how
// to be rid of it.
#include "runtime/base/Environment.h"
#include "runtime/cache/CacheUpkeep.h"
#include "runtime/cache/JsonFields.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/TextTable.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDetails =
    R"(Compiled kernels are kept in SPARGEJIT_CACHE_DIR, by default
~/.cache/spargejit, for the next process. When they take more than
SPARGEJIT_CACHE_MAX_MB (1024), those used longest ago go. SPARGEJIT_CACHE=off
keeps none.

Examples:
  spargejit cache stat
  spargejit cache list --json
  spargejit cache verify
  spargejit cache clear)";

struct CacheOptions {
  CLI::App *stat = nullptr;
  CLI::App *list = nullptr;
  CLI::App *verify = nullptr;
  bool json = false;
};

/// An entry and what its manifest says.
struct Described {
  cache::EntryInfo info;
  cache::ReadEntry read;
};

std::vector<Described> describeAll(const std::string &folder, bool withCode) {
  std::vector<Described> entries;
  for (const cache::EntryInfo &info : cache::listEntries(folder))
    entries.push_back(
        {info, cache::readEntry(cache::versionFolder(folder) + "/" + info.name,
                                withCode)});
  return entries;
}

/// "attention_fwd for sm_90a (causal=0, …)", "plan of dense", …
std::string nameOf(const Described &entry) {
  if (entry.read.state != cache::ReadEntry::State::Found)
    return entry.read.reason.empty() ? "gone" : entry.read.reason;
  cache::JsonFields content(entry.read.entry.content);
  std::string name;
  if (content.has("kernel")) {
    content.text("kernel", name);
    std::string architecture;
    cache::JsonFields target = content.object("target");
    target.text("architecture", architecture);
    std::string parameters;
    const Json values = content.object("parameters").json();
    for (const auto &[key, value] : values.items())
      parameters +=
          fmt::format("{}{}={}", parameters.empty() ? "" : ", ", key,
                      value.is_string() ? value.get<std::string>() : "?");
    return fmt::format("{} for {} ({})", name, architecture, parameters);
  }
  if (content.has("method")) {
    content.text("method", name);
    return "plan of " + name;
  }
  for (const auto &[key, value] : entry.read.key.fields())
    if (key == "parameters_of")
      return "parameters of " + value;
  return entry.read.entry.kind;
}

std::string timeText(double seconds) {
  return seconds < 0
             ? "never"
             : fmt::format("{:%F %T}",
                           fmt::localtime(static_cast<std::time_t>(seconds)));
}

int printStat(const std::string &folder, std::int64_t maxMegabytes,
              bool asJson) {
  std::int64_t bytes = 0;
  const auto entries = cache::listEntries(folder);
  for (const cache::EntryInfo &entry : entries)
    bytes += entry.bytes;
  if (asJson) {
    printJson({{"folder", folder.empty() ? Json() : Json(folder)},
               {"entries", entries.size()},
               {"bytes", bytes},
               {"max_bytes", maxMegabytes << 20}});
    return 0;
  }
  report::TextTable table;
  table.text("cache", folder.empty() ? "off" : folder);
  table.value("  entries", fmt::format("{}", entries.size()));
  table.value("  size", fmt::format("{:.1f}", double(bytes) / (1 << 20)), "MB");
  table.value("  at most", fmt::format("{}", maxMegabytes), "MB");
  fmt::print("{}", table.str());
  return 0;
}

int printList(const std::string &folder, bool asJson) {
  Json list = Json::array();
  for (const Described &entry : describeAll(folder, /*withCode=*/false)) {
    if (asJson)
      list.push_back({{"key", entry.info.name},
                      {"kind", entry.read.entry.kind},
                      {"name", nameOf(entry)},
                      {"bytes", entry.info.bytes},
                      {"last_used", entry.info.lastUsed}});
    else
      fmt::print("{}  {:>8}  {}  {}\n", entry.info.name, entry.info.bytes,
                 timeText(entry.info.lastUsed), nameOf(entry));
  }
  if (asJson)
    printJson({{"entries", list}});
  return 0;
}

/// 1 when an entry is not in order. Removes none: the next call that wants it
/// does.
int printVerify(const std::string &folder, bool asJson) {
  Json faults = Json::array();
  std::size_t good = 0;
  for (const Described &entry : describeAll(folder, /*withCode=*/true)) {
    using State = cache::ReadEntry::State;
    bool isWhole = entry.read.state == State::Found &&
                   entry.read.key.hex() == entry.info.name;
    if (isWhole || entry.read.state == State::Absent) {
      good += isWhole;
      continue;
    }
    std::string reason = entry.read.state == State::Found
                             ? "it belongs to another key"
                             : entry.read.reason;
    faults.push_back({{"key", entry.info.name}, {"reason", reason}});
    if (!asJson)
      fmt::print("{}  {}\n", entry.info.name, reason);
  }
  if (asJson)
    printJson({{"verified", good}, {"faults", faults}});
  else
    fmt::print("{} entries in order, {} not\n", good, faults.size());
  return faults.empty() ? 0 : 1;
}

int clear(const std::string &folder, bool asJson) {
  int removed = cache::clearEntries(folder);
  if (asJson)
    printJson({{"removed", removed}});
  else
    report::note(fmt::format("removed {} entries", removed));
  return 0;
}

} // namespace

CommandBody addCacheCommand(CLI::App &app) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App *command =
      app.add_subcommand("cache", "The kernels that are kept on disk");
  command->footer(kDetails);
  command->require_subcommand(1);
  options->stat = command->add_subcommand("stat", "Print folder and size");
  options->list = command->add_subcommand(
      "list", "Print the entries, the one used longest ago first");
  options->verify =
      command->add_subcommand("verify", "Check every entry's bytes");
  CLI::App *clearing = command->add_subcommand("clear", "Remove all entries");
  for (CLI::App *each :
       {options->stat, options->list, options->verify, clearing})
    each->add_flag("--json", options->json, "Print JSON");
  return [options]() -> Result<int> {
    if (!environment())
      return environment().status();
    const std::string &folder = environment()->cacheFolder;
    if (options->stat->parsed())
      return printStat(folder, environment()->cacheMaxMegabytes, options->json);
    if (folder.empty()) {
      report::note("the disk cache is off (SPARGEJIT_CACHE, HOME)");
      return 0;
    }
    if (options->list->parsed())
      return printList(folder, options->json);
    if (options->verify->parsed())
      return printVerify(folder, options->json);
    return clear(folder, options->json);
  };
}

} // namespace spargejit::tool

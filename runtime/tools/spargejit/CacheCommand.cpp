// SPDX-License-Identifier: Apache-2.0
//
// `spargejit cache`: the state of the kernel cache, which lives in the memory
// of each process.
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/TextTable.h"
#include "spargejit/library.h"

#include <fmt/format.h>

#include <memory>

namespace spargejit::tool {

namespace {

constexpr const char *kDetails =
    R"(Compiled kernels are kept in the memory of the process that compiled them and end
with it; nothing is stored on disk.

Examples:
  spargejit cache stat
  spargejit cache stat --json)";

struct CacheOptions {
  CLI::App *stat = nullptr;
  bool json = false;
};

void printStat(bool asJson) {
  Counters counts = counters();
  if (asJson) {
    printJson({{"kind", "memory"},
               {"folder", nullptr},
               {"kernels_compiled", counts.kernelsCompiled},
               {"kernel_cache_hits", counts.kernelCacheHits},
               {"plans_made", counts.plansMade},
               {"bytes_allocated", counts.bytesAllocated},
               {"compile_milliseconds", counts.compileMilliseconds}});
    return;
  }
  report::TextTable table;
  table.text("cache", "in memory, per process; nothing is stored on disk");
  table.text("counters", "of this process, which has run no kernel");
  auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  table.value("  kernels compiled", number(counts.kernelsCompiled));
  table.value("  cache hits", number(counts.kernelCacheHits));
  table.value("  plans made", number(counts.plansMade));
  table.value("  workspace", number(counts.bytesAllocated), "bytes");
  table.value("  compile time",
              report::formatMilliseconds(counts.compileMilliseconds), "ms");
  fmt::print("{}", table.str());
}

} // namespace

CommandBody addCacheCommand(CLI::App &app) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App *command = app.add_subcommand("cache", "State of the kernel cache");
  command->footer(kDetails);
  command->require_subcommand(1);
  options->stat = command->add_subcommand("stat", "Print counters");
  options->stat->add_flag("--json", options->json,
                          "Print JSON instead of a table");
  command->add_subcommand("clear", "Remove cached kernels");
  return [options]() -> Result<int> {
    if (options->stat->parsed())
      printStat(options->json);
    else
      report::note("nothing to clear: kernels are cached in the memory of each "
                   "process");
    return 0;
  };
}

} // namespace spargejit::tool

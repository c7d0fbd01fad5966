// SPDX-License-Identifier: Apache-2.0
//
// spargejit-bench: measures the library on the CPU and prints what it found as
// JSON. bench/run_bench.py calls it and makes tables and plots.
#include "bench/cpu/Commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace spargejit::bench {

namespace {

int mainBody(int argc, char **argv) {
  CLI::App app("Measures block-sparse attention on the CPU; JSON to standard "
               "output, progress to standard error.",
               "spargejit-bench");
  app.require_subcommand(1);
  const std::vector<std::pair<std::string, Command>> commands = {
      {"machine", addMachineCommand(app)},   {"peak", addPeakCommand(app)},
      {"dense", addDenseCommand(app)},       {"sparse", addSparseCommand(app)},
      {"backward", addBackwardCommand(app)}, {"growth", addGrowthCommand(app)},
      {"compile", addCompileCommand(app)},   {"calls", addCallsCommand(app)},
      {"lengths", addLengthsCommand(app)},   {"memory", addMemoryCommand(app)},
      {"quality", addQualityCommand(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const auto &[name, command] : commands)
    if (app.got_subcommand(name))
      fmt::print("{}\n", command().dump(2));
  return std::fflush(stdout) == 0 ? 0 : 1;
}

} // namespace

} // namespace spargejit::bench

int main(int argc, char **argv) {
  try {
    return spargejit::bench::mainBody(argc, argv);
  } catch (const std::exception &error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// `memory`: one long problem, its time and the most memory that the process
// ever had, its own inputs and output included.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <memory>
#include <sys/resource.h>

namespace spargejit::bench {

namespace {

struct MemoryOptions : MeasuringOptions {
  std::int64_t length = 96000;
  double density = 0.05;
  std::string method = "topk";
};

/// Largest resident set so far. At the start of a process it can be that of
/// its parent, never less than its own.
double peakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024; // Linux counts KiB
}

Json runMemory(const MemoryOptions &options) {
  const DataType dtype = dataTypeFromName(options.dtype);
  Problem problem(dtype, 1, options.length, options.headDim, options.threads,
                  options.seed);
  const double before = peakMebibytes();
  AttentionConfig config = problem.config(options.method);
  config.topK =
      topKForDensity(options.density, options.length, config.maskBlockKv);
  BlockLists lists;
  AttentionOutputs outputs;
  outputs.lists = &lists;
  note(fmt::format("{}, length {}", options.method, options.length));
  Series series;
  timeOnce([&] { problem.attend(config, outputs); }, series);
  const double density = lists.density();
  return {{"method", options.method},
          {"length", options.length},
          {"head_dim", options.headDim},
          {"density", density},
          {"first_call", series.json()},
          {"gflops", 1e-6 * problem.denseFlops() * density / series.medianMs()},
          {"inputs_and_output_mib",
           4.0 * static_cast<double>(dataTypeSize(dtype)) *
               static_cast<double>(options.length * options.headDim) /
               (1024 * 1024)},
          {"peak_before_mib", before},
          {"peak_mib", peakMebibytes()}};
}

} // namespace

Command addMemoryCommand(CLI::App &app) {
  CLI::App *command =
      app.add_subcommand("memory", "Time and memory of one long problem");
  auto options = std::make_shared<MemoryOptions>();
  command->add_option("--length", options->length, "Sequence length")
      ->check(kAnyLength)
      ->capture_default_str();
  command->add_option("--density", options->density)
      ->check(kAnyDensity)
      ->capture_default_str();
  command->add_option("--method", options->method)->capture_default_str();
  options->addInputsTo(*command);
  return [options] { return runMemory(*options); };
}

} // namespace spargejit::bench

// SPDX-License-Identifier: Apache-2.0
//
// `dense`: GFLOP/s of dense attention and its share of the peak.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"
#include "bench/cpu/peak/FmaPeak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace spargejit::bench {

namespace {

struct DenseOptions : MeasuringOptions {
  std::vector<std::int64_t> lengths{1024, 2048, 4096, 8192};
};

/// Rows of queries that one program of the grid works on, with the default
/// mask block.
constexpr double kRowsOfTile = 128;
/// Enough programs for each core that none waits long for the last.
constexpr double kTilesForCore = 8;

std::int64_t headsFor(std::int64_t length, int cores) {
  double tiles = std::ceil(static_cast<double>(length) / kRowsOfTile);
  return static_cast<std::int64_t>(std::max(
      1.0, std::ceil(kTilesForCore * static_cast<double>(cores) / tiles)));
}

Json measureLength(const DenseOptions &options, std::int64_t length,
                   const FmaPeak &peak, int cores, std::vector<double> &peaks) {
  const std::int64_t heads = headsFor(length, cores);
  Problem problem(dataTypeFromName(options.dtype), heads, length,
                  options.headDim, options.threads, options.seed);
  AttentionConfig dense = problem.config("dense");
  std::vector<Series> series = measureInTurns(
      {{"peak", [&] { peaks.push_back(peak.measure(cores, 20)); }},
       {fmt::format("dense {} {}x{}x{}", options.dtype, heads, length,
                    options.headDim),
        [&] { problem.attend(dense); }}},
      {options.rounds, 100, 10});
  Json row{{"length", length}, {"heads", heads}};
  row.update(series[1].json());
  row["gflops"] = 1e-6 * problem.denseFlops() / series[1].medianMs();
  row["best_gflops"] =
      1e-6 * problem.denseFlops() / quantile(series[1].wallMs, 0);
  row["gflops_of_busy_core"] = 1e-6 * problem.denseFlops() *
                               static_cast<double>(series[1].wallMs.size()) /
                               series[1].cpuMs;
  return row;
}

Json runDense(const DenseOptions &options) {
  const int cores = options.threads > 0 ? options.threads : coreCount();
  FmaPeak peak;
  std::vector<double> peaks;
  Json rows = Json::array();
  for (std::int64_t length : options.lengths)
    rows.push_back(measureLength(options, length, peak, cores, peaks));
  // The best of all samples: the yardstick is what the machine can do.
  const double best = quantile(peaks, 1);
  for (Json &row : rows) {
    row["share"] = row["gflops"].get<double>() / best;
    row["best_share"] = row["best_gflops"].get<double>() / best;
    row["busy_share"] = row["gflops_of_busy_core"].get<double>() * cores / best;
  }
  return {{"dtype", options.dtype},
          {"head_dim", options.headDim},
          {"threads", cores},
          {"peak_loop", peak.loop().name},
          {"peak_gflops", best},
          {"median_peak_gflops", quantile(peaks, 0.5)},
          {"rows", rows}};
}

} // namespace

Command addDenseCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "dense", "Dense attention over lengths, in turns with the peak");
  auto options = std::make_shared<DenseOptions>();
  addList(*command, "--lengths", options->lengths, "Sequence lengths",
          kAnyLength);
  options->addTo(*command);
  return [options] { return runDense(*options); };
}

} // namespace spargejit::bench

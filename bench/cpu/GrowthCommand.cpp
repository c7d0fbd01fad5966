// SPDX-License-Identifier: Apache-2.0
//
// `growth`: attention's time should be a line over the visited pairs of blocks,
// however their number comes about.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <deque>
#include <memory>

namespace spargejit::bench {

namespace {

struct GrowthOptions : MeasuringOptions {
  std::int64_t fixedLength = 8192;
  std::vector<double> densities{0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1};
  std::vector<std::int64_t> lengths{4096, 8192, 12288, 16384, 24576, 32768};
  double fixedDensity = 0.05;
  std::vector<std::int64_t> fewBlocksLengths{4096,  8192,  16384,
                                             32768, 49152, 65536};
  std::int64_t fixedBlocks = 16;
};

/// One point of a series. `problem` may be shared by several.
struct Point {
  std::shared_ptr<const Problem> problem;
  std::int64_t length = 0;
  AttentionConfig select;
  BlockLists lists;
  AttentionConfig attend;
};

void addPoint(std::deque<Point> &points, std::shared_ptr<const Problem> problem,
              std::int64_t length, double density) {
  Point &point = points.emplace_back();
  point.length = length;
  point.select = problem->config("topk");
  point.select.topK = topKForDensity(density, length, point.select.maskBlockKv);
  point.lists = problem->select(point.select);
  point.attend = withLists(point.select, point.lists);
  point.problem = std::move(problem);
}

Json measurePoints(const std::deque<Point> &points, int rounds) {
  std::vector<Task> tasks;
  for (const Point &point : points) {
    std::string name = fmt::format("length {} at density {:.3f}", point.length,
                                   point.lists.density());
    tasks.push_back(
        {name + ", selection", [&] { point.problem->select(point.select); }});
    tasks.push_back(
        {name + ", attention", [&] { point.problem->attend(point.attend); }});
  }
  std::vector<Series> series = measureInTurns(tasks, {rounds, 20, 10});
  Json rows = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i)
    rows.push_back({{"length", points[i].length},
                    {"density", points[i].lists.density()},
                    {"visited_pairs", visitedPairs(points[i].lists)},
                    {"select", series[2 * i].json()},
                    {"attention", series[2 * i + 1].json()}});
  return rows;
}

Json runGrowth(const GrowthOptions &options) {
  auto make = [&](std::int64_t length) {
    return std::make_shared<const Problem>(dataTypeFromName(options.dtype), 1,
                                           length, options.headDim,
                                           options.threads, options.seed);
  };
  std::deque<Point> overDensity;
  auto shared = make(options.fixedLength);
  for (double density : options.densities)
    addPoint(overDensity, shared, options.fixedLength, density);
  Json densityRows = measurePoints(overDensity, options.rounds);

  std::deque<Point> overLength;
  for (std::int64_t length : options.lengths)
    addPoint(overLength, make(length), length, options.fixedDensity);
  Json lengthRows = measurePoints(overLength, options.rounds);
  overLength.clear(); // gives its memory back

  std::deque<Point> fewBlocks;
  for (std::int64_t length : options.fewBlocksLengths) {
    AttentionConfig defaults;
    auto blocks = static_cast<double>((length + defaults.maskBlockKv - 1) /
                                      defaults.maskBlockKv);
    addPoint(fewBlocks, make(length), length,
             static_cast<double>(options.fixedBlocks) / blocks);
  }
  Json fewBlocksRows = measurePoints(fewBlocks, options.rounds);

  return {{"dtype", options.dtype},
          {"head_dim", options.headDim},
          {"mask_block_q", AttentionConfig().maskBlockQ},
          {"mask_block_kv", AttentionConfig().maskBlockKv},
          {"over_density",
           {{"length", options.fixedLength}, {"rows", densityRows}}},
          {"over_length",
           {{"density", options.fixedDensity}, {"rows", lengthRows}}},
          {"over_length_few_blocks",
           {{"blocks_in_row", options.fixedBlocks}, {"rows", fewBlocksRows}}}};
}

} // namespace

Command addGrowthCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "growth", "Time over visited blocks, by density and by length");
  auto options = std::make_shared<GrowthOptions>();
  command->add_option("--fixed-length", options->fixedLength)
      ->check(kAnyLength)
      ->capture_default_str();
  addList(*command, "--densities", options->densities, "At --fixed-length",
          kAnyDensity);
  addList(*command, "--lengths", options->lengths, "At --fixed-density",
          kAnyLength);
  command->add_option("--fixed-density", options->fixedDensity)
      ->check(kAnyDensity)
      ->capture_default_str();
  addList(*command, "--few-blocks-lengths", options->fewBlocksLengths,
          "With --fixed-blocks key blocks for each block of rows", kAnyLength);
  command->add_option("--fixed-blocks", options->fixedBlocks)
      ->check(kAnyLength)
      ->capture_default_str();
  options->addTo(*command);
  return [options] { return runGrowth(*options); };
}

} // namespace spargejit::bench

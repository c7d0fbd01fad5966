// SPDX-License-Identifier: Apache-2.0
//
// `sparse`: selection and attention over densities and mask blocks, against
// dense attention of the same run.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <deque>
#include <memory>

namespace spargejit::bench {

namespace {

struct SparseOptions : MeasuringOptions {
  std::int64_t length = 8192;
  std::vector<double> densities{0.02, 0.05, 0.1, 0.2, 0.5, 1};
  std::vector<std::int64_t> maskBlocks{16, 32, 64, 128};
  bool hybrid = false;
};

/// One selection: its method, its lists, the times of its parts.
struct Case {
  AttentionConfig select;
  BlockLists lists;
  AttentionConfig attend;
};

std::deque<Case> makeCases(const SparseOptions &options,
                           const Problem &problem) {
  std::deque<Case> cases; // attend.lists points into it
  auto add = [&](const AttentionConfig &config) {
    Case &added = cases.emplace_back();
    added.select = config;
    added.lists = problem.select(config);
    added.attend = withLists(config, added.lists);
  };
  for (std::int64_t maskBlock : options.maskBlocks) {
    AttentionConfig config = problem.config("topk");
    config.maskBlockKv = maskBlock;
    for (double density : options.densities) {
      config.topK = topKForDensity(density, options.length, maskBlock);
      add(config);
    }
    if (options.hybrid) {
      const std::int64_t kept = config.maskBlockKv;
      config = problem.config("spargeattention2");
      config.maskBlockKv = kept;
      add(config);
    }
  }
  return cases;
}

Json runSparse(const SparseOptions &options) {
  Problem problem(dataTypeFromName(options.dtype), 1, options.length,
                  options.headDim, options.threads, options.seed);
  AttentionConfig dense = problem.config("dense");
  std::deque<Case> cases = makeCases(options, problem);
  std::vector<Task> tasks{{"dense", [&] { problem.attend(dense); }}};
  for (const Case &one : cases) {
    std::string name =
        fmt::format("{} 128x{} at density {:.3f}", one.select.method,
                    one.select.maskBlockKv, one.lists.density());
    tasks.push_back(
        {name + ", selection", [&] { problem.select(one.select); }});
    tasks.push_back(
        {name + ", attention", [&] { problem.attend(one.attend); }});
  }
  std::vector<Series> series = measureInTurns(tasks, {options.rounds, 20, 10});

  const double denseMs = series[0].medianMs();
  Json rows = Json::array();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case &one = cases[i];
    const Series &select = series[2 * i + 1];
    const Series &attention = series[2 * i + 2];
    const double bothMs = select.medianMs() + attention.medianMs();
    const double bestMs =
        quantile(select.wallMs, 0) + quantile(attention.wallMs, 0);
    const double density = one.lists.density();
    rows.push_back({{"method", one.select.method},
                    {"mask_block_q", one.select.maskBlockQ},
                    {"mask_block_kv", one.select.maskBlockKv},
                    {"density", density},
                    {"visited_pairs", visitedPairs(one.lists)},
                    {"select", select.json()},
                    {"attention", attention.json()},
                    {"speed_up", denseMs / bothMs},
                    {"best_speed_up", quantile(series[0].wallMs, 0) / bestMs},
                    {"attention_gflops", 1e-6 * problem.denseFlops() * density /
                                             attention.medianMs()}});
  }
  return {{"dtype", options.dtype},
          {"head_dim", options.headDim},
          {"length", options.length},
          {"heads", 1},
          {"dense", series[0].json()},
          {"dense_gflops", 1e-6 * problem.denseFlops() / denseMs},
          {"rows", rows}};
}

} // namespace

Command addSparseCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "sparse", "Selection and attention over densities and mask blocks");
  auto options = std::make_shared<SparseOptions>();
  command->add_option("--length", options->length, "Sequence length")
      ->check(kAnyLength)
      ->capture_default_str();
  addList(*command, "--densities", options->densities,
          "Shares of key blocks kept", kAnyDensity);
  addList(*command, "--mask-blocks", options->maskBlocks,
          "Keys of a mask block; it has 128 rows",
          CLI::IsMember({16, 32, 64, 128}));
  command->add_flag("--hybrid", options->hybrid,
                    "Also SpargeAttention2 with its default top-k and top-p");
  options->addTo(*command);
  return [options] { return runSparse(*options); };
}

} // namespace spargejit::bench

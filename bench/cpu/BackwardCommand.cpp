// SPDX-License-Identifier: Apache-2.0
//
// `backward`: the backward pass over densities and mask blocks, in turns with
// that of dense attention.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <deque>
#include <memory>

namespace spargejit::bench {

namespace {

struct BackwardOptions : MeasuringOptions {
  std::int64_t length = 8192;
  std::vector<double> densities{0.02, 0.05, 0.1, 0.2};
  std::vector<std::int64_t> maskBlocks{16, 32, 64, 128};
};

/// One forward pass and what it left.
struct Case {
  AttentionConfig config;
  AttentionForward forward;
};

/// Five products of 2·length²·headDim for each head, as published rates count
/// them (scores, d_o vᵀ, and one for each gradient); two kernels repeat the
/// first two.
double backwardFlops(const Problem &problem) {
  return 2.5 * problem.denseFlops();
}

Json runBackward(const BackwardOptions &options) {
  Problem problem(dataTypeFromName(options.dtype), 1, options.length,
                  options.headDim, options.threads, options.seed);
  std::deque<Case> cases;
  auto add = [&](const AttentionConfig &config) {
    cases.push_back({config, problem.forward(config)});
  };
  add(problem.config("dense"));
  for (std::int64_t maskBlock : options.maskBlocks)
    for (double density : options.densities) {
      AttentionConfig config = problem.config("topk");
      config.maskBlockKv = maskBlock;
      config.topK = topKForDensity(density, options.length, maskBlock);
      add(config);
    }
  std::vector<Task> tasks;
  for (const Case &one : cases)
    tasks.push_back({fmt::format("backward {} 128x{}", one.config.method,
                                 one.config.maskBlockKv),
                     [&] { problem.backward(one.config, one.forward); }});
  std::vector<Series> series = measureInTurns(tasks, {options.rounds, 20, 10});

  const double denseMs = series[0].medianMs();
  Json rows = Json::array();
  for (std::size_t i = 1; i < cases.size(); ++i) {
    const Case &one = cases[i];
    const double density = one.forward.lists.density();
    rows.push_back({{"mask_block_q", one.config.maskBlockQ},
                    {"mask_block_kv", one.config.maskBlockKv},
                    {"density", density},
                    {"backward", series[i].json()},
                    {"speed_up", denseMs / series[i].medianMs()},
                    {"best_speed_up", quantile(series[0].wallMs, 0) /
                                          quantile(series[i].wallMs, 0)},
                    {"gflops", 1e-6 * backwardFlops(problem) * density /
                                   series[i].medianMs()}});
  }
  return {{"dtype", options.dtype},
          {"head_dim", options.headDim},
          {"length", options.length},
          {"heads", 1},
          {"dense", series[0].json()},
          {"dense_gflops", 1e-6 * backwardFlops(problem) / denseMs},
          {"rows", rows}};
}

} // namespace

Command addBackwardCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "backward", "The backward pass over densities and mask blocks");
  auto options = std::make_shared<BackwardOptions>();
  command->add_option("--length", options->length, "Sequence length")
      ->check(kAnyLength)
      ->capture_default_str();
  addList(*command, "--densities", options->densities,
          "Shares of key blocks kept", kAnyDensity);
  addList(*command, "--mask-blocks", options->maskBlocks,
          "Keys of a mask block; it has 128 rows",
          CLI::IsMember({16, 32, 64, 128}));
  options->addTo(*command);
  return [options] { return runBackward(*options); };
}

} // namespace spargejit::bench

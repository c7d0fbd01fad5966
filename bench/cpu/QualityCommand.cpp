// SPDX-License-Identifier: Apache-2.0
//
// `quality`: how close each rule of selection comes to dense attention, over
// densities and mask blocks, on inputs of a file or on made-up ones.
#include "bench/cpu/Commands.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "runtime/tools/spargejit/problem/MeasureMethod.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

namespace spargejit::bench {

namespace {

struct QualityOptions {
  std::vector<std::string> files;
  std::string synthetic = "1,1,1024,64";
  std::vector<double> densities{0.03, 0.05, 0.1, 0.2};
  std::vector<std::int64_t> maskBlocks{128, 64, 32, 16};
  int threads = 0;
  std::uint64_t seed = 1;
};

/// Inputs and what dense attention makes of them, all float32.
struct Inputs {
  std::string name;
  problem::AttentionInputs tensors;
  problem::MethodResult dense;
};

Inputs makeInputs(const problem::InputSource &source, const std::string &name,
                  int threads) {
  Inputs inputs;
  inputs.name = name;
  inputs.tensors = problem::loadInputs(source, problem::Layout::Bhnd,
                                       DataType::Float32, threads)
                       .value();
  AttentionConfig dense;
  dense.method = "dense";
  dense.threads = threads;
  inputs.dense = problem::runMethod(inputs.tensors, dense).value();
  return inputs;
}

double densityOf(const Inputs &inputs, const AttentionConfig &config) {
  return selectBlocks(inputs.tensors.qView, inputs.tensors.kView, config)
      .value()
      .density();
}

/// The topP for which the density comes nearest to `wanted`, which it reaches
/// from below: density rises with topP.
double topPForDensity(const Inputs &inputs, AttentionConfig config,
                      double wanted) {
  double low = 0, high = 1, best = 0, bestMiss = 1;
  for (int step = 0; step < 20; ++step) {
    config.topP = (low + high) / 2;
    const double density = densityOf(inputs, config);
    if (std::fabs(density - wanted) < bestMiss) {
      bestMiss = std::fabs(density - wanted);
      best = config.topP;
    }
    (density < wanted ? low : high) = config.topP;
  }
  return best;
}

/// What the hybrid keeps by rank of all that it keeps. With less, every row of
/// the inputs tried keeps more by mass than by rank, and the hybrid is top-p.
constexpr double kShareByRank = 0.8;

/// The rule at a density: top-k by k alone, top-p by p alone, the hybrid by k
/// for most of it and p for the rest.
AttentionConfig ruleAt(const Inputs &inputs, const std::string &method,
                       std::int64_t maskBlock, double density,
                       const QualityOptions &options) {
  AttentionConfig config;
  config.method = method;
  config.maskBlockKv = maskBlock;
  config.threads = options.threads;
  config.topK = config.topP = 0;
  const std::int64_t length = inputs.tensors.kView.sizes[2];
  if (method != "topp")
    config.topK = topKForDensity(
        density * (method == "topk" ? 1 : kShareByRank), length, maskBlock);
  if (method != "topk")
    config.topP = topPForDensity(inputs, config, density);
  return config;
}

Json measureRule(const Inputs &inputs, const AttentionConfig &config,
                 double wanted) {
  const problem::MethodResult sparse =
      problem::runMethod(inputs.tensors, config).value();
  const problem::Quality quality = problem::compareWithDense(
      inputs.dense.o, inputs.dense.lse, sparse.o, sparse.lse);
  return {{"method", config.method},
          {"mask_block_q", config.maskBlockQ},
          {"mask_block_kv", config.maskBlockKv},
          {"wanted_density", wanted},
          {"density", sparse.lists.density()},
          {"top_k", config.topK},
          {"top_p", config.topP},
          {"recall", quality.recall},
          {"relative_l1", quality.relL1},
          {"relative_l2", quality.relL2}};
}

Json measureInputs(const Inputs &inputs, const QualityOptions &options) {
  Json rows = Json::array();
  for (std::int64_t maskBlock : options.maskBlocks)
    for (double density : options.densities)
      for (const char *method : {"topk", "topp", "spargeattention2"})
        rows.push_back(measureRule(
            inputs, ruleAt(inputs, method, maskBlock, density, options),
            density));
  const TensorView &q = inputs.tensors.qView;
  return {{"name", inputs.name},
          {"heads", q.sizes[0] * q.sizes[1]},
          {"length", q.sizes[2]},
          {"head_dim", q.sizes[3]},
          {"rows", rows}};
}

Json runQuality(const QualityOptions &options) {
  std::vector<std::pair<problem::InputSource, std::string>> sources;
  for (const std::string &file : options.files) {
    problem::InputSource source;
    source.safetensors = file;
    sources.emplace_back(source, std::filesystem::path(file).stem());
  }
  if (sources.empty()) {
    problem::InputSource source;
    source.synthetic = options.synthetic;
    source.seed = options.seed;
    sources.emplace_back(source, "synthetic " + options.synthetic);
  }
  Json measured = Json::array();
  for (const auto &[source, name] : sources) {
    fmt::print(stderr, "{}\n", name);
    measured.push_back(
        measureInputs(makeInputs(source, name, options.threads), options));
  }
  return {{"inputs", measured}};
}

} // namespace

Command addQualityCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "quality", "Recall and error of selections over densities and mask "
                 "blocks");
  auto options = std::make_shared<QualityOptions>();
  command
      ->add_option("--file", options->files,
                   "Inputs: .safetensors with q, k, v; may be repeated")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--synthetic", options->synthetic,
                   "Without a file: made-up inputs B,H,N,D")
      ->capture_default_str();
  addList(*command, "--densities", options->densities,
          "Shares of key blocks kept", kAnyDensity);
  addList(*command, "--mask-blocks", options->maskBlocks,
          "Keys of a mask block; it has 128 rows",
          CLI::IsMember({16, 32, 64, 128}));
  command->add_option("--threads", options->threads, "0 = all")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of made-up inputs")
      ->capture_default_str();
  return [options] { return runQuality(*options); };
}

} // namespace spargejit::bench

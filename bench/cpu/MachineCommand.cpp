// SPDX-License-Identifier: Apache-2.0
//
// `machine` and `peak`: what the figures of a run were measured on.
#include "bench/cpu/Commands.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"
#include "bench/cpu/peak/FmaPeak.h"
#include "compiler/Driver/CompileKernel.h"

#include <memory>

namespace spargejit::bench {

Command addMachineCommand(CLI::App &app) {
  app.add_subcommand("machine", "What was built, with what, for which CPU");
  return [] {
    Target target = compiler::hostTarget();
    return Json{{"version", version()},
                {"compiler", __VERSION__},
                {"code_generator", compiler::codeGeneratorIdentity()},
                {"cpu", target.cpu},
                {"cores", coreCount()}};
  };
}

Command addPeakCommand(CLI::App &app) {
  CLI::App *command =
      app.add_subcommand("peak", "Peak of float32 multiply-adds");
  auto samples = std::make_shared<int>(9);
  auto milliseconds = std::make_shared<double>(25);
  command->add_option("--samples", *samples, "Samples of each figure")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--milliseconds", *milliseconds, "Length of a sample")
      ->capture_default_str();
  return [samples, milliseconds] {
    Json loops = Json::object();
    for (const FmaLoop *loop : FmaPeak::supportedLoops()) {
      measureLoop(*loop, *milliseconds / 5);
      loops[loop->name] = measureLoop(*loop, *milliseconds);
    }
    FmaPeak peak;
    Json result{{"loop", peak.loop().name},
                {"fused", peak.isFused()},
                {"loops_gflops", loops}};
    for (int threads : {1, coreCount()}) {
      std::vector<double> rates;
      for (int i = 0; i < *samples; ++i)
        rates.push_back(peak.measure(threads, *milliseconds));
      result[threads == 1 ? "one_core" : "all_cores"] = {
          {"threads", threads},
          {"gflops", quantile(rates, 1)},
          {"median_gflops", quantile(rates, 0.5)},
          {"min_gflops", quantile(rates, 0)}};
      if (coreCount() == 1)
        result["all_cores"] = result["one_core"];
    }
    return result;
  };
}

} // namespace spargejit::bench

// SPDX-License-Identifier: Apache-2.0
//
// `compile`: what the first call of a process pays before it runs.
#include "bench/cpu/Commands.h"
#include "bench/cpu/CompilationLog.h"
#include "bench/cpu/MeasuringOptions.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <memory>

namespace spargejit::bench {

namespace {

struct CompileOptions : MeasuringOptions {
  std::string method = "dense";
};

Json runCompile(const CompileOptions &options) {
  Problem problem(dataTypeFromName(options.dtype), 1, 256, options.headDim,
                  options.threads, options.seed);
  AttentionConfig config = problem.config(options.method);
  BlockLists lists; // what "block_sparse" wants; read by no kernel here
  lists.maskBlockQ = config.maskBlockQ;
  lists.maskBlockKv = config.maskBlockKv;
  lists.qLen = lists.kvLen = 256;
  lists.indices = Tensor::allocate(DataType::Int32, {1, 1, 2, 4}).value();
  lists.counts = Tensor::allocate(DataType::Int32, {1, 1, 2}).value();
  if (config.method == "block_sparse")
    config.lists = &lists;

  CompilationLog log;
  Series cold;
  timeOnce([&] { problem.prepare(config); }, cold);
  Series warm;
  timeOnce([&] { problem.prepare(config); }, warm);
  Counters done = counters();
  return {{"method", options.method},
          {"dtype", options.dtype},
          {"head_dim", options.headDim},
          {"cold_ms", cold.wallMs[0]},
          {"prepared_again_ms", warm.wallMs[0]},
          {"kernels_compiled", done.kernelsCompiled},
          {"compile_ms", done.compileMilliseconds},
          {"kernels", log.kernels()}};
}

} // namespace

Command addCompileCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "compile", "First preparation of a method in this process");
  auto options = std::make_shared<CompileOptions>();
  command->add_option("--method", options->method)->capture_default_str();
  options->addInputsTo(*command);
  return [options] { return runCompile(*options); };
}

} // namespace spargejit::bench

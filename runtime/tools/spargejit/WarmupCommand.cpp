// SPDX-License-Identifier: Apache-2.0
//
// `spargejit warmup`: fills the disk cache before a service starts, so that its
// first calls find their kernels.
#include "autotune/db/ProblemLists.h"
#include "runtime/base/Environment.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/Progress.h"
#include "spargejit/spargejit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace spargejit::tool {

namespace {

constexpr const char *kDetails =
    R"(Compiles and loads, once, what calls of the methods on the lists' problems need,
and leaves it in the disk cache; a process that starts afterwards compiles none
of it. On a GPU, run it on the machine with that GPU.

Examples:
  spargejit warmup --problems wan
  spargejit warmup --problems wan,flux --method spargeattention2 --device cuda:0)";

struct WarmupOptions {
  std::vector<std::string> problems;
  std::vector<std::string> methods;
  std::string device = "cpu";
  std::string precision = kDefaultPrecision;
  bool json = false;
};

/// A dense [1, heads, length, headDim] tensor without memory.
TensorView shapeOf(const autotune::ProblemShape &problem, std::int64_t heads,
                   std::int64_t length, Device device) {
  TensorView view;
  view.dtype = problem.dtype;
  view.device = device;
  view.rank = 4;
  view.sizes = {problem.batch, heads, length, problem.headDim};
  view.strides = {heads * length * problem.headDim, length * problem.headDim,
                  problem.headDim, 1};
  return view;
}

Status prepareOne(const autotune::ProblemShape &problem,
                  const std::string &method, Precision precision,
                  Device device) {
  AttentionConfig config;
  config.precision = precision;
  config.method = method;
  config.maskBlockQ = problem.maskBlockQ;
  config.maskBlockKv = problem.maskBlockKv;
  config.causal = problem.causal;
  config.topK = problem.density;
  // Which configuration records advise depends on the sizes; the workspace that
  // is reserved for them goes with the process.
  TensorView q = shapeOf(problem, problem.qHeads, problem.qLen, device);
  TensorView k = shapeOf(problem, problem.kvHeads, problem.kvLen, device);
  return prepare(q, k, k, config);
}

Result<std::vector<autotune::ProblemShape>>
problemsOf(const std::vector<std::string> &lists) {
  std::vector<autotune::ProblemShape> problems;
  for (const std::string &list : lists) {
    auto named = autotune::problemList(list);
    if (!named)
      failUsage("--problems", named.status().message());
    problems.insert(problems.end(), named->begin(), named->end());
  }
  return problems;
}

Result<int> warmUp(const WarmupOptions &options) {
  const Device device = deviceNamed(options.device);
  std::vector<std::string> methods = options.methods;
  if (methods.empty())
    methods = plan::MethodLibrary().names();
  auto problems = problemsOf(options.problems);
  if (!problems)
    return problems.status();
  report::Progress progress;
  progress.expect(static_cast<double>(problems->size() * methods.size()));
  std::size_t leftOut = 0;
  for (const autotune::ProblemShape &problem : *problems)
    for (const std::string &method : methods) {
      progress.step("preparing " + method, 1);
      Status status = prepareOne(problem, method,
                                 precisionNamed(options.precision), device);
      // Of all methods, those that this device runs; of named ones, each.
      if (!status && status.code() == ErrorCode::Unsupported &&
          options.methods.empty()) {
        report::note(fmt::format("left out: {}: {}", method, status.message()));
        ++leftOut;
        continue;
      }
      if (!status)
        return std::move(status).withContext("method " + method);
    }
  progress.finish();
  const Counters done = counters();
  if (options.json)
    printJson({{"problems", problems->size()},
               {"methods", methods},
               {"left_out", leftOut},
               {"kernels_compiled", done.kernelsCompiled},
               {"kernels_from_disk", done.kernelsFromDisk},
               {"compile_milliseconds", done.compileMilliseconds}});
  else
    fmt::print("{} kernels compiled, {} found on disk\n", done.kernelsCompiled,
               done.kernelsFromDisk);
  return 0;
}

} // namespace

CommandBody addWarmupCommand(CLI::App &app) {
  auto options = std::make_shared<WarmupOptions>();
  CLI::App *command = app.add_subcommand(
      "warmup", "Fill the disk cache before a service starts");
  command->footer(kDetails);
  command
      ->add_option("--problems", options->problems,
                   fmt::format("Lists of problems, or names in them: {}",
                               fmt::join(autotune::problemListNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',')
      ->required();
  command
      ->add_option("--method", options->methods,
                   "Methods; all that are built in unless given")
      ->type_name("NAME")
      ->delimiter(',');
  command->add_option("--precision", options->precision, kPrecisionText)
      ->type_name("P")
      ->capture_default_str()
      ->check(oneOf(precisionNames()));
  command->add_option("--device", options->device, "cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->check(deviceName());
  command->add_flag("--json", options->json, "Print JSON");
  return [options] { return warmUp(*options); };
}

} // namespace spargejit::tool

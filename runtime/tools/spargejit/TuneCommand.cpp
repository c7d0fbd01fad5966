// SPDX-License-Identifier: Apache-2.0
//
// `spargejit tune`: finds the fastest configurations of the kernels of
// attention and of its gradients for each problem of a list and appends what it
// measured to a file of records.
#include "autotune/db/RecordFile.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/api/tune/FirstUse.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/jit/KernelCompiler.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/options/ProblemOptions.h"
#include "runtime/tools/spargejit/problem/AttentionInputs.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/Progress.h"
#include "runtime/tools/spargejit/tune/CheckCandidate.h"
#include "runtime/tools/spargejit/tune/CheckGradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace spargejit::tool {

namespace {

using autotune::ProblemShape;
using autotune::SearchOutcome;
using Json = nlohmann::ordered_json;

/// Those that have a space on some device, in the order of their use.
constexpr const char *kKernels[] = {"attention_fwd", "attention_bwd_q",
                                    "attention_bwd_kv"};
/// What gradients of a list's problems are tuned for: sparse attention with the
/// mask block that methods have by default.
bool isTrained(const ProblemShape &problem) {
  constexpr std::int64_t kUsualMaskBlockKv = 64;
  return problem.density < 1 && problem.maskBlockKv == kUsualMaskBlockKv;
}
constexpr const char *kDetails =
    R"(Each candidate is compiled, compared on small shapes with a float64 reference
(gradients: with those of the CPU in float32) with guard zones around its output,
and timed on buffers that take turns; the winner meets the default once more, in
turns, and has to be faster by more than the spread of both. Gradients of a list's
problems are tuned for sparse attention with the usual mask block, by whole backward
passes. Every result is appended to the file as it comes: after Ctrl-C, the same
command goes on where it was.

Examples:
  spargejit tune --problems wan --device cuda --records h200.jsonl
  spargejit tune --shape 1,2,4096,128 --density 0.05 --records host.jsonl)";

struct TuneOptions {
  std::vector<std::string> kernels;
  std::vector<std::string> problems;
  std::string shape;
  double density = 1;
  std::string dtype = "bfloat16";
  std::string maskBlock = "128x64";
  bool causal = false;
  std::string device = "cpu";
  std::string records;
  int best = 10;
  int random = 2;
  int count = 30;
  std::uint64_t seed = 1;
  bool json = false;
};

Result<std::vector<ProblemShape>> problemsOf(const TuneOptions &options) {
  std::vector<ProblemShape> problems;
  for (const std::string &list : options.problems) {
    auto named = autotune::problemList(list);
    if (!named)
      failUsage("--problems", named.status().message());
    problems.insert(problems.end(), named->begin(), named->end());
  }
  if (options.shape.empty())
    return problems;
  auto sizes = problem::parseSyntheticShape(options.shape);
  if (!sizes)
    failUsage("--shape", sizes.status().message());
  const MaskBlock block = parseMaskBlock(options.maskBlock);
  ProblemShape problem;
  problem.name = fmt::format("{}-b{}x{}-d{:g}", options.shape, block.q,
                             block.kv, options.density);
  problem.dtype = *problem::floatTypeFromName(options.dtype);
  problem.batch = (*sizes)[0];
  problem.qHeads = problem.kvHeads = (*sizes)[1];
  problem.qLen = problem.kvLen = (*sizes)[2];
  problem.headDim = (*sizes)[3];
  problem.maskBlockQ = block.q;
  problem.maskBlockKv = block.kv;
  problem.causal = options.causal;
  problem.density = options.density;
  problems.push_back(problem);
  return problems;
}

/// How candidates are tried here: against a reference.
Result<api::TrialSetup> setupOf(const TuneOptions &options,
                                const std::string &kernel) {
  auto engine = api::Engine::process();
  if (!engine)
    return engine.status();
  const Device device = deviceNamed(options.device);
  auto environment = (*engine)->tuningEnvironment(device, kernel);
  if (!environment)
    return environment.status();
  const std::uint64_t seed = options.seed;
  const auto compare =
      api::isOfBackward(kernel) ? checkGradients : checkCandidate;
  auto check = [device, seed, compare](api::Engine &candidate,
                                       const ProblemShape &problem) {
    return compare(candidate, problem, device, seed);
  };
  return api::TrialSetup{jit::builtInCodeGenerator(),
                         kernels_ir::embeddedTexts(),
                         *spargejit::environment(),
                         **engine,
                         device,
                         *std::move(environment),
                         kernel,
                         check,
                         0,
                         seed};
}

/// A kernel and a problem.
struct Search {
  std::shared_ptr<const api::TrialSetup> setup;
  ProblemShape problem;
};

Target targetOf(const api::TrialSetup &setup) {
  Target target;
  target.architecture = setup.environment.target;
  return target;
}

/// About how many seconds a candidate takes, for the time left alone: a fixed
/// part, and some eight calls at a speed of the device's order.
double candidateSeconds(const TuneOptions &options, const Search &search) {
  const ProblemShape &problem = search.problem;
  constexpr double kFixed = 0.3, kCalls = 8;
  const double speed = options.device == "cpu" ? 1e11 : 5e14;
  const double operations =
      4.0 * problem.density * static_cast<double>(problem.headDim) *
      static_cast<double>(problem.batch * problem.qHeads) *
      static_cast<double>(problem.qLen) * static_cast<double>(problem.kvLen);
  // Seven products in place of two.
  const double products = api::isOfBackward(search.setup->kernel) ? 3.5 : 1;
  return kFixed + kCalls * products * operations / speed;
}

Result<SearchOutcome> tuneOne(const TuneOptions &options, const Search &what,
                              api::TrialSession &session,
                              report::Progress &progress) {
  const api::TrialSetup &setup = *what.setup;
  const ProblemShape &problem = what.problem;
  auto device = api::TrialDevice::open(setup, problem, session);
  if (!device)
    return device.status();
  auto search = api::searchFor(setup.texts, setup.environment.target,
                               setup.kernel, problem);
  if (!search)
    return search.status();
  autotune::SearchRequest &request = search->request;
  request.best = options.best;
  request.random = options.random;
  request.count = options.count;
  request.seed = options.seed;

  std::vector<autotune::TuningRecord> earlier;
  std::error_code ignored;
  if (std::filesystem::exists(options.records, ignored)) {
    auto file = autotune::readRecords(options.records);
    if (!file)
      return file.status();
    for (const std::string &line : file->skipped)
      report::note("skipped: " + line);
    earlier = std::move(file->records);
  }
  // A small space has fewer candidates than may be measured: their share of the
  // time stays.
  const double seconds = candidateSeconds(options, what);
  return autotune::searchConfigs(
      search->space, request, **device, earlier,
      [&](const autotune::TuningRecord &record) {
        return autotune::appendRecords(options.records, {record});
      },
      [&](const autotune::SearchProgress &state) {
        progress.step(fmt::format("{} {}, {} of {}", setup.kernel, problem.name,
                                  state.done, state.total),
                      seconds * (options.best + options.random + 1) /
                          state.total);
        return true;
      });
}

Json outcomeAsJson(const Search &search, const SearchOutcome &outcome) {
  Json rejected = Json::object();
  for (const auto &[reason, count] : outcome.rejected)
    rejected[reason] = count;
  return {{"kernel", search.setup->kernel},
          {"problem", search.problem.name},
          {"space", outcome.spaceSize},
          {"rejected", rejected},
          {"measured", outcome.measured},
          {"failed", outcome.failed},
          {"reused", outcome.reused},
          {"default_us", outcome.defaultRecord.medianUs},
          {"chosen_us", outcome.chosen.medianUs},
          {"is_default", !outcome.chosen.isWinner},
          {"config", outcome.chosen.config}};
}

void printOutcome(const Search &search, const SearchOutcome &outcome) {
  const double gain =
      100 * (outcome.defaultRecord.medianUs / outcome.chosen.medianUs - 1);
  fmt::print("{} {}: default {:.1f} us, {} {:.1f} us ({:+.1f} %) [{}]\n",
             search.setup->kernel, search.problem.name,
             outcome.defaultRecord.medianUs,
             outcome.chosen.isWinner ? "tuned" : "kept",
             outcome.chosen.medianUs, outcome.chosen.isWinner ? gain : 0.0,
             autotune::describeConfig(outcome.chosen.config));
}

/// What is searched: problem by problem, which share their buffers, and in each
/// kernel by kernel.
Result<std::vector<Search>> searchesOf(const TuneOptions &options) {
  auto problems = problemsOf(options);
  if (!problems)
    return problems.status();
  if (problems->empty())
    failUsage("--problems", "expected --problems or --shape");
  std::vector<std::shared_ptr<const api::TrialSetup>> setups;
  for (const std::string kernel : kKernels) {
    const bool isNamed =
        std::count(options.kernels.begin(), options.kernels.end(), kernel) > 0;
    if (!options.kernels.empty() && !isNamed)
      continue;
    auto setup = setupOf(options, kernel);
    if (!setup)
      return setup.status();
    if (isNamed ||
        jit::findKernelFile(setup->texts, targetOf(*setup), kernel + ".tuning"))
      setups.push_back(
          std::make_shared<const api::TrialSetup>(*std::move(setup)));
  }
  std::vector<Search> searches;
  for (const ProblemShape &problem : *problems)
    for (const auto &setup : setups)
      if (!api::isOfBackward(setup->kernel) || !options.shape.empty() ||
          isTrained(problem))
        searches.push_back({setup, problem});
  return searches;
}

Result<int> tune(const TuneOptions &options) {
  auto searches = searchesOf(options);
  if (!searches)
    return searches.status();
  report::Progress progress;
  double seconds = 0;
  for (const Search &search : *searches)
    seconds += candidateSeconds(options, search);
  progress.expect(seconds * (options.best + options.random + 1));
  api::TrialSession session;
  Json results = Json::array();
  for (const Search &search : *searches) {
    auto outcome = tuneOne(options, search, session, progress);
    if (!outcome)
      return Status(outcome.status())
          .withContext(search.setup->kernel + " " + search.problem.name);
    if (options.json)
      results.push_back(outcomeAsJson(search, *outcome));
    else
      printOutcome(search, *outcome);
  }
  progress.finish();
  if (options.json)
    printJson({{"records", options.records}, {"problems", results}});
  return 0;
}

void addMeasuring(CLI::App &command, TuneOptions &options) {
  command
      .add_option("--records", options.records, "File to append to (.jsonl)")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--best", options.best,
                  "Candidates measured: the cheapest by estimate")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command
      .add_option("--random", options.random,
                  "Candidates measured beside them, at random")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  command.add_option("--count", options.count, "Samples of a measurement")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(20, 100000));
  command.add_option("--seed", options.seed, "Of lists and random candidates")
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", options.json, "Print JSON");
}

} // namespace

CommandBody addTuneCommand(CLI::App &app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App *command =
      app.add_subcommand("tune", "Find and record the fastest configurations");
  command->footer(kDetails);
  command
      ->add_option("--kernels", options->kernels,
                   "Kernels to tune (all that can be)")
      ->type_name("KERNEL")
      ->delimiter(',')
      ->check(oneOf({kKernels[0], kKernels[1], kKernels[2]}));
  command
      ->add_option("--problems", options->problems,
                   fmt::format("Lists of problems, or names in them: {}",
                               fmt::join(autotune::problemListNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',');
  command->add_option("--shape", options->shape, "One problem of this shape")
      ->type_name("B,H,N,D");
  command
      ->add_option("--density", options->density,
                   "Of the shape's lists; 1: dense")
      ->type_name("R")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1.0));
  command->add_option("--dtype", options->dtype, "Of the shape")
      ->type_name("T")
      ->capture_default_str()
      ->check(oneOf({"float32", "bfloat16", "float16"}));
  command->add_option("--mask-block", options->maskBlock, "Of the shape")
      ->type_name("QxKV")
      ->capture_default_str()
      ->check(maskBlockText());
  command->add_flag("--causal", options->causal, "Token-exact causal mask");
  command->add_option("--device", options->device, "cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->check(deviceName());
  addMeasuring(*command, *options);
  return [options] { return tune(*options); };
}

} // namespace spargejit::tool

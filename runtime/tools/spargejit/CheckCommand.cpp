// SPDX-License-Identifier: Apache-2.0
//
// `spargejit check`: runs a method and compares its output and lse with the
// float64 reference over the lists that it used.
#include "runtime/tools/spargejit/CheckReference.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/options/ProblemOptions.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/problem/MeasureMethod.h"
#include "runtime/tools/spargejit/report/TextTable.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDetails = R"(What is compared:
  o and lse with plain loops in float64 over the block lists that the method
  gave, from the inputs as rounded to --dtype. The lists themselves must be
  ascending, in range and end in -1.
  The relative L2 error of o, and of lse (relative to max(1, |lse|)), must be
  at most 2e-6 for float32, 3e-3 for bfloat16 and float16, and 8e-2 with a
  --precision of eight bits; the largest error at most 10 times that of the
  largest value;
  NaN and infinities must stand in the same places.

Large problems are checked on a sample of rows, first and last of each head
included.

Examples:
  spargejit check --synthetic 1,2,1000,64 --method spargeattention2 --causal
  spargejit check --input qkv.safetensors --method topk --top-k 0.1 --rows all)";

struct CheckOptions {
  ProblemOptions problem;
  std::string rows;
  std::uint64_t rowSeed = 0;
  bool json = false;
};

/// Relative L2 error allowed. Rounding inputs and weights to eight bits gives
/// 6.1e-2 at most where values have no mean
/// (bench/results/2026-11-30-h200-attention-fp8.md), and a third more here.
double boundFor(DataType dtype, Precision precision) {
  if (precision != Precision::Inputs)
    return 8e-2;
  return dtype == DataType::Float32 ? 2e-6 : 3e-3;
}

/// Over some 10^6 elements with normally distributed errors the largest is five
/// times the mean, and so is the largest value; twice that leaves room.
constexpr double kLargestErrorFactor = 10;

struct Verdict {
  CheckReport report;
  double bound = 0;
  std::uint64_t rowSeed = 0;
  double density = 0;

  /// What the largest error may be: the mean error hides a single wrong
  /// element of a large output, this does not.
  double largestAllowed(const ErrorSummary &summary) const {
    return kLargestErrorFactor * bound * summary.largest;
  }
  bool passed(const ErrorSummary &summary) const {
    return summary.notFiniteAlike == 0 && summary.relL2 <= bound &&
           summary.maxError <= largestAllowed(summary);
  }
  bool passed() const { return passed(report.o) && passed(report.lse); }
};

Result<TensorView> widenedView(const Tensor &tensor, problem::Layout layout,
                               Tensor &storage) {
  Result<Tensor> wide = problem::convertTensor(tensor, DataType::Float32);
  if (!wide)
    return wide.status();
  storage = *std::move(wide);
  return problem::viewAsBhnd(storage, layout);
}

Result<Verdict> compare(const PreparedProblem &problem,
                        const CheckOptions &options) {
  const problem::AttentionInputs &inputs = problem.inputs;
  report::Progress progress;
  progress.step("running the method", 0);
  Result<problem::MethodResult> result =
      problem::runMethod(problem.inputsOnDevice, problem.config);
  if (result)
    result = problem::resultOnHost(*result);
  if (!result)
    return inTermsOfOptions(result.status(), problem);
  if (problem.blockMask.empty())
    if (Status status = checkLists(result->lists); !status)
      return status;

  ReferenceProblem reference;
  Tensor q, k, v, o;
  for (auto [from, storage, into] : {std::tuple{&inputs.q, &q, &reference.q},
                                     {&inputs.k, &k, &reference.k},
                                     {&inputs.v, &v, &reference.v},
                                     {&result->o, &o, &reference.o}}) {
    Result<TensorView> view = widenedView(*from, inputs.layout, *storage);
    if (!view)
      return view.status();
    *into = *view;
  }
  reference.lse = result->lse.view();
  reference.lists = &result->lists;
  reference.causal = problem.config.causal;
  reference.softmaxScale = problem.config.softmaxScale.value_or(
      1 / std::sqrt(static_cast<double>(inputs.qView.sizes[3])));

  std::int64_t wanted = affordableRows(reference);
  if (options.rows == "all")
    wanted = std::numeric_limits<std::int64_t>::max();
  else if (!options.rows.empty())
    wanted = std::stoll(options.rows);
  Verdict verdict;
  verdict.rowSeed = options.rowSeed ? options.rowSeed : std::random_device()();
  std::vector<QueryRow> rows =
      chooseRows(inputs.qView, wanted, verdict.rowSeed);
  progress.expect(static_cast<double>(rows.size()));
  progress.step("float64 reference", static_cast<double>(rows.size()));
  verdict.report =
      compareWithReference(reference, rows, options.problem.threads, progress);
  verdict.bound = boundFor(inputs.qView.dtype, problem.config.precision);
  verdict.density = result->lists.density();
  return verdict;
}

Json summaryAsJson(const Verdict &verdict, const ErrorSummary &summary) {
  return {{"rel_l2", summary.relL2},
          {"max_error", summary.maxError},
          {"max_error_bound", verdict.largestAllowed(summary)},
          {"max_error_at",
           {summary.maxRow.batch, summary.maxRow.head, summary.maxRow.row,
            summary.maxChannel}},
          {"not_finite_alike", summary.notFiniteAlike}};
}

void printJsonVerdict(const PreparedProblem &problem, const Verdict &verdict) {
  Json json = describeAsJson(problem);
  json["density"] = verdict.density;
  json["rows_checked"] = verdict.report.rowsChecked;
  json["rows_total"] = verdict.report.rowsTotal;
  json["row_seed"] = verdict.rowSeed;
  json["bound"] = verdict.bound;
  json["o"] = summaryAsJson(verdict, verdict.report.o);
  json["lse"] = summaryAsJson(verdict, verdict.report.lse);
  json["passed"] = verdict.passed();
  printJson(json);
}

void addSummary(report::TextTable &table, const std::string &name,
                const ErrorSummary &summary, const Verdict &verdict) {
  auto against = [](double value, double bound) {
    return fmt::format("{} the bound {:.2g}",
                       value <= bound ? "within" : "ABOVE", bound);
  };
  table.value(name + " relative L2 error", fmt::format("{:.2e}", summary.relL2),
              "", against(summary.relL2, verdict.bound));
  double allowed = verdict.largestAllowed(summary);
  table.value(name + " largest error", fmt::format("{:.2e}", summary.maxError),
              "", against(summary.maxError, allowed));
  if (summary.maxError > 0)
    table.text("",
               fmt::format(
                   "{:.9g} instead of {:.9g} at batch {}, head {}, "
                   "row {}{}",
                   summary.maxFound, summary.maxExpected, summary.maxRow.batch,
                   summary.maxRow.head, summary.maxRow.row,
                   name == "o" ? fmt::format(", channel {}", summary.maxChannel)
                               : std::string()));
  if (summary.notFiniteAlike > 0)
    table.value(name + " NaN or infinite",
                fmt::format("{}", summary.notFiniteAlike), "",
                "first at " + summary.firstNotFinite);
}

void printTable(const PreparedProblem &problem, const Verdict &verdict) {
  report::TextTable table;
  for (const auto &[label, text] : describeAsText(problem))
    table.text(label, text);
  const CheckReport &report = verdict.report;
  table.text("rows", report.rowsChecked == report.rowsTotal
                         ? fmt::format("all {}", report.rowsTotal)
                         : fmt::format("{} of {}, sampled with seed {}",
                                       report.rowsChecked, report.rowsTotal,
                                       verdict.rowSeed));
  table.gap();
  table.value("density", fmt::format("{:.2f}", 100 * verdict.density), "%");
  addSummary(table, "o", report.o, verdict);
  addSummary(table, "lse", report.lse, verdict);
  table.gap();
  table.text("verdict", verdict.passed() ? "passed" : "FAILED");
  fmt::print("{}", table.str());
}

Result<int> check(const CheckOptions &options) {
  Result<PreparedProblem> problem = prepareProblem(options.problem);
  if (!problem)
    return problem.status();
  Result<Verdict> verdict = compare(*problem, options);
  if (!verdict)
    return verdict.status();
  if (options.json)
    printJsonVerdict(*problem, *verdict);
  else
    printTable(*problem, *verdict);
  return verdict->passed() ? 0 : 1;
}

} // namespace

CommandBody addCheckCommand(CLI::App &app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App *command = app.add_subcommand(
      "check", "Run a method and compare it with a float64 reference");
  command->footer(kDetails);
  addProblemOptions(*command, options->problem);
  command
      ->add_option("--rows", options->rows,
                   "Query rows to check, or all [default: what takes some five "
                   "seconds]")
      ->type_name("N")
      ->group("Execution")
      ->check([](const std::string &text) -> std::string {
        std::string number = text;
        if (text == "all" || integerBetween(1)(number).empty())
          return "";
        return "expected a whole number, at least 1, or all, got " + text;
      });
  command
      ->add_option("--row-seed", options->rowSeed,
                   "Seed of the sample of rows [default: another each time]")
      ->type_name("N")
      ->group("Execution")
      ->check(integerBetween(1));
  command->add_flag("--json", options->json, "Print JSON instead of a table")
      ->group("Output");
  return [options] { return check(*options); };
}

} // namespace spargejit::tool

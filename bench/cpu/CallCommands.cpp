// SPDX-License-Identifier: Apache-2.0
//
// `calls` and `lengths`: what a call costs beside its work, and what many
// lengths compile.
#include "bench/cpu/Commands.h"
#include "bench/cpu/CompilationLog.h"
#include "bench/cpu/Problem.h"
#include "bench/cpu/Timing.h"

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

namespace spargejit::bench {

namespace {

/// Numbers of heads, each the work of one program more: the time of a call is
/// overhead + heads · work, and the line over heads tells the two apart.
constexpr std::int64_t kHeads[] = {1, 2, 4, 8};

/// One call of a tiny problem.
struct Call {
  std::string method;
  Problem problem;
  AttentionConfig config;
  BlockLists lists;
};

void addCall(std::deque<Call> &calls, const std::string &method,
             std::int64_t heads) {
  // One token of the least head dimension; one thread, because waking others
  // up for microseconds of work is not what is measured.
  Call &call = calls.emplace_back(
      Call{method, Problem(DataType::Float32, heads, 1, 8, 1, 1), {}, {}});
  if (method == "block_sparse") {
    AttentionConfig select = call.problem.config("topk");
    call.lists = call.problem.select(select);
    call.config = withLists(select, call.lists);
  } else {
    call.config = call.problem.config(method);
  }
}

Json runCalls(int count) {
  std::deque<Call> calls; // configs point to lists in it
  for (const char *method :
       {"dense", "block_sparse", "topk", "spargeattention2"})
    for (std::int64_t heads : kHeads)
      addCall(calls, method, heads);
  std::vector<Task> tasks;
  for (const Call &call : calls)
    tasks.push_back(
        {fmt::format("{}, heads: {}", call.method, call.problem.heads()),
         [&] { call.problem.attend(call.config); }});
  constexpr int kRounds = 10;
  std::vector<Series> series =
      measureInTurns(tasks, {kRounds, 1e9, count / kRounds});
  Json rows = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i)
    rows.push_back({{"method", calls[i].method},
                    {"heads", calls[i].problem.heads()},
                    {"calls", series[i].wallMs.size()},
                    {"us", 1e3 * series[i].medianMs()},
                    {"p10_us", 1e3 * quantile(series[i].wallMs, 0.1)},
                    {"p90_us", 1e3 * quantile(series[i].wallMs, 0.9)}});
  return {{"length", 1}, {"head_dim", 8}, {"rows", rows}};
}

struct LengthsOptions {
  int lengths = 50;
  std::int64_t longest = 700;
  std::uint64_t seed = std::random_device{}();
};

/// Runs `method` over all lengths: what the first compiles, and what the
/// others.
Json countKernels(const std::string &method, const LengthsOptions &options,
                  const std::set<std::int64_t> &lengths) {
  note(fmt::format("{} lengths: {}", lengths.size(), method));
  CompilationLog log;
  std::size_t ofFirst = 0;
  for (std::int64_t length : lengths) {
    Problem problem(DataType::Float32, 1, length, 64, 0, options.seed);
    problem.attend(problem.config(method));
    if (length == *lengths.begin())
      ofFirst = log.kernels().size();
  }
  Json kernels = log.kernels();
  Json names = Json::array();
  for (const Json &kernel : kernels)
    names.push_back(kernel["kernel"]);
  return {{"method", method},
          {"kernels_of_first", ofFirst},
          {"kernels_of_others", kernels.size() - ofFirst},
          {"kernels", names}};
}

Json runLengths(const LengthsOptions &options) {
  std::mt19937_64 generator(options.seed);
  std::uniform_int_distribution<std::int64_t> anyLength(1, options.longest);
  std::set<std::int64_t> lengths;
  while (static_cast<int>(lengths.size()) < options.lengths)
    lengths.insert(anyLength(generator));
  Json rows = Json::array();
  for (const char *method : {"dense", "topk"})
    rows.push_back(countKernels(method, options, lengths));
  return {{"seed", options.seed}, {"lengths", lengths}, {"rows", rows}};
}

} // namespace

Command addCallsCommand(CLI::App &app) {
  CLI::App *command =
      app.add_subcommand("calls", "Time of warm calls of tiny problems");
  auto calls = std::make_shared<int>(2000);
  command->add_option("--calls", *calls, "Of each kind")->capture_default_str();
  return [calls] { return runCalls(*calls); };
}

Command addLengthsCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "lengths", "Kernels that many different lengths compile");
  auto options = std::make_shared<LengthsOptions>();
  command->add_option("--lengths", options->lengths, "How many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--longest", options->longest)->capture_default_str();
  command->add_option("--seed", options->seed,
                      "Of the lengths; random if not given");
  return [options] {
    if (options->lengths > options->longest)
      throw std::invalid_argument("--lengths: expected at most --longest");
    return runLengths(*options);
  };
}

} // namespace spargejit::bench

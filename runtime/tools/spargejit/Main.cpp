// SPDX-License-Identifier: Apache-2.0
//
// The `spargejit` command: parses, calls one subcommand, and turns its outcome
// into a message on standard error and an exit code (0 done, 1 failed, 2 wrong
// usage). No signal handler is installed, so Ctrl-C ends it at once.
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/options/HelpFormatter.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "spargejit/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace spargejit::tool {

void printJson(const nlohmann::ordered_json &json) {
  fmt::print("{}\n",
             json.dump(2, ' ', false,
                       nlohmann::ordered_json::error_handler_t::replace));
}

void checkOutputPath(const std::string &option, const std::string &path,
                     const std::vector<std::string> &endings) {
  if (path.empty())
    return;
  bool known =
      std::any_of(endings.begin(), endings.end(), [&](const auto &end) {
        return path.size() > end.size() && path.ends_with(end);
      });
  if (!known)
    failUsage(option, fmt::format("expected a file name ending in {}, got {}",
                                  fmt::join(endings, " or "), path));
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    failUsage(option, fmt::format("no such folder: {}", folder.string()));
}

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

constexpr const char *kExamples = R"(Examples:
  spargejit run --synthetic 1,2,16384,128 --top-k 0.05 --mask-image mask.png
  spargejit run --input qkv.safetensors --method topk --top-k 0.1 --json
  spargejit check --synthetic 1,1,1000,64 --method spargeattention2 --causal
  spargejit dump attention_fwd --head-dim 64 --stage emit
  spargejit info

Exit status: 0 done, 1 failed, 2 wrong usage.)";

/// Log lines of the library: warnings always, the rest on request.
void installLog(bool verbose) {
  setLogCallback([verbose](LogLevel level, const std::string &line) {
    const char *name = level == LogLevel::Warning ? "warning"
                       : level == LogLevel::Info  ? "info"
                                                  : "debug";
    if (verbose || level == LogLevel::Warning)
      report::note(fmt::format("{}: {}", name, line));
  });
}

/// CLI11's message, or a clearer one that begins with the word in question.
std::string usageMessage(const CLI::App &app, const CLI::App &command,
                         const CLI::ParseError &error) {
  std::vector<std::string> extras = app.remaining(true);
  bool extra = dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr;
  bool noCommand = !command.get_subcommands({}).empty();
  if (noCommand && (extra || command.get_require_subcommand_min() > 0)) {
    std::vector<std::string> names;
    for (const CLI::App *known : command.get_subcommands({}))
      names.push_back(known->get_name());
    return fmt::format("{}expected a command: {}",
                       extras.empty() ? "" : extras.front() + ": ",
                       fmt::join(names, ", "));
  }
  if (extra && !extras.empty())
    return fmt::format("{}: not an option or argument of {}", extras.front(),
                       command.get_name());
  return error.what();
}

int reportUsageError(const CLI::App &app, const CLI::ParseError &error) {
  std::string command = "spargejit";
  const CLI::App *last = &app;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    command += " " + last->get_name();
  }
  report::note(fmt::format("error: {}\n(see {} --help)",
                           usageMessage(app, *last, error), command));
  return kWrongUsage;
}

/// Output that did not reach its file or pipe is a failure, too.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  report::note(fmt::format("error: standard output: {}", std::strerror(errno)));
  return code == kDone ? kFailed : code;
}

int runCommand(const CommandBody &body) {
  Result<int> outcome = body();
  if (outcome)
    return *outcome;
  report::note("error: " + outcome.status().message());
  return kFailed;
}

int mainBody(int argc, char **argv) {
  CLI::App app("Block-sparse attention: generates, checks and runs kernels.",
               "spargejit");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kExamples);
  app.set_version_flag("--version",
                       fmt::format("spargejit {}", spargejit::version()));
  bool verbose = false;
  app.add_flag("--verbose", verbose,
               "Show the library's log (which lines: SPARGEJIT_LOG)");
  app.require_subcommand(1);
  app.fallthrough();

  std::vector<std::pair<std::string, CommandBody>> bodies;
  bodies.emplace_back("run", addRunCommand(app));
  bodies.emplace_back("check", addCheckCommand(app));
  bodies.emplace_back("dump", addDumpCommand(app));
  bodies.emplace_back("compile", addCompileCommand(app));
  bodies.emplace_back("info", addInfoCommand(app));
  bodies.emplace_back("cache", addCacheCommand(app));
  bodies.emplace_back("warmup", addWarmupCommand(app));
  bodies.emplace_back("tune", addTuneCommand(app));
  bodies.emplace_back("records", addRecordsCommand(app));

  try {
    app.parse(argc, argv);
    installLog(verbose);
    for (const auto &[name, body] : bodies)
      if (app.got_subcommand(name))
        return runCommand(body);
  } catch (const CLI::Success &request) { // --help and --version
    app.exit(request);
    return kDone;
  } catch (const CLI::ParseError &error) {
    return reportUsageError(app, error);
  }
  return kWrongUsage;
}

} // namespace

} // namespace spargejit::tool

int main(int argc, char **argv) {
  try {
    return spargejit::tool::flushed(spargejit::tool::mainBody(argc, argv));
  } catch (const std::bad_alloc &) {
    spargejit::report::note("error: out of memory");
  } catch (const std::exception &error) {
    spargejit::report::note(std::string("error: ") + error.what());
  }
  return spargejit::tool::kFailed;
}

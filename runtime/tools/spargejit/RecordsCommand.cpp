// SPDX-License-Identifier: Apache-2.0
//
// `spargejit records`: reads, merges and checks files of tuning records.
#include "autotune/db/RecordFile.h"
#include "autotune/db/ShippedRecords.h"
#include "autotune/db/TuningDb.h"
#include "autotune/search/ProblemFacts.h"
#include "autotune/space/ConfigSpace.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Hash.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/TextTable.h"
#include "runtime/tools/spargejit/tune/TuningFacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace spargejit::tool {

namespace {

using autotune::TuningRecord;
using Json = nlohmann::ordered_json;

constexpr const char *kDetails =
    R"(A file of records is a header and one line of JSON for each configuration that
was tried. Files may be appended to each other.

Examples:
  spargejit records list h200.jsonl
  spargejit records best h200.jsonl --json
  spargejit records best
  spargejit records best h200.jsonl -o autotune/records/h200.jsonl
  spargejit records merge a.jsonl b.jsonl -o both.jsonl
  spargejit records check both.jsonl)";

struct RecordsOptions {
  CLI::App *list = nullptr;
  CLI::App *best = nullptr;
  CLI::App *merge = nullptr;
  std::vector<std::string> files;
  std::string output;
  bool json = false;
};

/// All files' records, or those that calls look at where there is no file;
/// notes the lines that were skipped, and counts them.
Result<std::vector<TuningRecord>> readAll(const std::vector<std::string> &files,
                                          std::size_t *skipped = nullptr) {
  std::vector<TuningRecord> records;
  if (files.empty()) {
    const Result<Environment> &settings = environment();
    if (!settings)
      return settings.status();
    return autotune::knownRecords(*settings);
  }
  for (const std::string &path : files) {
    auto file = autotune::readRecords(path);
    if (!file)
      return file.status();
    records.insert(records.end(), file->records.begin(), file->records.end());
    for (const std::string &line : file->skipped)
      report::note("skipped: " + line);
    if (skipped)
      *skipped += file->skipped.size();
  }
  return records;
}

std::string resultText(const TuningRecord &record) {
  if (!record.isMeasured())
    return record.failure;
  return fmt::format("{:.1f} us ±{:.1f}{}{}", record.medianUs, record.spreadUs,
                     record.isDefault ? " default" : "",
                     record.isWinner ? " winner" : "");
}

void print(const std::vector<TuningRecord> &records, bool asJson) {
  if (asJson) {
    Json list = Json::array();
    for (const TuningRecord &record : records)
      list.push_back(Json::parse(autotune::recordLine(record), nullptr, false));
    printJson({{"records", list}});
    return;
  }
  for (const TuningRecord &record : records)
    fmt::print("{}  {}  {} ({})  {}  [{}]\n", record.kernel,
               record.problem.name, record.environment.device,
               record.environment.target, resultText(record),
               autotune::describeConfig(record.config));
}

/// Why a record is of no use to this build; empty when it is.
std::string faultOf(const TuningRecord &record) {
  const auto *text = kernels_ir::findEmbeddedText(
      kernelPath(record.kernel, record.environment.target, ".mlir"));
  const auto *declared = kernels_ir::findEmbeddedText(
      kernelPath(record.kernel, record.environment.target, ".tuning"));
  if (!text || !declared)
    return "this build has no such kernel, or no tuning space for it";
  if (hashText(text->text).hex() != record.environment.kernelText)
    return "the kernel's text has changed since";
  auto space = autotune::ConfigSpace::parse(declared->text);
  if (!space)
    return space.status().message();
  auto reason = space->whyNot(autotune::factsOf(record.problem), record.config);
  if (!reason)
    return reason.status().message();
  return *reason ? "its configuration: " + **reason : "";
}

Result<int> check(const RecordsOptions &options) {
  std::size_t skipped = 0;
  auto records = readAll(options.files, &skipped);
  if (!records)
    return records.status();
  Json faults = Json::array();
  // Of use, behind those of this build's own (autotune/README.md).
  const auto others =
      std::ranges::count_if(*records, [](const TuningRecord &record) {
        return record.environment.generator !=
               jit::builtInCodeGenerator().identity();
      });
  for (const TuningRecord &record : *records)
    if (std::string fault = faultOf(record); !fault.empty()) {
      faults.push_back({{"kernel", record.kernel},
                        {"problem", record.problem.name},
                        {"config", autotune::describeConfig(record.config)},
                        {"reason", fault}});
      if (!options.json)
        fmt::print("{}  {}  [{}]: {}\n", record.kernel, record.problem.name,
                   autotune::describeConfig(record.config), fault);
    }
  if (options.json)
    printJson({{"records", records->size()},
               {"skipped_lines", skipped},
               {"other_generator", others},
               {"faults", faults}});
  else
    fmt::print("{} records, {} of no use to this build, {} lines skipped\n",
               records->size(), faults.size(), skipped);
  if (!options.json && others > 0)
    fmt::print("{} measured with another code generator\n", others);
  return faults.empty() && skipped == 0 ? 0 : 1;
}

Result<int> merge(const RecordsOptions &options) {
  auto records = readAll(options.files);
  if (!records)
    return records.status();
  const std::size_t before = records->size();
  auto merged = autotune::mergeRecords(*std::move(records));
  if (Status status = autotune::writeRecords(options.output, merged); !status)
    return std::move(status).withContext("-o");
  report::note(fmt::format("{} records of {} trials, written to {}", before,
                           merged.size(), options.output));
  return 0;
}

Result<int> printRecords(const RecordsOptions &options) {
  auto records = readAll(options.files);
  if (!records)
    return records.status();
  if (options.best->parsed())
    records = autotune::bestRecords(autotune::mergeRecords(*records));
  if (options.output.empty()) {
    print(*records, options.json);
    return 0;
  }
  if (Status status = autotune::writeRecords(options.output, *records); !status)
    return std::move(status).withContext("-o");
  report::note(fmt::format("{} records, written to {}", records->size(),
                           options.output));
  return 0;
}

} // namespace

CommandBody addRecordsCommand(CLI::App &app) {
  auto options = std::make_shared<RecordsOptions>();
  CLI::App *command =
      app.add_subcommand("records", "Work on files of tuning records");
  command->footer(kDetails);
  command->require_subcommand(1);
  options->list = command->add_subcommand("list", "Print every record");
  options->best = command->add_subcommand(
      "best", "Print what calls would use: one record for each problem");
  options->merge = command->add_subcommand(
      "merge", "Join files, with the latest record of each trial");
  CLI::App *checking = command->add_subcommand(
      "check", "Say which records are of no use to this build");
  for (CLI::App *each : {options->list, options->best, checking})
    each->add_option("FILE", options->files,
                     "Files of records (.jsonl); those that calls look at "
                     "(shipped, SPARGEJIT_RECORDS, the user's) unless given")
        ->type_name("");
  options->merge
      ->add_option("FILE", options->files, "Files of records (.jsonl)")
      ->type_name("")
      ->required();
  for (CLI::App *each : {options->list, options->best, checking})
    each->add_flag("--json", options->json, "Print JSON");
  options->best
      ->add_option("-o,--output", options->output,
                   "File to write them to, instead of printing")
      ->type_name("FILE");
  options->merge->add_option("-o,--output", options->output, "File to write")
      ->type_name("FILE")
      ->required();
  return [options]() -> Result<int> {
    if (options->merge->parsed())
      return merge(*options);
    if (options->list->parsed() || options->best->parsed())
      return printRecords(*options);
    return check(*options);
  };
}

} // namespace spargejit::tool

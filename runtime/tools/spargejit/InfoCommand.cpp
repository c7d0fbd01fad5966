// SPDX-License-Identifier: Apache-2.0
//
// `spargejit info`: what this build is and what it finds on this machine.
#include "autotune/db/ShippedRecords.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Environment.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/SystemProbe.h"
#include "runtime/tools/spargejit/options/KernelOptions.h"
#include "runtime/tools/spargejit/report/TextTable.h"
#include "spargejit/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDetails = R"(Examples:
  spargejit info
  spargejit info --json)";

std::string describeCache() {
  const Result<Environment> &settings = environment();
  if (!settings || settings->cacheFolder.empty())
    return "kernels are kept in memory, per process (no cache folder)";
  return fmt::format("{}, at most {} MB", settings->cacheFolder,
                     settings->cacheMaxMegabytes);
}

Json cacheAsJson() {
  const Result<Environment> &settings = environment();
  if (!settings || settings->cacheFolder.empty())
    return {{"kind", "memory"}, {"folder", nullptr}};
  return {{"kind", "disk"},
          {"folder", settings->cacheFolder},
          {"max_megabytes", settings->cacheMaxMegabytes}};
}

std::vector<std::string> namesOf(const std::string &folder) {
  std::vector<std::string> names;
  for (const TextSummary &text : listTexts(folder))
    names.push_back(text.name);
  return names;
}

/// Kernels with the folder that says what they run on: "portable/pool".
std::vector<std::string> kernelNames() {
  std::vector<std::string> names;
  const std::size_t folder = std::strlen("kernels/");
  const std::size_t ending = std::strlen(".mlir");
  for (const TextSummary &text : listTexts("kernels/"))
    names.push_back(
        text.path.substr(folder, text.path.size() - folder - ending));
  return names;
}

std::string describe(const LibraryInfo &library) {
  if (!library.sought)
    return library.reason;
  if (!library.found)
    return "not found: " + library.reason;
  return fmt::format("{}{}", library.path,
                     library.version.empty()
                         ? std::string()
                         : fmt::format(" ({})", library.version));
}

Json toJson(const LibraryInfo &library) {
  Json json = {{"found", library.found}};
  if (library.found) {
    json["path"] = library.path;
    json["version"] = library.version;
  } else {
    json["reason"] = library.reason;
  }
  return json;
}

/// How many there are of each device.
std::string describeRecords() {
  const Result<Environment> &settings = environment();
  if (!settings || !settings->usesRecords)
    return "none are used";
  std::map<std::string, int> counts;
  for (const autotune::TuningRecord &record : autotune::knownRecords(*settings))
    ++counts[record.environment.device];
  std::string text;
  for (const auto &[device, count] : counts)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, device);
  return fmt::format("{} ({} shipped)", text.empty() ? "none" : text,
                     autotune::shippedRecords().size());
}

std::string describeEnvironment() {
  const Result<Environment> &settings = environment();
  if (!settings)
    return "invalid: " + settings.status().message();
  std::string text = settings->jit ? "compiling allowed"
                                   : "compiling forbidden (SPARGEJIT_JIT)";
  for (const std::string &pack : settings->packFolders)
    text += fmt::format(", kernels from the pack {} (SPARGEJIT_PACK)", pack);
  if (!settings->dumpFolder.empty())
    text += fmt::format(", stages dumped to {} (SPARGEJIT_DUMP)",
                        settings->dumpFolder);
  return text;
}

void printText() {
  ProcessorInfo processor = probeProcessor();
  report::TextTable table;
  table.text("spargejit", version());
  table.text("compiler", hasCompiler()
                             ? jit::builtInCodeGenerator().identity()
                             : "none: this build runs artifacts only");
  table.text("kernel texts", std::string(kernels_ir::contentHash()));
  table.gap();
  table.text("processor", processor.name.empty() ? "unknown" : processor.name);
  table.text("  usable cores", fmt::format("{}", processorCount()));
  table.text("  extensions",
             fmt::format("{}", fmt::join(processor.features, " ")));
  if (hasCompiler()) {
    Target host = jit::builtInCodeGenerator().hostTarget();
    table.text("  compiled for", host.cpu);
  }
  table.text("libcuda", describe(probeCudaDriver()));
  table.text("libnvrtc", describe(probeNvrtc()));
  table.text("command runs on", "cpu");
  table.gap();
  table.text("cache", describeCache());
  table.text("tuning records", describeRecords());
  table.text("settings", describeEnvironment());
  table.text("methods",
             fmt::format("{}", fmt::join(namesOf("methods/"), ", ")));
  table.text("kernels", fmt::format("{}", fmt::join(kernelNames(), ", ")));
  fmt::print("{}", table.str());
}

void printAsJson() {
  ProcessorInfo processor = probeProcessor();
  Json json;
  json["version"] = version();
  json["compiler"] = {{"present", hasCompiler()}};
  if (hasCompiler())
    json["compiler"]["identity"] = jit::builtInCodeGenerator().identity();
  json["kernel_texts"] = kernels_ir::contentHash();
  json["cpu"] = {{"name", processor.name},
                 {"cores", processorCount()},
                 {"extensions", processor.features}};
  if (hasCompiler())
    json["cpu"]["compiled_for"] = jit::builtInCodeGenerator().hostTarget().cpu;
  json["libcuda"] = toJson(probeCudaDriver());
  json["libnvrtc"] = toJson(probeNvrtc());
  json["command_runs_on"] = {"cpu"};
  json["cache"] = cacheAsJson();
  json["tuning_records"] = describeRecords();
  json["settings"] = describeEnvironment();
  json["methods"] = namesOf("methods/");
  json["kernels"] = kernelNames();
  printJson(json);
}

} // namespace

CommandBody addInfoCommand(CLI::App &app) {
  auto asJson = std::make_shared<bool>(false);
  CLI::App *command =
      app.add_subcommand("info", "Say what this build has and what it finds");
  command->footer(kDetails);
  command->add_flag("--json", *asJson, "Print JSON instead of a table");
  return [asJson]() -> Result<int> {
    if (*asJson)
      printAsJson();
    else
      printText();
    return 0;
  };
}

} // namespace spargejit::tool

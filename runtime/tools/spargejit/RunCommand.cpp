// SPDX-License-Identifier: Apache-2.0
//
// `spargejit run`: runs a method on q, k, v and says how dense its mask is, how
// far its result is from dense attention and how long it takes.
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/files/Npy.h"
#include "runtime/tools/spargejit/files/Safetensors.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/options/ProblemOptions.h"
#include "runtime/tools/spargejit/problem/MeasureMethod.h"
#include "runtime/tools/spargejit/report/MaskImage.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/Progress.h"
#include "runtime/tools/spargejit/report/TextTable.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDetails = R"(Output:
  density      selected blocks / all blocks of the mask
  rel_l1       sum |O - O'| / sum |O|, O dense (in float32; on a GPU in the
               inputs' dtype), O' the method's
  rel_l2       |O - O'| / |O| (Euclidean lengths)
  cosine       <O, O'> / (|O| |O'|)
  recall       mean share of the dense softmax mass on the selected blocks
  ms_select, ms_attention, ms_dense
               medians of --repeat runs after a first one, in milliseconds;
               dense attention in the same dtype

--synthetic draws, for token t and channel d of each head (D = head dimension):
  g(t, d) = sqrt(2) cos(w_d t / 192 + a_d)   w_d normal, a_d uniform
  m(c, d) normal; c(t) one of 12 clusters, constant over 64 to 448 tokens
  q, k    = (128/D)^(1/4) (0.8 g + 0.75 m(c(t), d) + 0.6 noise)
  v       = 0.7 g' + 0.5 m'(c(t), d) + 0.5 noise

Examples:
  spargejit run --input qkv.safetensors --method topk --top-k 0.1
  spargejit run --input-q q.npy --input-k k.npy --input-v v.npy --layout bnhd
  spargejit run --synthetic 1,2,16384,128 --mask-image mask.png --json
  spargejit run --input qkv.safetensors --method my_method.mlir --no-dense
  spargejit run --synthetic 1,12,32760,128 --dtype bfloat16 --device cuda)";

struct RunOptions {
  ProblemOptions problem;
  int repeat = 3;
  bool noDense = false;
  std::string output;
  std::string maskImage;
  bool json = false;
};

Status writeOutput(const std::string &path,
                   const problem::MethodResult &result) {
  if (path.ends_with(".npy"))
    return files::writeNpy(path, result.o.view());
  return files::writeSafetensors(
      path, {{"o", result.o.view()},
             {"lse", result.lse.view()},
             {"kv_block_indices", result.lists.indices.view()},
             {"kv_block_counts", result.lists.counts.view()}});
}

Json toJson(const PreparedProblem &problem,
            const problem::Measurement &measurement, const RunOptions &options,
            const std::vector<std::string> &images) {
  Json json = describeAsJson(problem);
  json["repeat"] = options.repeat;
  json["density"] = measurement.result.lists.density();
  const auto &quality = measurement.quality;
  json["rel_l1"] = quality ? Json(quality->relL1) : Json();
  json["rel_l2"] = quality ? Json(quality->relL2) : Json();
  json["cosine"] = quality ? Json(quality->cosine) : Json();
  json["recall"] = quality ? Json(quality->recall) : Json();
  json["ms_select"] = measurement.msSelect;
  json["ms_attention"] = measurement.msAttention;
  json["ms_dense"] = measurement.msDense ? Json(*measurement.msDense) : Json();
  if (!options.output.empty())
    json["output"] = options.output;
  if (!images.empty())
    json["mask_images"] = images;
  return json;
}

void printTable(const PreparedProblem &problem,
                const problem::Measurement &measurement, int repeat) {
  report::TextTable table;
  for (const auto &[label, text] : describeAsText(problem))
    table.text(label, text);
  table.gap();
  table.value("density",
              fmt::format("{:.2f}", 100 * measurement.result.lists.density()),
              "%", "of the mask's blocks are selected");
  if (const auto &quality = measurement.quality) {
    table.value(
        "relative L1 error", report::formatRatio(quality->relL1), "",
        fmt::format("against dense attention in {}",
                    problem.inputsOnDevice.qView.device.kind == DeviceKind::Cpu
                        ? "float32"
                        : dataTypeName(problem.inputs.qView.dtype)));
    table.value("relative L2 error", report::formatRatio(quality->relL2));
    table.value("cosine similarity", fmt::format("{:.6f}", quality->cosine));
    table.value("recall", fmt::format("{:.2f}", 100 * quality->recall), "%",
                "of the dense softmax mass is on selected blocks");
  }
  table.gap();
  std::string runs =
      repeat == 1 ? "one run" : fmt::format("median of {} runs", repeat);
  table.value("selection", report::formatMilliseconds(measurement.msSelect),
              "ms", runs);
  table.value("attention", report::formatMilliseconds(measurement.msAttention),
              "ms");
  if (measurement.msDense) {
    double sparse = measurement.msSelect + measurement.msAttention;
    table.value("dense attention",
                report::formatMilliseconds(*measurement.msDense), "ms");
    table.value("speed-up",
                fmt::format("{:.2f}", *measurement.msDense / sparse), "x",
                "dense / (selection + attention)");
  }
  fmt::print("{}", table.str());
}

Result<int> run(const RunOptions &options) {
  checkOutputPath("--output", options.output, {".safetensors", ".npy"});
  checkOutputPath("--mask-image", options.maskImage, {".png"});
  Result<PreparedProblem> problem = prepareProblem(options.problem);
  if (!problem)
    return problem.status();
  if (options.output.ends_with(".npy") &&
      problem->inputs.qView.dtype == DataType::BFloat16)
    failUsage("--output", "npy files have no bfloat16: use a .safetensors file "
                          "or --dtype float32");

  Result<problem::Measurement> measurement = [&] {
    report::Progress progress;
    return problem::measureMethod(problem->inputsOnDevice, problem->config,
                                  options.repeat, !options.noDense, progress);
  }();
  if (!measurement)
    return inTermsOfOptions(measurement.status(), *problem);

  if (!options.output.empty())
    if (Status status = writeOutput(options.output, measurement->result);
        !status)
      return Status(status).withContext("--output");
  std::vector<std::string> images;
  if (!options.maskImage.empty()) {
    auto written =
        report::writeMaskImages(options.maskImage, measurement->result.lists);
    if (!written)
      return Status(written.status()).withContext("--mask-image");
    images = *written;
  }

  if (options.json) {
    printJson(toJson(*problem, *measurement, options, images));
  } else {
    printTable(*problem, *measurement, options.repeat);
    for (const std::string &image : images)
      report::note("mask written to " + image);
    if (!options.output.empty())
      report::note("output written to " + options.output);
  }
  if (measurement->quality && std::isnan(measurement->quality->relL1))
    report::note("warning: the inputs or outputs hold NaN");
  return 0;
}

} // namespace

CommandBody addRunCommand(CLI::App &app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command = app.add_subcommand(
      "run", "Run a method and compare it with dense attention");
  command->footer(kDetails);
  addProblemOptions(*command, options->problem);
  command->add_option("--repeat", options->repeat, "Timed runs of each part")
      ->type_name("N")
      ->group("Execution")
      ->capture_default_str()
      ->check(integerBetween(1, 1000000));
  command
      ->add_flag("--no-dense", options->noDense,
                 "Do not run dense attention: no errors, recall and ms_dense")
      ->group("Execution");
  command
      ->add_option("--output", options->output,
                   "Write the result: .safetensors (o, lse, block lists) or "
                   ".npy (o)")
      ->type_name("FILE")
      ->group("Output");
  command
      ->add_option("--mask-image", options->maskImage,
                   "Draw the mask as PNG; for several heads, FILE-h0.png, "
                   "FILE-h1.png ...")
      ->type_name("FILE")
      ->group("Output");
  command->add_flag("--json", options->json, "Print JSON instead of a table")
      ->group("Output");
  return [options] { return run(*options); };
}

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// ProblemOptions.h.
#include "runtime/tools/spargejit/options/ProblemOptions.h"

#include "runtime/base/Environment.h"
#include "runtime/cache/ArtifactStore.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/StoredPlan.h"
#include "runtime/tools/spargejit/SystemProbe.h"
#include "runtime/tools/spargejit/files/FileAccess.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

void addInputOptions(CLI::App &command, ProblemOptions &options) {
  problem::InputSource &source = options.source;
  auto add = [&](const char *name, auto &value, const char *text) {
    return command.add_option(name, value, text)->group("Inputs (one of)");
  };
  add("--input", source.safetensors,
      "A .safetensors file with tensors q, k, v (F32, BF16 or F16)")
      ->type_name("FILE");
  add("--input-q", source.npyQ, "q from an .npy file (float32 or float16)")
      ->type_name("FILE");
  add("--input-k", source.npyK, "k, likewise")->type_name("FILE");
  add("--input-v", source.npyV, "v, likewise")->type_name("FILE");
  CLI::Option *synthetic =
      add("--synthetic", source.synthetic,
          "Made-up clustered, video-like q, k, v: batch, heads, tokens, head "
          "dimension")
          ->type_name("B,H,N,D");
  add("--seed", source.seed, "Seed of --synthetic")
      ->type_name("N")
      ->capture_default_str()
      ->needs(synthetic)
      ->check(integerBetween(0));
  add("--layout", options.layout,
      "Order of the files' dimensions: bhnd = [batch, heads, length, dim], "
      "bnhd = [batch, length, heads, dim]; rank 3 is without batch, rank 2 "
      "without heads")
      ->type_name("ORDER")
      ->capture_default_str()
      ->check(oneOf({"bhnd", "bnhd"}));
}

void addMethodOptions(CLI::App &command, ProblemOptions &options) {
  auto add = [&](const char *name, auto &value, const char *text) {
    return command.add_option(name, value, text)->group("Method");
  };
  add("--method", options.method,
      "Built-in name (spargejit info lists them) or a method file (.mlir)")
      ->type_name("NAME")
      ->capture_default_str();
  add("--top-k", options.topK,
      "Share of key blocks kept by rank [default: 0.03]")
      ->type_name("R")
      ->check(numberBetween(0, 1));
  add("--top-p", options.topP, "Probability mass kept [default: 0.2]")
      ->type_name("P")
      ->check(numberBetween(0, 1));
  add("--mask-block", options.maskBlock,
      "Query rows x keys of a mask block: {64,128}x{16,32,64,128}")
      ->type_name("QxKV")
      ->capture_default_str()
      ->check(maskBlockText());
  add("--block-mask", options.blockMask,
      "Mask for method block_sparse: bool .npy [batch, heads, query blocks, "
      "key "
      "blocks]; leading dimensions may be left out")
      ->type_name("FILE");
  add("--custom-source", options.customSource,
      "CUDA C++ for the stages of a method file that say code<config> "
      "(docs/your_own_selection_rule.md); for GPUs")
      ->type_name("FILE");
  add("--softmax-scale", options.softmaxScale,
      "Factor on the scores [default: 1/sqrt(head dimension)]")
      ->type_name("X")
      ->check(finiteNumber());
  add("--precision", options.precision, kPrecisionText)
      ->type_name("P")
      ->capture_default_str()
      ->check(oneOf(precisionNames()));
  command
      .add_flag("--causal", options.causal,
                "Row i sees keys up to i + kvLen - qLen only")
      ->group("Method");
}

void addExecutionOptions(CLI::App &command, ProblemOptions &options) {
  auto add = [&](const char *name, auto &value, const char *text) {
    return command.add_option(name, value, text)->group("Execution");
  };
  add("--dtype", options.dtype,
      "Type to compute in: float32, bfloat16, float16 [default: the input's; "
      "float32 for --synthetic]")
      ->type_name("T")
      ->check(oneOf({"float32", "bfloat16", "float16"}));
  add("--device", options.device,
      "cpu, or a GPU: cuda (the first one) or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->check(deviceName());
  add("--threads", options.threads, "CPU threads; 0 = all")
      ->type_name("N")
      ->capture_default_str()
      ->check(integerBetween(0, 4096));
}

void checkSource(const problem::InputSource &source) {
  int npy = !source.npyQ.empty() + !source.npyK.empty() + !source.npyV.empty();
  int sources =
      !source.safetensors.empty() + !source.synthetic.empty() + (npy > 0);
  if (sources != 1)
    failUsage("--input",
              fmt::format("expected one of --input, --synthetic or the three "
                          "--input-q, --input-k, --input-v, got {}",
                          sources == 0 ? "none" : "several"));
  if (npy == 1 || npy == 2)
    failUsage(source.npyQ.empty()   ? "--input-q"
              : source.npyK.empty() ? "--input-k"
                                    : "--input-v",
              "expected together with the other two --input-q, --input-k, "
              "--input-v");
  if (!source.synthetic.empty()) {
    auto shape = problem::parseSyntheticShape(source.synthetic);
    if (!shape)
      failUsage("--synthetic", shape.status().message());
    if ((*shape)[3] > 256 || (*shape)[3] % 8 != 0)
      failUsage("--synthetic",
                fmt::format("expected a head dimension that is a multiple of 8 "
                            "up to 256, got {}",
                            (*shape)[3]));
  }
}

/// "config.topK: x" becomes "--top-k: x".
std::string withOptionName(std::string message) {
  for (auto [field, option] : {std::pair{"config.method", "--method"},
                               {"config.topK", "--top-k"},
                               {"config.topP", "--top-p"},
                               {"config.maskBlockQ", "--mask-block"},
                               {"config.maskBlockKv", "--mask-block"},
                               {"config.precision", "--precision"},
                               {"config.softmaxScale", "--softmax-scale"},
                               {"config.blockMask", "--block-mask"},
                               {"config.customSource", "--custom-source"},
                               {"config.threads", "--threads"}}) {
    std::string_view name = field;
    if (message.starts_with(name) && message.size() > name.size() &&
        !std::isalpha(static_cast<unsigned char>(message[name.size()])))
      return option + message.substr(name.size());
  }
  return message;
}

Result<MethodPlan> planOf(const std::string &method) {
  auto text = plan::MethodLibrary().find(method);
  if (!text) {
    std::string message = withOptionName(text.status().message());
    if (text.status().code() == ErrorCode::InvalidArgument)
      throw CLI::ValidationError(message, CLI::ExitCodes::ValidationError);
    return Status(text.status().code(), message);
  }
  jit::CodeGenerator &generator = jit::builtInCodeGenerator();
  // As a call would, so that a build without a compiler has it from a pack.
  if (const auto &settings = environment(); settings.ok())
    if (auto entry = cache::ArtifactStore(*settings).find(
            plan::planKey((*text)->digest, generator.identity())))
      if (auto kept = plan::planOf(*entry); kept.ok())
        return kept;
  return generator.planMethod((*text)->text, (*text)->fileName);
}

bool usesScalar(const MethodPlan &plan, const std::string &name) {
  return std::any_of(
      plan.values.begin(), plan.values.end(), [&](const PlanValue &value) {
        return value.kind == PlanValue::Kind::Scalar && value.name == name;
      });
}

/// An option that the method would ignore is an error, not a surprise.
void checkMethodOptions(const ProblemOptions &options, const MethodPlan &plan) {
  auto unused = [&](const char *option) {
    failUsage(option, fmt::format("method {} does not use it", options.method));
  };
  if (options.topK && !usesScalar(plan, "top_k"))
    unused("--top-k");
  if (options.topP && !usesScalar(plan, "top_p"))
    unused("--top-p");
  bool takesMask = plan::takesCallerLists(plan);
  if (!options.blockMask.empty() && !takesMask)
    unused("--block-mask");
  if (options.blockMask.empty() && takesMask)
    failUsage("--block-mask",
              fmt::format("expected a mask: method {} selects nothing itself",
                          options.method));
}

void checkCustomSource(const ProblemOptions &options, const MethodPlan &plan) {
  const bool isGiven = !options.customSource.empty();
  if (isGiven && !plan.takesCustomSource())
    failUsage("--custom-source",
              fmt::format("method {} has no stage that takes it (code<config>)",
                          options.method));
  if (!isGiven && plan.takesCustomSource())
    failUsage("--custom-source",
              fmt::format("expected the CUDA C++ that method {} asks for",
                          options.method));
}

/// The whole file; a text without a character is an error.
Result<std::string> readSource(const std::string &path) {
  auto text = files::readTextFile(path);
  if (!text)
    return Status(text.status()).withContext("--custom-source");
  if (text->empty())
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("--custom-source: {}: expected a text, got an "
                              "empty file",
                              path));
  return text;
}

/// The library says "device: ..." where a device cannot be had.
Status deviceFailure(const Status &status, const std::string &device) {
  constexpr std::string_view kField = "device: ";
  std::string_view message = status.message();
  if (message.starts_with(kField))
    message.remove_prefix(kField.size());
  return Status(status.code(), fmt::format("--device: {}: {}; or use --device "
                                           "cpu",
                                           device, message));
}

Result<TuningInfo> tuningFor(const PreparedProblem &problem) {
  const problem::AttentionInputs &inputs = problem.inputsOnDevice;
  return tuningOf(inputs.qView, inputs.kView, inputs.vView, problem.config);
}

/// "nearest shape: wan-14b-480p-dense, distance 1.2 (tile_kv=128, …)".
std::string tuningText(const PreparedProblem &problem) {
  auto tuning = tuningFor(problem);
  if (!tuning)
    return "unknown";
  std::string text = matchQualityName(tuning->quality);
  if (tuning->quality == MatchQuality::Default)
    return text + ", no record fits";
  text += ": " + tuning->problem;
  if (tuning->distance > 0)
    text += fmt::format(", distance {:.2g}", tuning->distance);
  return fmt::format("{} ({})", text, tuning->config);
}

} // namespace

void addProblemOptions(CLI::App &command, ProblemOptions &options) {
  addInputOptions(command, options);
  addMethodOptions(command, options);
  addExecutionOptions(command, options);
}

Result<PreparedProblem> prepareProblem(const ProblemOptions &options) {
  checkSource(options.source);
  if (!options.source.synthetic.empty() && options.layout != kDefaultLayout)
    failUsage("--layout", "--synthetic does not use it: its order is bhnd");
  Result<MethodPlan> plan = planOf(options.method);
  const bool isMissing =
      !plan && plan.status().code() == ErrorCode::ArtifactMissing;
  if (!plan && !isMissing)
    return plan.status();

  PreparedProblem prepared;
  if (plan) {
    checkMethodOptions(options, *plan);
    checkCustomSource(options, *plan);
    prepared.usesTopK = usesScalar(*plan, "top_k");
    prepared.usesTopP = usesScalar(*plan, "top_p");
  }
  AttentionConfig &config = prepared.config;
  config.method = options.method;
  config.topK = options.topK.value_or(config.topK);
  config.topP = options.topP.value_or(config.topP);
  MaskBlock block = parseMaskBlock(options.maskBlock);
  config.maskBlockQ = block.q;
  config.maskBlockKv = block.kv;
  config.causal = options.causal;
  config.precision = precisionNamed(options.precision);
  config.softmaxScale = options.softmaxScale;
  config.threads = options.threads;
  if (!options.customSource.empty()) {
    auto text = readSource(options.customSource);
    if (!text)
      return text.status();
    config.customSource = *std::move(text);
  }

  auto layout =
      options.layout == "bhnd" ? problem::Layout::Bhnd : problem::Layout::Bnhd;
  auto inputs = problem::loadInputs(options.source, layout,
                                    problem::floatTypeFromName(options.dtype),
                                    options.threads);
  if (!inputs)
    return inputs.status();
  prepared.inputs = *std::move(inputs);
  if (config.precision != Precision::Inputs &&
      prepared.inputs.qView.dtype == DataType::Float32)
    failUsage("--dtype", fmt::format("expected bfloat16 or float16 with "
                                     "--precision {}, got float32",
                                     options.precision));
  auto there = problem::inputsOn(prepared.inputs, deviceNamed(options.device));
  if (!there)
    return deviceFailure(there.status(), options.device);
  prepared.inputsOnDevice = *std::move(there);
  if (!options.blockMask.empty()) {
    const TensorView &q = prepared.inputs.qView;
    auto mask = problem::loadBlockMask(options.blockMask, q.sizes[0],
                                       q.sizes[1], prepared.blockMask);
    if (!mask)
      return Status(mask.status()).withContext("--block-mask");
    config.blockMask = *mask;
  }
  // With the inputs known, the library names the command that makes all of it.
  if (isMissing)
    if (Status status = prepare(prepared.inputsOnDevice.qView,
                                prepared.inputsOnDevice.kView,
                                prepared.inputsOnDevice.vView, config);
        !status)
      return status;
  return prepared;
}

Status inTermsOfOptions(const Status &status, const PreparedProblem &problem) {
  const std::string &message = status.message();
  for (std::string_view tensor : {"q.", "k.", "v."})
    if (message.starts_with(tensor))
      return Status(status.code(),
                    fmt::format("{}: {}", problem.inputs.description, message));
  return Status(status.code(), withOptionName(message));
}

Json describeAsJson(const PreparedProblem &problem) {
  const problem::AttentionInputs &inputs = problem.inputs;
  const AttentionConfig &config = problem.config;
  Json json;
  json["input"] = inputs.description;
  json["method"] = config.method;
  json["shape"] = {
      {"batch", inputs.qView.sizes[0]},    {"q_heads", inputs.qView.sizes[1]},
      {"kv_heads", inputs.kView.sizes[1]}, {"q_len", inputs.qView.sizes[2]},
      {"kv_len", inputs.kView.sizes[2]},   {"head_dim", inputs.qView.sizes[3]}};
  json["dtype"] = dataTypeName(inputs.qView.dtype);
  json["mask_block"] = {config.maskBlockQ, config.maskBlockKv};
  json["causal"] = config.causal;
  json["precision"] = precisionName(config.precision);
  if (problem.usesTopK)
    json["top_k"] = config.topK;
  if (problem.usesTopP)
    json["top_p"] = config.topP;
  if (config.softmaxScale)
    json["softmax_scale"] = *config.softmaxScale;
  const Device device = problem.inputsOnDevice.qView.device;
  json["device"] = deviceText(device);
  if (device.kind == DeviceKind::Cpu)
    json["threads"] = config.threads == 0 ? processorCount() : config.threads;
  if (auto tuning = tuningFor(problem))
    json["tuning"] = {{"match", matchQualityName(tuning->quality)},
                      {"distance", tuning->distance},
                      {"problem", tuning->problem},
                      {"config", tuning->config}};
  return json;
}

std::vector<std::pair<std::string, std::string>>
describeAsText(const PreparedProblem &problem) {
  const problem::AttentionInputs &inputs = problem.inputs;
  const AttentionConfig &config = problem.config;
  const auto &q = inputs.qView.sizes;
  const auto &k = inputs.kView.sizes;
  auto plural = [](std::int64_t count, const char *noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  std::string shape =
      fmt::format("batch {}, {}, {}, head dimension {}", q[0],
                  plural(q[1], "head"), plural(q[2], "token"), q[3]);
  if (k[1] != q[1])
    shape += fmt::format(", {}", plural(k[1], "key head"));
  if (k[2] != q[2])
    shape += fmt::format(", {}", plural(k[2], "key token"));
  std::string method = config.method;
  if (problem.usesTopK)
    method += fmt::format(", top-k {:.4g} %", 100 * config.topK);
  if (problem.usesTopP)
    method += fmt::format(", top-p {:.4g}", config.topP);
  method += fmt::format(", mask block {}x{}{}", config.maskBlockQ,
                        config.maskBlockKv, config.causal ? ", causal" : "");
  if (config.precision != Precision::Inputs)
    method += fmt::format(", {}", precisionName(config.precision));
  if (config.softmaxScale)
    method += fmt::format(", softmax scale {:.6g}", *config.softmaxScale);
  const Device place = problem.inputsOnDevice.qView.device;
  std::string device = deviceText(place);
  if (place.kind == DeviceKind::Cpu)
    device +=
        ", " + plural(config.threads == 0 ? processorCount() : config.threads,
                      "thread");
  device += fmt::format(", {}", dataTypeName(inputs.qView.dtype));
  if (inputs.originalDtype != inputs.qView.dtype)
    device += fmt::format(" (input is {})", dataTypeName(inputs.originalDtype));
  return {{"input", inputs.description},
          {"shape", shape},
          {"method", method},
          {"device", device},
          {"tuning", tuningText(problem)}};
}

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// KernelOptions.h.
#include "runtime/tools/spargejit/options/KernelOptions.h"

#include "autotune/db/ShippedRecords.h"
#include "autotune/db/TuningDb.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Environment.h"
#include "runtime/base/Hash.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/plan/DefaultTuning.h"
#include "runtime/plan/MaskLists.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/QuantisedPlan.h"
#include "runtime/plan/TunedProblem.h"
#include "runtime/tools/spargejit/files/FileAccess.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>

namespace spargejit::tool {

namespace {

using ParameterMap = std::map<std::string, ParameterValue>;

CLI::Validator architecture() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        std::string_view rest = text;
        bool good = text == "host";
        if (rest.starts_with("sm_")) {
          rest.remove_prefix(3);
          std::size_t digits = 0;
          while (digits < rest.size() &&
                 std::isdigit(static_cast<unsigned char>(rest[digits])) != 0)
            ++digits;
          std::string_view suffix = rest.substr(digits);
          good = digits >= 2 && digits <= 3 &&
                 (suffix.empty() || suffix == "a" || suffix == "f");
        }
        return good ? std::string()
                    : "expected host or a GPU architecture such as sm_90a, "
                      "got " +
                          text;
      },
      "");
}

plan::ProblemClass problemClass(const KernelOptions &options) {
  MaskBlock block = parseMaskBlock(options.maskBlock);
  plan::ProblemClass kind;
  const bool isHost = options.arch == "host";
  kind.dtype = problem::floatTypeFromName(options.dtype)
                   .value_or(isHost ? DataType::Float32 : DataType::BFloat16);
  if (!isHost && kind.dtype == DataType::Float32)
    failUsage("--dtype", fmt::format("expected bfloat16 or float16 for {}, got "
                                     "float32",
                                     options.arch));
  kind.headDim = options.headDim;
  kind.maskBlockQ = block.q;
  kind.maskBlockKv = block.kv;
  kind.causal = options.causal;
  const auto &names = plan::kSelectionRowsNames;
  kind.rows = static_cast<plan::SelectionRows>(std::distance(
      names.begin(), std::find(names.begin(), names.end(), options.rows)));
  kind.hasDense = options.hasDense;
  kind.precision = precisionNamed(options.precision);
  if (kind.isEightBit() && kind.dtype == DataType::Float32)
    failUsage("--dtype", fmt::format("expected bfloat16 or float16 with "
                                     "--precision {}, got float32",
                                     options.precision));
  if (kind.isEightBit() && !isHost && kind.headDim != 64 &&
      kind.headDim != 96 && kind.headDim != 128)
    failUsage("--head-dim",
              fmt::format("expected 64, 96 or 128 with --precision {} on {}, "
                          "got {}",
                          options.precision, options.arch, kind.headDim));
  return kind;
}

/// Values for parameters of the kernels when no method says otherwise.
ParameterMap defaultParameters(const KernelOptions &options, bool hasLists,
                               bool hasPlaces) {
  ParameterMap known = plan::classParameters(
      problemClass(options), targetOf(options), hasLists, hasPlaces);
  known["keep_diagonal"] = std::int64_t{0};
  known["keep_first"] = std::int64_t{0};
  return known;
}

/// Kernels that are of eight bits alone are so without --precision.
KernelOptions withKernelPrecision(KernelOptions options,
                                  const std::string &kernel) {
  const bool isNarrow =
      kernel == "attention_fwd_fp8" || kernel.starts_with("quantise");
  if (!isNarrow)
    return options;
  if (options.precision == kDefaultPrecision)
    options.precision = precisionName(Precision::Fp8Balanced);
  if (options.dtype.empty())
    options.dtype = dataTypeName(DataType::BFloat16);
  return options;
}

ParameterValue parseParameter(const std::string &name, const std::string &text,
                              bool isDataType) {
  if (isDataType) {
    if (auto type = problem::floatTypeFromName(text))
      return *type;
    failUsage("--set", fmt::format("{}: expected float32, bfloat16 or float16, "
                                   "got {}",
                                   name, text));
  }
  std::int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    failUsage("--set",
              fmt::format("{}: expected a whole number, got {}", name, text));
  return value;
}

std::map<std::string, std::string>
splitSets(const std::vector<std::string> &sets) {
  std::map<std::string, std::string> values;
  for (const std::string &set : sets) {
    std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      failUsage("--set", fmt::format("expected name=value, got {}", set));
    values[set.substr(0, equals)] = set.substr(equals + 1);
  }
  return values;
}

/// The first sentence of the comment after the licence line, without the
/// kernel's own name before it.
std::string summaryOf(std::string_view text, const std::string &name) {
  std::string comment;
  while (text.starts_with("//")) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(2, end - 2);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" /"), line.size()));
    if (line.empty() && !comment.empty())
      break;
    if (!line.empty() && !line.starts_with("SPDX"))
      comment += std::string(line) + " ";
  }
  if (comment.starts_with(name + ": "))
    comment.erase(0, name.size() + 2);
  std::size_t end = std::min(comment.find(". "), comment.find(": "));
  return comment.substr(0, end);
}

std::string nameOf(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return std::string(
      path.substr(slash + 1, path.size() - slash - 1 - std::strlen(".mlir")));
}

Result<KernelSource> readKernelFile(const std::string &path) {
  Result<std::string> text = files::readTextFile(path);
  if (!text)
    return text.status();
  KernelSource source;
  source.kernel = std::filesystem::path(path).stem().string();
  source.fileName = path;
  source.text = *std::move(text);
  return source;
}

/// `spec` with each configuration that the records have for its class.
std::vector<KernelSpec> tunedSpecs(const KernelSource &source,
                                   const KernelSpec &spec,
                                   const KernelOptions &options) {
  if (!environment().ok())
    return {};
  static const autotune::TuningDb kRecords(
      autotune::knownRecords(*environment()));
  const plan::ProblemClass kind = problemClass(options);
  auto lists = spec.parameters.find("has_lists");
  // Records are of kernels that keep nothing.
  if (auto places = spec.parameters.find("has_places");
      places != spec.parameters.end() &&
      places->second == ParameterValue(std::int64_t{1}))
    return {};
  autotune::ProblemShape problem;
  problem.dtype = kind.dtype;
  problem.headDim = kind.headDim;
  problem.maskBlockQ = kind.maskBlockQ;
  problem.maskBlockKv = kind.maskBlockKv;
  problem.causal = kind.causal;
  const bool isSparse = lists != spec.parameters.end() &&
                        lists->second == ParameterValue(std::int64_t{1});
  problem.density = isSparse ? plan::kUnknownDensity : 1;
  autotune::TuningEnvironment environment;
  environment.target = options.arch;
  environment.kernelText = hashText(source.text).hex();
  std::vector<KernelSpec> specs;
  for (const auto &config :
       kRecords.configsOfClass(source.kernel, problem, environment)) {
    KernelSpec tuned = spec;
    for (const auto &[name, value] : config)
      if (auto it = tuned.parameters.find(name); it != tuned.parameters.end())
        it->second = value;
    specs.push_back(std::move(tuned));
  }
  return specs;
}

} // namespace

void addKernelOptions(CLI::App &command, KernelOptions &options) {
  command
      .add_option("--arch", options.arch,
                  "What to compile for: host, or a GPU such as sm_90a")
      ->type_name("ARCH")
      ->capture_default_str()
      ->check(architecture());
  command.add_option("--head-dim", options.headDim, "Head dimension")
      ->type_name("D")
      ->capture_default_str()
      ->check(headDimension());
  command
      .add_option("--dtype", options.dtype,
                  "Type of q, k, v and o: float32, bfloat16, float16 "
                  "[default: float32; bfloat16 for a GPU]")
      ->type_name("T")
      ->check(oneOf({"float32", "bfloat16", "float16"}));
  command
      .add_option("--mask-block", options.maskBlock,
                  "Query rows x keys of a mask block: {64,128}x{16,32,64,128}")
      ->type_name("QxKV")
      ->capture_default_str()
      ->check(maskBlockText());
  command.add_flag("--causal", options.causal, "Token-exact causal mask");
  command.add_option("--precision", options.precision, kPrecisionText)
      ->type_name("P")
      ->capture_default_str()
      ->check(oneOf(precisionNames()));
  command
      .add_option("--rows", options.rows,
                  "Rows of blocks that selection is for: many (2048 and more, "
                  "128 a head, of at most 768 key blocks, head dimension 128), "
                  "long (more than 6144 key blocks, 5120 beyond a head "
                  "dimension of 128) or usual")
      ->type_name("usual|many|long")
      ->capture_default_str()
      ->check(oneOf({plan::kSelectionRowsNames.begin(),
                     plan::kSelectionRowsNames.end()}));
  command.add_flag("--dense-tokens", options.hasDense,
                   "For calls with denseKeys or denseRows");
  command
      .add_option(
          "--set", options.sets,
          "Value of a kernel parameter, for example tile_kv=128; may be "
          "repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

Target targetOf(const KernelOptions &options) {
  if (options.arch == "host")
    return jit::builtInCodeGenerator().hostTarget();
  Target target;
  target.architecture = options.arch;
  return target;
}

std::string kernelFolder(const std::string &arch) {
  if (arch == "host")
    return "kernels/portable/";
  // The suffix of sm_90a is part of the target, not of the folder's name.
  std::string digits = arch.substr(std::strlen("sm_"));
  while (std::isdigit(static_cast<unsigned char>(digits.back())) == 0)
    digits.pop_back();
  return "kernels/sm" + digits + "/";
}

Result<KernelSource> findKernel(const std::string &kernel,
                                const std::string &arch) {
  if (kernel.ends_with(".mlir")) {
    auto source = readKernelFile(kernel);
    if (source && source->text.find("sparge.method") != std::string::npos &&
        source->text.find("tile.kernel") == std::string::npos)
      failUsage("KERNEL",
                fmt::format("{} holds a method, not a kernel: expected "
                            "method:{}",
                            kernel, kernel));
    return source;
  }
  std::string folder = kernelFolder(arch);
  std::string path = folder + kernel + ".mlir";
  if (const auto *text = kernels_ir::findEmbeddedText(path))
    return KernelSource{kernel, path, std::string(text->text)};
  std::vector<std::string> names;
  for (const TextSummary &text : listTexts(folder))
    names.push_back(text.name);
  if (names.empty())
    failUsage("--arch", fmt::format("there are no kernels for {}", arch));
  failUsage("KERNEL",
            fmt::format("expected one of {} (for {}), or the path of an .mlir "
                        "file, got {}",
                        fmt::join(names, ", "), arch, kernel));
}

bool hasKernel(const std::string &kernel, const std::string &arch) {
  return kernels_ir::findEmbeddedText(kernelFolder(arch) + kernel + ".mlir") !=
         nullptr;
}

Result<KernelSpec> makeSpec(const KernelSource &source,
                            const KernelOptions &given) {
  const KernelOptions options = withKernelPrecision(given, source.kernel);
  auto parameters = jit::builtInCodeGenerator().listKernelParameters(
      source.text, source.fileName, source.kernel);
  if (!parameters)
    return parameters.status();
  std::map<std::string, std::string> sets = splitSets(options.sets);
  auto lists = sets.find("has_lists"), places = sets.find("has_places");
  ParameterMap known =
      defaultParameters(options, lists == sets.end() || lists->second != "0",
                        places != sets.end() && places->second != "0");
  KernelSpec spec;
  spec.kernel = source.kernel;
  spec.target = targetOf(options);
  std::vector<std::string> names;
  for (const compiler::KernelParameter &parameter : *parameters) {
    names.push_back(parameter.name);
    if (auto set = sets.extract(parameter.name)) {
      spec.parameters[parameter.name] =
          parseParameter(parameter.name, set.mapped(), parameter.isDataType);
      continue;
    }
    auto value = known.find(parameter.name);
    if (value == known.end() ||
        parameter.isDataType != std::holds_alternative<DataType>(value->second))
      failUsage("--set", fmt::format("kernel {} needs a value: expected --set "
                                     "{}=…",
                                     source.kernel, parameter.name));
    spec.parameters.insert(*value);
  }
  if (!sets.empty())
    failUsage("--set",
              fmt::format("kernel {} has no parameter {}: expected one of {}",
                          source.kernel, sets.begin()->first,
                          fmt::join(names, ", ")));
  return spec;
}

Result<std::vector<MethodKernel>>
kernelsOfMethod(const std::string &method, const KernelOptions &options) {
  jit::CodeGenerator &generator = jit::builtInCodeGenerator();
  auto text = plan::MethodLibrary().find(method);
  if (!text)
    return text.status();
  Result<MethodPlan> plan =
      generator.planMethod((*text)->text, (*text)->fileName);
  if (!plan)
    return plan.status();
  if (problemClass(options).isEightBit()) {
    if (plan->isBackward())
      failUsage("--precision", fmt::format("expected inputs for {}, since no "
                                           "kernel of gradients reads eight "
                                           "bits, got {}",
                                           method, options.precision));
    plan = plan::withForm(*plan, plan::PlanForm::Rounding);
  }
  std::vector<MethodKernel> kernels;
  for (const PlanLaunch &launch : plan->launches) {
    if (!hasKernel(launch.kernel, options.arch))
      return Status(ErrorCode::Unsupported,
                    fmt::format("method {} needs kernel {}, which there is not "
                                "for {}",
                                method, launch.kernel, options.arch));
    Result<KernelSource> source = findKernel(launch.kernel, options.arch);
    if (!source)
      return source.status();
    auto parameters = generator.listKernelParameters(
        source->text, source->fileName, source->kernel);
    if (!parameters)
      return parameters.status();
    Result<KernelSpec> spec = plan::specialiseLaunch(
        *plan, launch, problemClass(options), targetOf(options), *parameters);
    if (!spec)
      return spec.status();
    for (KernelSpec &tuned : tunedSpecs(*source, *spec, options))
      kernels.push_back({*source, std::move(tuned), true});
    kernels.push_back({*std::move(source), *std::move(spec)});
  }
  // A mask of the call is made into lists by a kernel of its own.
  KernelSpec lists = plan::maskListsSpec(targetOf(options));
  if (plan::takesCallerLists(*plan) && hasKernel(lists.kernel, options.arch)) {
    Result<KernelSource> source = findKernel(lists.kernel, options.arch);
    if (!source)
      return source.status();
    kernels.push_back({*std::move(source), std::move(lists)});
  }
  return kernels;
}

std::vector<TextSummary> listTexts(const std::string &folder) {
  std::vector<TextSummary> summaries;
  for (const kernels_ir::EmbeddedText &text : kernels_ir::embeddedTexts())
    if (text.path.starts_with(folder) && text.path.ends_with(".mlir")) {
      std::string name = nameOf(text.path);
      summaries.push_back(
          {name, std::string(text.path), summaryOf(text.text, name)});
    }
  return summaries;
}

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// `spargejit dump`: the text of one stage of a kernel's compilation, a method
// with its plan, or the list of what there is.
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/jit/AssemblyReport.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/jit/DisassembleCubin.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/QuantisedPlan.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/options/KernelOptions.h"
#include "runtime/tools/spargejit/report/TextTable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>

namespace spargejit::tool {

namespace {

constexpr const char *kDetails = R"(Stages:
  input       the kernel's text as stored
  specialise  sizes, types and flags fixed
  tile        loops over tiles, tuning applied
  lower       the target's dialects
  emit        LLVM IR
  asm         assembly, or PTX for a GPU (ptx is the same)
GPU only, by a CUDA toolkit's programs where they are found:
  sass        machine code (ptxas, then nvdisasm or cuobjdump)
  report      what ptxas says of registers, spills, stack and shared memory

Examples:
  spargejit dump --list
  spargejit dump attention_fwd --head-dim 64 --dtype bfloat16 --stage specialise
  spargejit dump attention_fwd --set tile_kv=128 --set has_lists=0 --stage asm
  spargejit dump my_kernel.mlir --stage lower
  spargejit dump attention_fwd --arch sm_90a --dtype bfloat16 --stage report
  spargejit dump method:spargeattention2)";

constexpr const char *kSass = "sass";
constexpr const char *kReport = "report";

constexpr std::array<std::pair<const char *, compiler::Stage>, 7> kStages = {{
    {"input", compiler::Stage::Input},
    {"specialise", compiler::Stage::Specialise},
    {"tile", compiler::Stage::Tile},
    {"lower", compiler::Stage::Lower},
    {"emit", compiler::Stage::Emit},
    {"asm", compiler::Stage::Assembly},
    {"ptx", compiler::Stage::Assembly},
}};

struct DumpOptions {
  std::string kernel;
  KernelOptions kernelOptions;
  std::string stage = "emit";
  bool list = false;
};

void printList() {
  std::vector<std::vector<std::string>> rows;
  for (const TextSummary &text : listTexts("kernels/"))
    rows.push_back({text.name, text.path, text.summary});
  rows.emplace_back();
  for (const TextSummary &text : listTexts("methods/"))
    rows.push_back({"method:" + text.name, text.path, text.summary});
  fmt::print("{}", report::formatGrid(rows));
}

/// A value of a plan as a reader of the method would call it.
std::string valueName(const MethodPlan &plan, int index) {
  const PlanValue &value = plan.values[static_cast<std::size_t>(index)];
  switch (value.kind) {
  case PlanValue::Kind::Query:
    return "q";
  case PlanValue::Kind::Key:
    return "k";
  case PlanValue::Kind::Value:
    return "v";
  case PlanValue::Kind::PooledQuery:
    return fmt::format("pooled_q#{}", index);
  case PlanValue::Kind::PooledKey:
    return fmt::format("pooled_k#{}", index);
  case PlanValue::Kind::Lists:
    return fmt::format("lists#{}", index);
  case PlanValue::Kind::CallerLists:
    return "caller_lists";
  case PlanValue::Kind::Output:
    return "o";
  case PlanValue::Kind::Lse:
    return "lse";
  case PlanValue::Kind::DOutput:
    return "d_o";
  case PlanValue::Kind::DLse:
    return "d_lse";
  case PlanValue::Kind::Delta:
    return fmt::format("delta#{}", index);
  case PlanValue::Kind::Places:
    return fmt::format("places#{}", index);
  case PlanValue::Kind::Unkept:
    return fmt::format("unkept#{}", index);
  case PlanValue::Kind::Kept:
    return fmt::format("kept#{}", index);
  case PlanValue::Kind::KeyLists:
    return fmt::format("key_lists#{}", index);
  case PlanValue::Kind::DQuery:
    return "d_q";
  case PlanValue::Kind::DKey:
    return "d_k";
  case PlanValue::Kind::DValue:
    return "d_v";
  case PlanValue::Kind::QuantisedQuery:
    return "q8";
  case PlanValue::Kind::QuantisedKey:
    return "k8";
  case PlanValue::Kind::QuantisedValue:
    return "v8";
  case PlanValue::Kind::RoundingPeaks:
    return "peaks";
  case PlanValue::Kind::Saturated:
    return "saturated";
  case PlanValue::Kind::QueryFactors:
    return "q_factors";
  case PlanValue::Kind::KeyFactors:
    return "k_factors";
  case PlanValue::Kind::ValueFactors:
    return "v_factors";
  case PlanValue::Kind::ValueScales:
    return "v_scales";
  case PlanValue::Kind::Scalar:
    return value.name;
  case PlanValue::Kind::Constant:
    return fmt::format("{}", value.constant);
  }
  return "";
}

void printPlan(const MethodPlan &plan) {
  fmt::print("// plan of {}: {} launch{}\n", plan.name, plan.launches.size(),
             plan.launches.size() == 1 ? "" : "es");
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const PlanLaunch &launch = plan.launches[i];
    std::vector<std::string> arguments;
    for (const PlanArgument &argument : launch.arguments)
      arguments.push_back(fmt::format("{} = {}", argument.name,
                                      valueName(plan, argument.value)));
    std::string parameters;
    for (const auto &[name, value] : launch.parameters)
      parameters += fmt::format(" {}={}", name, value);
    fmt::print("//   {}. {}({}){}\n", i + 1, launch.kernel,
               fmt::join(arguments, ", "),
               parameters.empty() ? "" : " with" + parameters);
  }
}

Result<int> dumpMethod(const std::string &name, Precision precision) {
  auto text = plan::MethodLibrary().find(name);
  if (!text && text.status().code() == ErrorCode::InvalidArgument) {
    std::vector<std::string> names = plan::MethodLibrary().names();
    failUsage("KERNEL",
              fmt::format("method: expected one of {}, or the path of "
                          "a method file (.mlir), got {}",
                          fmt::join(names, ", "), name));
  }
  if (!text)
    return text.status();
  Result<MethodPlan> plan =
      jit::builtInCodeGenerator().planMethod((*text)->text, (*text)->fileName);
  if (!plan)
    return plan.status();
  if (precision != Precision::Inputs && !plan->isBackward())
    plan = plan::withForm(*plan, plan::PlanForm::Rounding);
  fmt::print("{}{}\n", (*text)->text,
             (*text)->text.ends_with('\n') ? "" : "\n");
  printPlan(*plan);
  return 0;
}

compiler::Stage stageNamed(const std::string &name) {
  for (const auto &[stageName, stage] : kStages)
    if (name == stageName)
      return stage;
  return compiler::Stage::Emit;
}

void print(const std::string &text) {
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
}

/// What becomes of a GPU kernel's PTX: its SASS, or the assembler's report.
Result<int> dumpAssembled(const KernelArtifact &artifact,
                          const std::string &stage) {
  const Result<Environment> &settings = environment();
  if (!settings)
    return settings.status();
  auto ptxas = jit::findPtxas(*settings);
  if (!ptxas)
    return Status(ptxas.status()).withContext("--stage: " + stage);
  auto code = jit::assembleWithPtxas(*ptxas, artifact.code,
                                     artifact.target.architecture,
                                     artifact.launch.assemblerLevel);
  if (!code)
    return code.status();
  if (!code->failure.empty())
    return Status(
        ErrorCode::CompileFailed,
        fmt::format("{} {}:\n{}", code->command, code->failure, code->log));
  if (stage == kReport) {
    const jit::AssemblyReport report = jit::parseAssemblerLog(code->log);
    print(jit::describeReport(report));
    std::vector<std::string> remarks = jit::faultsOf(report);
    remarks.insert(remarks.end(), report.warnings.begin(),
                   report.warnings.end());
    for (const std::string &remark : remarks)
      print(remark);
    return remarks.empty() ? 0 : 1;
  }
  auto program = jit::findDisassembler(*settings, *ptxas);
  if (!program)
    return Status(program.status()).withContext("--stage: " + stage);
  auto text = jit::disassembleCubin(*program, code->cubin);
  if (!text)
    return text.status();
  print(*text);
  return 0;
}

Result<int> dump(const DumpOptions &options) {
  if (options.list) {
    printList();
    return 0;
  }
  if (options.kernel.empty())
    failUsage("KERNEL", "expected a kernel, method:NAME or --list");
  const std::string methodPrefix = "method:";
  if (options.kernel.starts_with(methodPrefix))
    return dumpMethod(options.kernel.substr(methodPrefix.size()),
                      precisionNamed(options.kernelOptions.precision));

  Result<KernelSource> source =
      findKernel(options.kernel, options.kernelOptions.arch);
  if (!source)
    return source.status();
  Result<KernelSpec> spec = makeSpec(*source, options.kernelOptions);
  if (!spec)
    return spec.status();
  const std::string &architecture = options.kernelOptions.arch;
  const bool assembled = options.stage == kSass || options.stage == kReport;
  if ((assembled || options.stage == "ptx") && architecture == "host")
    failUsage("--stage", fmt::format("{}: expected --arch of a GPU, got host",
                                     options.stage));
  jit::CodeGenerator &generator = jit::builtInCodeGenerator();
  if (assembled) {
    auto artifact =
        generator.compileKernel(source->text, source->fileName, *spec);
    return artifact.ok() ? dumpAssembled(*artifact, options.stage)
                         : Result<int>(artifact.status());
  }
  Result<std::string> text = generator.dumpKernel(
      source->text, source->fileName, *spec, stageNamed(options.stage));
  if (!text)
    return text.status();
  print(*text);
  return 0;
}

} // namespace

CommandBody addDumpCommand(CLI::App &app) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App *command = app.add_subcommand(
      "dump", "Print the text of one stage of a kernel, or a method's plan");
  command->footer(kDetails);
  command
      ->add_option("KERNEL", options->kernel,
                   "A kernel's name, the path of a kernel file (.mlir), or "
                   "method:NAME")
      ->type_name("");
  addKernelOptions(*command, options->kernelOptions);
  std::vector<std::string> names;
  for (const auto &[name, stage] : kStages)
    names.emplace_back(name);
  names.insert(names.end(), {kSass, kReport});
  command
      ->add_option("--stage", options->stage,
                   "input, specialise, tile, lower, emit, asm (ptx), sass or "
                   "report")
      ->type_name("STAGE")
      ->capture_default_str()
      ->check(oneOf(names));
  command->add_flag("--list", options->list, "List kernels and methods");
  return [options] { return dump(*options); };
}

} // namespace spargejit::tool

// SPDX-License-Identifier: Apache-2.0
//
// `spargejit compile`: writes kernels into a pack, one folder each with the
// code and a manifest that says what it is and how it is launched.
#include "autotune/db/ProblemLists.h"
#include "runtime/plan/AttentionProblem.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/TunedProblem.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/PackWriter.h"
#include "runtime/tools/spargejit/options/KernelOptions.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/Progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

namespace spargejit::tool {

namespace {

constexpr const char *kDetails =
    R"(DIR becomes a pack: point SPARGEJIT_PACK at it, and kernels come from there,
also in a build without the compiler. Each kernel is a folder DIR/<kernel>-<key>
with
  kernel.o, kernel.ptx or kernel.cubin   the code
  manifest.json   parameters, target, arguments, launch, digest
Beside them are the methods' plans and an index. A later run adds to a pack.

all compiles every kernel that the built-in methods need for the given head
dimension, dtype, mask block and --causal; method:NAME those of one method; --backward adds
those of the gradients.
--problems takes these from a list of models' workloads. GPU kernels need a
ptxas program, but no GPU.

Examples:
  spargejit compile all --head-dim 128 --dtype bfloat16 -o pack
  spargejit compile all --arch sm_90a --problems wan -o pack
  spargejit compile method:topk --mask-block 128x16 -o pack
  spargejit compile attention_fwd --set tile_kv=128 -o pack)";

struct CompileOptions {
  std::string kernel;
  KernelOptions kernelOptions;
  std::vector<std::string> problems;
  std::string folder;
  bool backward = false;
  bool keepPtx = false;
  bool json = false;
};

/// The built-in methods that the request names, and the backward passes where
/// they are wanted; none for a single kernel.
std::vector<std::string> methodsOf(const CompileOptions &options) {
  const std::string methodPrefix = "method:";
  std::vector<std::string> methods;
  if (options.kernel == "all")
    methods = plan::MethodLibrary().names();
  else if (options.kernel.starts_with(methodPrefix))
    methods = {options.kernel.substr(methodPrefix.size())};
  if (options.backward && !methods.empty())
    methods.insert(methods.end(), {"backward/block_sparse", "backward/dense"});
  // The CPU's passes keep nothing.
  if (options.backward && !methods.empty() &&
      options.kernelOptions.arch.starts_with("sm_"))
    methods.emplace_back("backward/block_sparse_kept");
  return methods;
}

/// The options of each class of problems that is asked for.
Result<std::vector<KernelOptions>> classesOf(const CompileOptions &options) {
  if (options.problems.empty())
    return std::vector<KernelOptions>{options.kernelOptions};
  std::vector<KernelOptions> classes;
  std::set<std::string> seen;
  for (const std::string &list : options.problems) {
    auto problems = autotune::problemList(list);
    if (!problems)
      failUsage("--problems", problems.status().message());
    for (const autotune::ProblemShape &problem : *problems) {
      KernelOptions kind = options.kernelOptions;
      kind.dtype = dataTypeName(problem.dtype);
      kind.headDim = problem.headDim;
      kind.maskBlock =
          fmt::format("{}x{}", problem.maskBlockQ, problem.maskBlockKv);
      kind.causal = kind.causal || problem.causal;
      kind.rows = plan::kSelectionRowsNames[static_cast<std::size_t>(
          plan::classOf(problem).rows)];
      if (seen.insert(fmt::format("{} {} {} {} {}", kind.dtype, kind.headDim,
                                  kind.maskBlock, kind.causal, kind.rows))
              .second)
        classes.push_back(std::move(kind));
    }
  }
  return classes;
}

/// The kernels of one class of problems; notes what does not exist.
Result<std::vector<MethodKernel>> kernelsFor(const CompileOptions &options,
                                             const KernelOptions &kind) {
  const std::vector<std::string> methods = methodsOf(options);
  std::vector<MethodKernel> kernels;
  if (methods.empty()) {
    Result<KernelSource> source = findKernel(options.kernel, kind.arch);
    if (!source)
      return source.status();
    Result<KernelSpec> spec = makeSpec(*source, kind);
    if (!spec)
      return spec.status();
    kernels.push_back({*std::move(source), *std::move(spec)});
    return kernels;
  }
  if (!kind.sets.empty())
    failUsage("--set", "expected with a single kernel only, got it with " +
                           options.kernel);
  for (const std::string &method : methods) {
    auto ofMethod = kernelsOfMethod(method, kind);
    // All means all that there are.
    if (options.kernel == "all" && !ofMethod &&
        ofMethod.status().code() == ErrorCode::Unsupported) {
      report::note("left out: " + ofMethod.status().message());
      continue;
    }
    if (!ofMethod)
      return ofMethod.status();
    kernels.insert(kernels.end(), ofMethod->begin(), ofMethod->end());
  }
  return kernels;
}

void printResult(const CompileOptions &options, const PackWriter &writer) {
  if (writer.lacksAssembler())
    report::note("no ptxas program was found (SPARGEJIT_PTXAS, PATH): the "
                 "kernels are PTX, which the driver assembles when it loads "
                 "them");
  if (options.json) {
    printJson(
        {{"pack", options.folder}, {"artifacts", writer.kernelFolders()}});
    return;
  }
  for (const std::string &folder : writer.kernelFolders())
    fmt::print("{}\n", folder);
}

Result<int> compile(const CompileOptions &options) {
  auto classes = classesOf(options);
  if (!classes)
    return classes.status();
  std::vector<MethodKernel> kernels;
  for (const KernelOptions &kind : *classes) {
    auto ofClass = kernelsFor(options, kind);
    if (!ofClass)
      return ofClass.status();
    kernels.insert(kernels.end(), ofClass->begin(), ofClass->end());
  }
  auto writer = PackWriter::open(
      options.folder, targetOf(options.kernelOptions), options.keepPtx);
  if (!writer)
    return writer.status();
  report::Progress progress;
  progress.expect(static_cast<double>(kernels.size()));
  for (const MethodKernel &kernel : kernels) {
    progress.step("compiling " + kernel.spec.kernel, 1);
    Status status = writer->add(kernel);
    if (!status && kernel.isAdvised &&
        status.code() == ErrorCode::CompileFailed) {
      report::note("left out, though a tuning record advises it: " +
                   status.message());
      continue;
    }
    if (!status)
      return status;
  }
  for (const std::string &method : methodsOf(options))
    if (Status status = writer->addPlan(method); !status)
      return status;
  progress.finish();
  if (Status status = writer->finish(); !status)
    return status;
  printResult(options, *writer);
  return 0;
}

} // namespace

CommandBody addCompileCommand(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App *command = app.add_subcommand(
      "compile",
      "Write kernels into a pack, for machines without the compiler");
  command->footer(kDetails);
  command
      ->add_option("KERNEL", options->kernel,
                   "A kernel's name, the path of a kernel file (.mlir), "
                   "method:NAME, or all")
      ->type_name("")
      ->required();
  addKernelOptions(*command, options->kernelOptions);
  command
      ->add_option(
          "--problems", options->problems,
          fmt::format("Head dimensions, dtypes and mask blocks of the lists "
                      "or names in them: {}",
                      fmt::join(autotune::problemListNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',');
  command->add_flag("--backward", options->backward,
                    "Also what backward passes need");
  command->add_flag("--keep-ptx", options->keepPtx,
                    "Leave GPU kernels as PTX text");
  command->add_option("-o,--output", options->folder, "Folder to write to")
      ->type_name("DIR")
      ->required();
  command->add_flag("--json", options->json, "Print JSON instead of lines");
  return [options] { return compile(*options); };
}

} // namespace spargejit::tool

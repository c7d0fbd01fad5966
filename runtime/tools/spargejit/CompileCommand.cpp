// SPDX-License-Identifier: Apache-2.0
//
// `spargejit compile`: writes kernels as artifacts, one folder each with the
// object or PTX and a manifest that says what it is and how it is launched.
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/cache/KernelKey.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/tools/spargejit/Commands.h"
#include "runtime/tools/spargejit/files/FileAccess.h"
#include "runtime/tools/spargejit/options/KernelOptions.h"
#include "runtime/tools/spargejit/report/Note.h"
#include "runtime/tools/spargejit/report/Progress.h"
#include "spargejit/library.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

namespace spargejit::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kManifestVersion = 1;

constexpr const char *kDetails =
    R"(Each kernel becomes a folder DIR/<kernel>-<key> with
  kernel.o or kernel.ptx   the code
  manifest.json            parameters, target, arguments, launch, digest

all compiles every kernel that the built-in methods need for the given head
dimension, dtype, mask block and --causal; method:NAME those of one method.

Examples:
  spargejit compile all --head-dim 128 --dtype bfloat16 -o artifacts
  spargejit compile method:topk --mask-block 128x16 -o artifacts
  spargejit compile attention_fwd --set tile_kv=128 -o artifacts)";

struct CompileOptions {
  std::string kernel;
  KernelOptions kernelOptions;
  std::string folder;
  bool json = false;
};

const char *kindName(KernelArgument::Kind kind) {
  switch (kind) {
  case KernelArgument::Kind::Tensor:
    return "tensor";
  case KernelArgument::Kind::Index:
    return "index";
  case KernelArgument::Kind::Float:
    return "float";
  }
  return "";
}

/// What only GPU kernels have.
void addGpuLaunch(const LaunchInfo &launch, Json &json) {
  json["threads"] = launch.threads;
  json["shared_bytes"] = launch.sharedBytes;
  json["persistent"] = launch.persistent;
  json["tensor_maps"] = Json::array();
  for (const TensorMap &map : launch.tensorMaps)
    json["tensor_maps"].push_back(
        {{"argument", map.argument},
         {"element_type", dataTypeName(map.elementType)},
         {"box_rows", map.boxRows},
         {"box_columns", map.boxColumns},
         {"swizzle_bytes", map.swizzleBytes}});
}

Json launchAsJson(const LaunchInfo &launch) {
  Json arguments = Json::array();
  for (const KernelArgument &argument : launch.arguments)
    arguments.push_back({{"name", argument.name},
                         {"kind", kindName(argument.kind)},
                         {"rank", argument.rank},
                         {"first_slot", argument.firstSlot}});
  Json dynamic = Json::array();
  for (const DynamicScratch &scratch : launch.dynamicScratch)
    dynamic.push_back({{"bytes_per_column", scratch.bytesPerColumn},
                       {"columns_multiple", scratch.columnsMultiple},
                       {"columns_slot", scratch.columnsSlot}});
  return {{"entry", launch.entryName},
          {"arguments", arguments},
          {"grid_argument", launch.gridArgument},
          {"grid_tile", launch.gridTile},
          {"static_scratch_bytes", launch.staticScratchBytes},
          {"dynamic_scratch", dynamic}};
}

Json manifestOf(const MethodKernel &kernel, const cache::KernelKey &key,
                const KernelArtifact &artifact, const std::string &fileName) {
  Json launch = launchAsJson(artifact.launch);
  if (!artifact.target.isHost())
    addGpuLaunch(artifact.launch, launch);
  Json parameters = Json::object();
  for (const auto &[name, value] : kernel.spec.parameters)
    parameters[name] = cache::parameterText(value);
  return {{"manifest_version", kManifestVersion},
          {"kernel", kernel.spec.kernel},
          {"key", key.hex()},
          {"spargejit", version()},
          {"code_generator", jit::builtInCodeGenerator().identity()},
          {"target",
           {{"architecture", artifact.target.architecture},
            {"cpu", artifact.target.cpu},
            {"features", artifact.target.features}}},
          {"parameters", parameters},
          {"launch", launch},
          {"file", fileName},
          {"bytes", artifact.code.size()},
          {"xxh3_128", hashText(artifact.code).hex()}};
}

/// Compiles one kernel and writes its folder; returns the folder's path.
Result<std::string> writeArtifact(const MethodKernel &kernel,
                                  const cache::KernelKey &key,
                                  const std::string &folder) {
  Result<KernelArtifact> artifact = jit::builtInCodeGenerator().compileKernel(
      kernel.source.text, kernel.source.fileName, kernel.spec);
  if (!artifact)
    return Status(artifact.status())
        .withContext(cache::describeSpec(kernel.spec));
  std::filesystem::path place =
      std::filesystem::path(folder) /
      fmt::format("{}-{}", kernel.spec.kernel, key.hex());
  std::error_code failure;
  std::filesystem::create_directories(place, failure);
  if (failure)
    return Status(ErrorCode::IoError,
                  fmt::format("-o: {}: {}", place.string(), failure.message()));
  std::string fileName = artifact->target.isHost() ? "kernel.o" : "kernel.ptx";
  Json manifest = manifestOf(kernel, key, *artifact, fileName);
  for (const auto &[name, text] :
       {std::pair<std::string, std::string>{fileName, artifact->code},
        {"manifest.json",
         manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"}})
    if (Status status = files::writeTextFile((place / name).string(), text);
        !status)
      return Status(status).withContext("-o");
  return place.string();
}

Result<std::vector<MethodKernel>> kernelsFor(const CompileOptions &options) {
  const std::string methodPrefix = "method:";
  std::vector<std::string> methods;
  if (options.kernel == "all")
    methods = plan::MethodLibrary().names();
  else if (options.kernel.starts_with(methodPrefix))
    methods = {options.kernel.substr(methodPrefix.size())};
  std::vector<MethodKernel> kernels;
  if (methods.empty()) {
    Result<KernelSource> source =
        findKernel(options.kernel, options.kernelOptions.arch);
    if (!source)
      return source.status();
    Result<KernelSpec> spec = makeSpec(*source, options.kernelOptions);
    if (!spec)
      return spec.status();
    kernels.push_back({*std::move(source), *std::move(spec)});
    return kernels;
  }
  if (!options.kernelOptions.sets.empty())
    failUsage("--set", "expected with a single kernel only, got it with " +
                           options.kernel);
  for (const std::string &method : methods) {
    auto ofMethod = kernelsOfMethod(method, options.kernelOptions);
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

Result<int> compile(const CompileOptions &options) {
  Result<std::vector<MethodKernel>> kernels = kernelsFor(options);
  if (!kernels)
    return kernels.status();
  report::Progress progress;
  progress.expect(static_cast<double>(kernels->size()));
  std::set<std::string> written;
  std::vector<std::string> folders;
  for (const MethodKernel &kernel : *kernels) {
    progress.step("compiling " + kernel.spec.kernel, 1);
    cache::KernelKey key =
        cache::KernelKey::of(kernel.spec, kernel.source.text,
                             jit::builtInCodeGenerator().identity());
    if (!written.insert(key.hex()).second)
      continue;
    Result<std::string> folder = writeArtifact(kernel, key, options.folder);
    if (!folder)
      return folder.status();
    folders.push_back(*folder);
  }
  progress.finish();
  if (options.json)
    printJson({{"artifacts", folders}});
  else
    for (const std::string &folder : folders)
      fmt::print("{}\n", folder);
  return 0;
}

} // namespace

CommandBody addCompileCommand(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App *command = app.add_subcommand(
      "compile", "Write kernels as artifacts for builds without the compiler");
  command->footer(kDetails);
  command
      ->add_option("KERNEL", options->kernel,
                   "A kernel's name, the path of a kernel file (.mlir), "
                   "method:NAME, or all")
      ->type_name("")
      ->required();
  addKernelOptions(*command, options->kernelOptions);
  command->add_option("-o,--output", options->folder, "Folder to write to")
      ->type_name("DIR")
      ->required();
  command->add_flag("--json", options->json, "Print JSON instead of lines");
  return [options] { return compile(*options); };
}

} // namespace spargejit::tool

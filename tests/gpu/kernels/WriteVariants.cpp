// SPDX-License-Identifier: Apache-2.0
//
// write_variants FILE FOLDER [KERNEL]: compiles the Hopper forward kernel, or
// the text in the file KERNEL, once for each line "NAME key=value …" of FILE
// (all the kernel's parameters, kernel=NAME where it is not attention_fwd, and
// features=racecheck for that tool) and writes NAME.ptx and NAME.json, which
// check_variants, check_backward and check_quantised read. Needs no GPU.
#include "compiler/Driver/CompileKernel.h"
#include "kernels_ir/embed/EmbeddedTexts.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace spargejit;

namespace {

KernelSpec specFromLine(std::istringstream &words) {
  KernelSpec spec;
  spec.kernel = "attention_fwd";
  spec.target.architecture = "sm_90a";
  for (std::string word; words >> word;) {
    std::size_t equals = word.find('=');
    std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "kernel")
      spec.kernel = value;
    else if (key == "features")
      spec.target.features = value;
    else if (value == "bfloat16")
      spec.parameters[key] = DataType::BFloat16;
    else if (value == "float16")
      spec.parameters[key] = DataType::Float16;
    else if (value == "float32")
      spec.parameters[key] = DataType::Float32;
    else
      spec.parameters[key] = static_cast<std::int64_t>(std::stoll(value));
  }
  return spec;
}

nlohmann::json describe(const KernelSpec &spec, const LaunchInfo &launch) {
  nlohmann::json json;
  json["entry"] = launch.entryName;
  json["threads"] = launch.threads;
  json["shared_bytes"] = launch.sharedBytes;
  json["members"] = launch.members;
  json["grid_tile"] = launch.gridTile;
  json["grid_argument"] = launch.gridArgument;
  json["persistent"] = launch.persistent;
  json["ctas_per_multiprocessor"] = launch.ctasPerMultiprocessor;
  for (const KernelArgument &argument : launch.arguments)
    json["arguments"].push_back(argument.name);
  for (const DynamicScratch &scratch : launch.dynamicScratch)
    json["dynamic_shared"].push_back({{"column_bytes", scratch.bytesPerColumn},
                                      {"multiple", scratch.columnsMultiple},
                                      {"slot", scratch.columnsSlot}});
  for (const TensorMap &map : launch.tensorMaps)
    json["tensor_maps"].push_back({{"argument", map.argument},
                                   {"box_rows", map.boxRows},
                                   {"box_columns", map.boxColumns},
                                   {"swizzle_bytes", map.swizzleBytes}});
  for (const auto &[key, value] : spec.parameters) {
    if (std::holds_alternative<DataType>(value))
      json["parameters"][key] = dataTypeName(std::get<DataType>(value));
    else
      json["parameters"][key] = std::get<std::int64_t>(value);
  }
  return json;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: write_variants FILE FOLDER [KERNEL]\n");
    return 2;
  }
  std::string path = argc == 4 ? argv[3] : "kernels/sm90/attention_fwd.mlir";
  std::string text;
  if (argc == 4) {
    std::stringstream contents;
    contents << std::ifstream(path).rdbuf();
    text = contents.str();
  } else if (auto *embedded = kernels_ir::findEmbeddedText(path)) {
    text = embedded->text;
  }
  if (text.empty()) {
    std::fprintf(stderr, "%s: expects a kernel's text, got none\n",
                 path.c_str());
    return 1;
  }
  std::ifstream lines(argv[1]);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name[0] == '#')
      continue;
    KernelSpec spec = specFromLine(words);
    Result<KernelArtifact> artifact = compiler::compileKernel(text, path, spec);
    if (!artifact) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(),
                   artifact.status().message().c_str());
      return 1;
    }
    std::string stem = std::string(argv[2]) + "/" + name;
    std::ofstream code(stem + ".ptx"), launch(stem + ".json");
    code << artifact->code << std::flush;
    launch << describe(spec, artifact->launch).dump(1) << std::flush;
    if (!code || !launch) {
      std::fprintf(stderr, "%s: cannot be written\n", stem.c_str());
      return 1;
    }
  }
  if (!lines.eof()) {
    std::fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// Dumps of the stages.
#include "runtime/jit/DumpStages.h"

#include "runtime/base/Log.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace spargejit::jit {

namespace {

struct StageFile {
  compiler::Stage stage;
  const char *name;
};

constexpr StageFile kStageFiles[] = {
    {compiler::Stage::Input, "00-input.mlir"},
    {compiler::Stage::Specialise, "10-specialise.mlir"},
    {compiler::Stage::Tile, "20-tile.mlir"},
    {compiler::Stage::Lower, "30-lower.mlir"},
    {compiler::Stage::Emit, "40-emit.ll"},
    {compiler::Stage::Assembly, "50-asm.s"},
};

} // namespace

std::string dumpPlace(const std::string &folder, const cache::KernelKey &key,
                      const KernelSpec &spec) {
  return std::filesystem::path(folder) / (spec.kernel + "-" + key.hex());
}

bool writeDump(const std::string &place, const char *name,
               std::string_view content) {
  std::error_code failure;
  std::filesystem::create_directories(place, failure);
  std::filesystem::path path = std::filesystem::path(place) / name;
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file)
    logFormatted(LogLevel::Warning, "SPARGEJIT_DUMP: cannot write {}",
                 path.string());
  return static_cast<bool>(file);
}

void dumpStages(CodeGenerator &generator, const std::string &folder,
                const cache::KernelKey &key, const KernelSpec &spec,
                const KernelText &text) {
  std::string place = dumpPlace(folder, key, spec);
  for (const StageFile &stage : kStageFiles) {
    auto content =
        generator.dumpKernel(text.text, text.fileName, spec, stage.stage);
    if (!content.ok())
      return; // the compilation itself reports why
    bool isPtx =
        stage.stage == compiler::Stage::Assembly && !spec.target.isHost();
    if (!writeDump(place, isPtx ? kPtxDump : stage.name, *content))
      return;
  }
}

} // namespace spargejit::jit

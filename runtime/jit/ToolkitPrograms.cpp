// SPDX-License-Identifier: Apache-2.0
//
// ToolkitPrograms.h. Relative entries of PATH are passed over: they depend on
// the working folder, which is not for a program that is run unasked.
#include "runtime/jit/ToolkitPrograms.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace spargejit::jit {

namespace {

constexpr const char *kUsualFolder = "/usr/local/cuda/bin";

bool isProgram(const std::string &path) {
  std::error_code failure;
  return std::filesystem::is_regular_file(path, failure) &&
         access(path.c_str(), X_OK) == 0;
}

/// The first program of this name in `searchPath` or the usual folder.
std::optional<std::string> findProgram(const std::string &searchPath,
                                       const std::string &name) {
  std::istringstream folders(searchPath + ":" + kUsualFolder);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = folder + "/" + name;
    if (folder.starts_with('/') && isProgram(path))
      return path;
  }
  return std::nullopt;
}

} // namespace

Result<std::string> findPtxas(const Environment &settings) {
  if (!settings.ptxas.empty()) {
    if (isProgram(settings.ptxas))
      return settings.ptxas;
    return Status(ErrorCode::IoError,
                  fmt::format("SPARGEJIT_PTXAS: expected the path of a ptxas "
                              "program, got \"{}\"",
                              settings.ptxas));
  }
  if (auto path = findProgram(settings.searchPath, "ptxas"))
    return *path;
  return Status(ErrorCode::Unsupported,
                fmt::format("expected a ptxas program in SPARGEJIT_PTXAS, PATH "
                            "or {}/ptxas, found none",
                            kUsualFolder));
}

Result<std::string> findDisassembler(const Environment &settings,
                                     const std::string &ptxas) {
  const std::string beside =
      std::filesystem::path(ptxas).parent_path().string();
  for (const char *name : {"nvdisasm", "cuobjdump"})
    if (auto path = findProgram(beside + ":" + settings.searchPath, name))
      return *path;
  return Status(ErrorCode::Unsupported,
                fmt::format("expected nvdisasm or cuobjdump in {}, PATH or {}, "
                            "found neither",
                            beside, kUsualFolder));
}

} // namespace spargejit::jit

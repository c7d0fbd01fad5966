// SPDX-License-Identifier: Apache-2.0
//
// spargejit_describe(): what this library is and what it finds, as JSON.
#include "runtime/api/Engine.h"
#include "runtime/backend/cuda/Driver.h"
#include "runtime/base/Environment.h"
#include "runtime/jit/CodeGenerator.h"
#include "spargejit/c.h"
#include "spargejit/library.h"

#include <nlohmann/json.hpp>

namespace spargejit::c_abi {

namespace {

using Json = nlohmann::ordered_json;

Json describeCuda(const Environment &settings) {
  auto driver = cuda::Driver::open(settings.cudaDriver);
  if (!driver.ok())
    return {{"found", false}, {"reason", driver.status().message()}};
  return {{"found", true},
          {"path", (*driver)->path()},
          {"version", (*driver)->versionText()},
          {"devices", (*driver)->deviceCount()}};
}

Json describe() {
  Json json = {{"version", version()}, {"abi", SPARGEJIT_ABI_VERSION}};
  json["compiler"] = nullptr;
  if (hasCompiler())
    json["compiler"] = jit::builtInCodeGenerator().identity();
  const Result<Environment> &settings = environment();
  if (!settings.ok()) {
    json["settings"] = settings.status().message();
    return json;
  }
  json["settings"] = "valid";
  json["may_compile"] = settings->jit;
  json["cache_folder"] = settings->cacheFolder;
  json["packs"] = settings->packFolders;
  if (auto engine = api::Engine::process(); engine.ok())
    json["methods"] = (*engine)->methodNames();
  json["cuda"] = describeCuda(*settings);
  return json;
}

} // namespace

} // namespace spargejit::c_abi

const char *spargejit_describe(void) {
  thread_local std::string text;
  try {
    text = spargejit::c_abi::describe().dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  } catch (const std::exception &) {
    text.clear();
  }
  return text.c_str();
}

// SPDX-License-Identifier: Apache-2.0
//
// Packs, from the side that makes them.
#include "runtime/tools/spargejit/PackWriter.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/cache/ArtifactText.h"
#include "runtime/cache/FileIo.h"
#include "runtime/cache/Pack.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/jit/CodeGenerator.h"
#include "runtime/jit/StoredParameters.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/StoredPlan.h"

#include <filesystem>

namespace spargejit::tool {

namespace {

Status outputError(const std::string &path, int error) {
  return Status(ErrorCode::IoError,
                "-o: " + path + ": " + cache::errorText(error));
}

/// Entries are written for the user alone, as the cache's are; a pack is made
/// to be handed on. What cannot be changed stays as it is.
void letEverybodyRead(const std::string &folder) {
  namespace fs = std::filesystem;
  constexpr auto kRead = fs::perms::group_read | fs::perms::others_read;
  constexpr auto kEnter =
      kRead | fs::perms::group_exec | fs::perms::others_exec;
  std::error_code ignored;
  fs::permissions(folder, kEnter, fs::perm_options::add, ignored);
  for (const auto &entry : fs::recursive_directory_iterator(folder, ignored))
    fs::permissions(entry.path(), entry.is_directory(ignored) ? kEnter : kRead,
                    fs::perm_options::add, ignored);
}

} // namespace

Result<PackWriter> PackWriter::open(const std::string &folder,
                                    const Target &target, bool keepPtx) {
  if (!environment().ok())
    return environment().status();
  // What is written comes from the compiler or the disk cache of this version,
  // never from another pack.
  Environment settings = *environment();
  settings.packFolders.clear();
  settings.jit = true;
  PackWriter writer(folder);
  if (int error = cache::makeFolders(folder); error != 0)
    return outputError(folder, error);
  jit::CodeGenerator &generator = jit::builtInCodeGenerator();
  if (target.isHost()) {
    writer.hostCompiler_ = std::make_unique<jit::KernelCompiler>(
        generator, kernels_ir::embeddedTexts(), settings, target);
    return writer;
  }
  auto ptxas = jit::findPtxas(settings);
  if (!ptxas.ok() && !settings.ptxas.empty())
    return ptxas.status();
  writer.lacksAssembler_ = !ptxas.ok() && !keepPtx;
  settings.ptxas = ptxas.ok() && !keepPtx ? *ptxas : "";
  writer.deviceJit_ = std::make_unique<jit::DeviceJit>(
      generator, kernels_ir::embeddedTexts(), settings, target);
  return writer;
}

Result<KernelArtifact> PackWriter::artifactOf(const MethodKernel &kernel,
                                              const jit::KernelText &text) {
  if (hostCompiler_) {
    auto artifact = hostCompiler_->artifact(
        hostCompiler_->keyOf(kernel.spec, text), kernel.spec, text);
    if (!artifact.ok())
      return artifact.status();
    return **artifact;
  }
  auto code = deviceJit_->code(kernel.spec, text);
  if (!code.ok())
    return code.status();
  return KernelArtifact{kernel.spec.target, (*code)->launch, (*code)->image};
}

Status PackWriter::add(const MethodKernel &kernel) {
  const std::string identity = jit::builtInCodeGenerator().identity();
  jit::KernelText text{kernel.source.fileName, kernel.source.text, {}};
  auto key = cache::KernelKey::of(kernel.spec, text.text, identity);
  const std::string name = kernel.spec.kernel + "-" + key.hex();
  if (written_.contains(name))
    return Status();
  auto artifact = artifactOf(kernel, text);
  if (!artifact.ok())
    return artifact.status();
  Status status =
      write(name, key, cache::entryOf(kernel.spec, identity, *artifact));
  if (!status.ok())
    return status;
  folders_.push_back((std::filesystem::path(folder_) / name).string());
  auto parameters = jit::builtInCodeGenerator().listKernelParameters(
      text.text, text.fileName, kernel.spec.kernel);
  if (!parameters.ok())
    return parameters.status();
  key = jit::parametersKey(kernel.spec.kernel, text.text, identity);
  return write("parameters-" + kernel.spec.kernel + "-" + key.hex(), key,
               jit::entryOf(*parameters));
}

Status PackWriter::addPlan(const std::string &method) {
  jit::CodeGenerator &generator = jit::builtInCodeGenerator();
  auto text = plan::MethodLibrary().find(method);
  if (!text.ok())
    return text.status();
  auto plan = generator.planMethod((*text)->text, (*text)->fileName);
  if (!plan.ok())
    return plan.status();
  auto key = plan::planKey((*text)->digest, generator.identity());
  return write("plan-" + plan->name + "-" + key.hex(), key,
               plan::entryOf(*plan));
}

Status PackWriter::write(const std::string &name, const cache::KernelKey &key,
                         const cache::StoredEntry &entry) {
  if (!written_.insert(name).second)
    return Status();
  const std::string place = (std::filesystem::path(folder_) / name).string();
  // What an earlier run left half done or another version wrote goes.
  cache::ReadEntry there = cache::readEntry(place);
  bool isSame = there.state == cache::ReadEntry::State::Found &&
                there.key == key && there.entry.code == entry.code;
  if (isSame)
    return Status();
  if (there.state != cache::ReadEntry::State::Absent)
    if (int error = cache::removeEntry(folder_, name); error != 0)
      return outputError(place, error);
  int error = cache::publishEntry(folder_, name, key, entry);
  return error == 0 ? Status() : outputError(place, error);
}

Status PackWriter::finish() {
  Status status = cache::writePackIndex(folder_);
  if (!status.ok())
    return std::move(status).withContext("-o");
  letEverybodyRead(folder_);
  return Status();
}

} // namespace spargejit::tool

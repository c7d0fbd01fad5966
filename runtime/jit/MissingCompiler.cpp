// SPDX-License-Identifier: Apache-2.0
//
// The code generator of a build with SPARGEJIT_ENABLE_COMPILER=OFF: it has
// nothing to give, and says which command of a full build has.
#include "runtime/jit/CodeGenerator.h"
#include "runtime/jit/CompileCommand.h"

#include <filesystem>

namespace spargejit::jit {

namespace {

class MissingCompiler final : public CodeGenerator {
public:
  Target hostTarget() const override { return Target(); }
  std::string identity() const override { return "none"; }
  Result<MethodPlan> planMethod(const std::string &,
                                const std::string &textName) override {
    std::string method = std::filesystem::path(textName).stem();
    return missing("method " + method,
                   "spargejit compile method:" + method + " -o DIR");
  }
  Result<std::vector<compiler::KernelParameter>>
  listKernelParameters(const std::string &, const std::string &,
                       const std::string &kernel) override {
    return missing("kernel " + kernel,
                   "spargejit compile " + kernel + " -o DIR");
  }
  Result<KernelArtifact> compileKernel(const std::string &, const std::string &,
                                       const KernelSpec &spec) override {
    return missing("kernel " + spec.kernel, compileCommand(spec));
  }
  Result<std::string> dumpKernel(const std::string &, const std::string &,
                                 const KernelSpec &spec,
                                 compiler::Stage) override {
    return missing("kernel " + spec.kernel, compileCommand(spec));
  }
  Result<std::shared_ptr<compiler::HostKernel>>
  loadHostKernel(const KernelArtifact &artifact) override {
    return missing("kernel " + artifact.launch.entryName,
                   "spargejit compile " + artifact.launch.entryName +
                       " -o DIR");
  }

private:
  static Status missing(const std::string &what, const std::string &command) {
    return Status(ErrorCode::ArtifactMissing,
                  what +
                      ": this build of spargejit has no compiler and found "
                      "no artifact; a build with it makes one by `" +
                      command + "`, and SPARGEJIT_PACK=DIR finds it");
  }
};

} // namespace

CodeGenerator &builtInCodeGenerator() {
  static MissingCompiler theCompiler;
  return theCompiler;
}

bool hasBuiltInCompiler() { return false; }

} // namespace spargejit::jit

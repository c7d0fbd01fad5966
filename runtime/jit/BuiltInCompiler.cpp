// SPDX-License-Identifier: Apache-2.0
//
// The code generator of a build with SPARGEJIT_ENABLE_COMPILER=ON.
#include "compiler/Driver/PlanMethod.h"
#include "runtime/jit/CodeGenerator.h"

namespace spargejit::jit {

namespace {

class BuiltInCompiler final : public CodeGenerator {
public:
  Target hostTarget() const override { return compiler::hostTarget(); }
  std::string identity() const override {
    return compiler::codeGeneratorIdentity();
  }
  Result<MethodPlan> planMethod(const std::string &text,
                                const std::string &textName) override {
    return compiler::planMethod(text, textName);
  }
  Result<std::vector<compiler::KernelParameter>>
  listKernelParameters(const std::string &text, const std::string &textName,
                       const std::string &kernel) override {
    return compiler::listKernelParameters(text, textName, kernel);
  }
  Result<KernelArtifact> compileKernel(const std::string &text,
                                       const std::string &textName,
                                       const KernelSpec &spec) override {
    return compiler::compileKernel(text, textName, spec);
  }
  Result<std::string> dumpKernel(const std::string &text,
                                 const std::string &textName,
                                 const KernelSpec &spec,
                                 compiler::Stage stage) override {
    return compiler::dumpKernel(text, textName, spec, stage);
  }
  Result<std::shared_ptr<compiler::HostKernel>>
  loadHostKernel(const KernelArtifact &artifact) override {
    return compiler::loadHostKernel(artifact);
  }
};

} // namespace

CodeGenerator &builtInCodeGenerator() {
  static BuiltInCompiler theCompiler;
  return theCompiler;
}

bool hasBuiltInCompiler() { return true; }

} // namespace spargejit::jit

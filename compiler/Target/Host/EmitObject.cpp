// SPDX-License-Identifier: Apache-2.0
//
// LLVM IR to object code or assembly for the host.
#include "compiler/Target/Host/EmitObject.h"

#include "compiler/Target/Host/HostMachine.h"
#include "compiler/Target/LlvmSetup.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/raw_ostream.h"

namespace spargejit::compiler {

Status optimiseForHost(llvm::Module &module, const Target &target) {
  Result<std::unique_ptr<llvm::TargetMachine>> machine =
      createHostMachine(target);
  if (!machine)
    return machine.status();
  llvm::TargetMachine &host = **machine;
  module.setTargetTriple(host.getTargetTriple());
  module.setDataLayout(host.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", host.getTargetCPU());
    function.addFnAttr("target-features", host.getTargetFeatureString());
    // LLVM would split 16-lane vectors into two 256-bit halves on some
    // AVX-512 machines.
    function.addFnAttr("prefer-vector-width", "512");
    // Unwinding through a kernel never happens: it calls nothing.
    function.setDoesNotThrow();
  }
  optimise(module, host, "default<O2>");
  return {};
}

Result<std::string> emitHostCode(llvm::Module &module, const Target &target,
                                 bool assembly) {
  Result<std::unique_ptr<llvm::TargetMachine>> machine =
      createHostMachine(target);
  if (!machine)
    return machine.status();
  llvm::SmallString<0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile
                       : llvm::CodeGenFileType::ObjectFile;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, type))
    return Status(ErrorCode::Internal,
                  "LLVM cannot write this kind of file for the host");
  passes.run(module);
  return std::string(code);
}

} // namespace spargejit::compiler

// SPDX-License-Identifier: Apache-2.0
//
// Links a host artifact into this process with ORC.
#include "compiler/Driver/LoadHostKernel.h"
#include "compiler/Target/LlvmSetup.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

namespace spargejit::compiler {

namespace {

class OrcHostKernel : public HostKernel {
public:
  OrcHostKernel(std::unique_ptr<llvm::orc::LLJIT> jit,
                HostKernelFunction function)
      : jit_(std::move(jit)), function_(function) {}
  HostKernelFunction function() const override { return function_; }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  HostKernelFunction function_;
};

Status failed(llvm::Error error) {
  return Status(ErrorCode::CompileFailed,
                "linking a host kernel: " + llvm::toString(std::move(error)));
}

} // namespace

Result<std::shared_ptr<HostKernel>>
loadHostKernel(const KernelArtifact &artifact) {
  if (!artifact.target.isHost())
    return Status(ErrorCode::InvalidArgument,
                  "artifact.target: expected a host kernel, got one for " +
                      artifact.target.architecture);
  initialiseLlvm();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return failed(jit.takeError());
  // Code generation may call memcpy and its like.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return failed(process.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  auto object = llvm::MemoryBuffer::getMemBufferCopy(artifact.code,
                                                     artifact.launch.entryName);
  if (llvm::Error error = (*jit)->addObjectFile(std::move(object)))
    return failed(std::move(error));
  auto symbol = (*jit)->lookup(artifact.launch.entryName);
  if (!symbol)
    return failed(symbol.takeError());
  auto function = symbol->toPtr<HostKernelFunction>();
  return std::shared_ptr<HostKernel>(
      std::make_shared<OrcHostKernel>(std::move(*jit), function));
}

} // namespace spargejit::compiler

// SPDX-License-Identifier: Apache-2.0
//
// LLVM IR to PTX text.
#include "compiler/Target/Ptx/EmitPtx.h"

#include "compiler/Target/LlvmSetup.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

// Declared here, since LLVM's header of all targets names those not linked too.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace spargejit::compiler {

namespace {

constexpr const char *kArchitecture = "sm_90a";
/// PTX ISA 8.1 (CUDA 12.1) is the first with st.async, and has everything that
/// the lowering emits, so that drivers from 530 on assemble it.
constexpr const char *kFeatures = "+ptx81";
/// What is left to do for LLVM: ptxas schedules, unrolls and hoists again. Of
/// default<O2> these passes keep what the code for the longest kernels needs:
/// without the loops' selection spills at mask block 16, without instcombine
/// inversion is a sixth longer, and O2's other passes make dk and dv's code 8 %
/// longer (a rotated loop whose first half is there twice) for 60 of the 219 ms
/// that attention_fwd took to PTX. Sizes by ptxas 13.0.
constexpr const char *kPasses =
    "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-simplify,loop-mssa(licm,loop-rotate,licm),"
    "instcombine<no-verify-fixpoint>,early-cse,simplifycfg)";

Result<std::unique_ptr<llvm::TargetMachine>>
createPtxMachine(const Target &target) {
  if (!isPtxTarget(target))
    return Status(ErrorCode::Unsupported,
                  "target.architecture: expected sm_90a, got " +
                      target.architecture);
  initialiseLlvm();
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return Status(ErrorCode::Internal, "LLVM has no PTX back end: " + error);
  llvm::TargetOptions options;
  // Kernels write math.fma where they want one. A sum of products that is fused
  // elsewhere is not the difference of equal numbers, 0, that they count on.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.architecture, kFeatures, options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

} // namespace

bool isPtxTarget(const Target &target) {
  return target.architecture == kArchitecture;
}

Status optimiseForPtx(llvm::Module &module, const Target &target) {
  Result<std::unique_ptr<llvm::TargetMachine>> machine =
      createPtxMachine(target);
  if (!machine)
    return machine.status();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  optimise(module, **machine, kPasses);
  return {};
}

Result<std::string> emitPtx(llvm::Module &module, const Target &target) {
  Result<std::unique_ptr<llvm::TargetMachine>> machine =
      createPtxMachine(target);
  if (!machine)
    return machine.status();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return Status(ErrorCode::Internal, "LLVM cannot write PTX");
  passes.run(module);
  return std::string(text);
}

} // namespace spargejit::compiler

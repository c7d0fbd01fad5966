// SPDX-License-Identifier: Apache-2.0
//
// The CPU that compiles, and TargetMachines for host targets.
#include "compiler/Target/Host/HostMachine.h"

#include "compiler/Driver/CompileKernel.h"
#include "compiler/Target/LlvmSetup.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"

namespace spargejit::compiler {

Target hostTarget() {
  static const Target kHost = [] {
    Target target;
    target.architecture = "host";
    target.cpu = llvm::sys::getHostCPUName().str();
    // Sorted, so that equal machines spell their features alike.
    std::map<std::string, bool> features;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features[feature.first().str()] = feature.second;
    for (const auto &[name, present] : features) {
      if (!target.features.empty())
        target.features += ",";
      target.features += (present ? "+" : "-") + name;
    }
    return target;
  }();
  return kHost;
}

static Target spelledOut(const Target &target) {
  return target.cpu.empty() ? hostTarget() : target;
}

Result<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(const Target &target) {
  initialiseLlvm();
  Target host = spelledOut(target);
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return Status(ErrorCode::Unsupported, "no code generator for this CPU (" +
                                              triple.str() + "): " + error);
  llvm::TargetOptions options;
  // a·b + c may round once, as on every GPU.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, host.cpu, host.features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive, /*JIT=*/true));
  if (!machine)
    return Status(ErrorCode::Unsupported,
                  "LLVM knows no CPU '" + host.cpu + "'");
  return machine;
}

std::int64_t hostDotColumns(const Target &target) {
  // A 16-lane f32 vector is one AVX-512 register of 32, or two AVX2 registers
  // of 16; two FMA pipes of latency 4 need 8 registers in flight.
  Target host = spelledOut(target);
  bool avx512 = host.features.find("+avx512f") != std::string::npos;
  return avx512 ? 8 : 4;
}

} // namespace spargejit::compiler

// SPDX-License-Identifier: Apache-2.0
//
// One compilation, stage by stage; behind CompileKernel.h, which shows no MLIR.
#pragma once

#include "compiler/Driver/CompileKernel.h"
#include "compiler/Driver/DiagnosticLog.h"
#include "compiler/Target/LlvmSetup.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::compiler {

class KernelCompilation {
public:
  KernelCompilation();

  /// Stage Input: parses `text` and keeps the kernel named `kernel` alone.
  Status parse(const std::string &text, const std::string &textName,
               const std::string &kernel);
  /// Runs the stages after Input up to and including `last`.
  Status runTo(const KernelSpec &spec, Stage last);

  /// The parsed module; the one tile.kernel in it.
  mlir::ModuleOp module() { return *module_; }
  /// What the last stage made: MLIR, LLVM IR or assembly text.
  std::string print();
  /// Object code (host) or PTX; after runTo(spec, Stage::Emit).
  Result<std::string> emitCode(const KernelSpec &spec, bool assembly);
  /// How to launch; after runTo(spec, Stage::Lower).
  const LaunchInfo &launch() const { return launch_; }

private:
  Status runPasses(llvm::function_ref<void(mlir::OpPassManager &)> add);
  Status specialise(const KernelSpec &spec);
  Status tile(const KernelSpec &spec);
  Status lower(const KernelSpec &spec);
  Status emit(const KernelSpec &spec);
  void describeArguments();
  void describeScratch();
  void describeDynamicScratch(const char *attribute);
  std::vector<DataType> argumentElementTypes();
  void describeGpuLaunch(const std::vector<DataType> &elementTypes);

  mlir::MLIRContext context_;
  DiagnosticLog log_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  CollectingContext llvmContext_;
  std::unique_ptr<llvm::Module> llvmModule_;
  LaunchInfo launch_;
};

} // namespace spargejit::compiler

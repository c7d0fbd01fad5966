// SPDX-License-Identifier: Apache-2.0
//
// LLVM inside a library: see LlvmSetup.h.
#include "compiler/Target/LlvmSetup.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include <mutex>
#include <stdexcept>

namespace spargejit::compiler {

namespace {

class FatalLlvmError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace

Status runGuarded(llvm::function_ref<Status()> work) {
  try {
    return work();
  } catch (const FatalLlvmError &error) {
    return Status(ErrorCode::CompileFailed,
                  std::string("LLVM gave up: ") + error.what());
  }
}

void initialiseLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    // LLVM would abort on, for example, an instruction that it cannot select.
    // This copy of LLVM is hidden inside the library, so the handler is ours
    // alone; runGuarded() catches what it throws.
    llvm::install_fatal_error_handler(
        [](void *, const char *reason, bool) { throw FatalLlvmError(reason); });
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

CollectingContext::CollectingContext()
    : context_(std::make_unique<llvm::LLVMContext>()),
      errors_(std::make_shared<std::string>()) {
  // Without a callback LLVM exits the process on an error.
  context_->setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *errors) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        llvm::raw_string_ostream stream(*static_cast<std::string *>(errors));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
        stream << "\n";
      },
      errors_.get());
}

Status CollectingContext::status() const {
  if (errors_->empty())
    return {};
  return Status(ErrorCode::CompileFailed, "LLVM: " + *errors_);
}

std::unique_ptr<llvm::Module> translateToLlvm(mlir::ModuleOp module,
                                              llvm::LLVMContext &context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  module->getContext()->appendDialectRegistry(registry);
  return mlir::translateModuleToLLVMIR(module, context, "spargejit");
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              llvm::StringRef passes) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::ModulePassManager pipeline;
  llvm::cantFail(builder.parsePassPipeline(pipeline, passes));
  pipeline.run(module, modules);
}

} // namespace spargejit::compiler

// SPDX-License-Identifier: Apache-2.0
//
// What every use of LLVM inside the library needs: initialised back ends, IR
// from MLIR, optimisation, and errors that come back instead of ending the
// process.
#pragma once

#include "spargejit/status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace spargejit::compiler {

/// Initialises the back ends once a process. Changes no option and installs no
/// handler that a host program could notice.
void initialiseLlvm();

/// Runs `work`; an error that LLVM holds for fatal becomes CompileFailed.
Status runGuarded(llvm::function_ref<Status()> work);

/// An LLVMContext that collects errors instead of exiting on them.
class CollectingContext {
public:
  CollectingContext();
  llvm::LLVMContext &get() { return *context_; }
  /// CompileFailed with LLVM's messages, or success.
  Status status() const;
  /// Gives the context away, to live with the code it made.
  std::unique_ptr<llvm::LLVMContext> take() { return std::move(context_); }

private:
  std::unique_ptr<llvm::LLVMContext> context_;
  std::shared_ptr<std::string> errors_;
};

/// The llvm and nvvm dialects as an LLVM module, or null with a diagnostic in
/// MLIR.
std::unique_ptr<llvm::Module> translateToLlvm(mlir::ModuleOp module,
                                              llvm::LLVMContext &context);

/// Runs `passes`, a pipeline in the words of LLVM's opt; "default<O2>" comes
/// without its vectorisers, since our loops are vectors already.
void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              llvm::StringRef passes);

} // namespace spargejit::compiler

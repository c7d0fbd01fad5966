// SPDX-License-Identifier: Apache-2.0
//
// Collects the diagnostics of an MLIRContext, so that the driver can return
// them in a Status and nothing is printed.
#pragma once

#include "spargejit/status.h"

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace spargejit::compiler {

/// While it lives, takes every diagnostic of `context` that is emitted on this
/// thread.
class DiagnosticLog {
public:
  explicit DiagnosticLog(mlir::MLIRContext *context);

  /// All errors so far as a Status: each error and note as one line
  /// "file:line:column: text". Unsupported when all errors are about things
  /// that are well-formed but not implemented (compiler/Transforms/
  /// Unsupported.h), CompileFailed otherwise. Internal when there is none.
  Status toStatus() const;

private:
  void add(mlir::Diagnostic &diagnostic);

  mlir::ScopedDiagnosticHandler handler_;
  std::string lines_;
  bool hasUnsupported_ = false;
  bool hasMistake_ = false;
};

} // namespace spargejit::compiler

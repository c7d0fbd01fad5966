// SPDX-License-Identifier: Apache-2.0
//
// The mark of Unsupported.h: one piece of diagnostic metadata.
#include "compiler/Transforms/Unsupported.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::sparge {

static constexpr StringLiteral kMark = "spargejit.unsupported";

InFlightDiagnostic emitUnsupported(Operation *op) {
  InFlightDiagnostic diagnostic = op->emitError();
  // No handler, no diagnostic: e.g. while diagnostics are being suppressed.
  if (Diagnostic *underlying = diagnostic.getUnderlyingDiagnostic())
    underlying->getMetadata().emplace_back(StringRef(kMark));
  return diagnostic;
}

bool isUnsupported(Diagnostic &diagnostic) {
  return llvm::any_of(
      diagnostic.getMetadata(), [](const DiagnosticArgument &argument) {
        return argument.getKind() ==
                   DiagnosticArgument::DiagnosticArgumentKind::String &&
               argument.getAsString() == kMark;
      });
}

} // namespace mlir::sparge

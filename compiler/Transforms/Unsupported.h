// SPDX-License-Identifier: Apache-2.0
//
// Errors about input that is well-formed but that nothing here implements yet.
// They carry a mark, so that the driver can report them as Unsupported and not
// as the author's mistake.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace mlir::sparge {

/// An error at `op`'s location, marked as unsupported.
InFlightDiagnostic emitUnsupported(Operation *op);

/// Whether `diagnostic` was made by emitUnsupported.
bool isUnsupported(Diagnostic &diagnostic);

} // namespace mlir::sparge

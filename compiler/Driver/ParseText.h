// SPDX-License-Identifier: Apache-2.0
//
// Text of method and kernel files to a module, safe for a host program whatever
// the text is.
#pragma once

#include "compiler/Driver/DiagnosticLog.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace spargejit::compiler {

/// Parses `text`; errors name `textName` with line and column.
/// Refused beyond what MLIR refuses: brackets nested deeper than 200, since its
/// parser recurses and would run out of the caller's stack, and attributes that
/// an op of our dialects does not have, which MLIR would carry along unread.
/// `log` must be the one of `context`.
Result<mlir::OwningOpRef<mlir::ModuleOp>> parseText(const std::string &text,
                                                    const std::string &textName,
                                                    mlir::MLIRContext &context,
                                                    const DiagnosticLog &log);

} // namespace spargejit::compiler

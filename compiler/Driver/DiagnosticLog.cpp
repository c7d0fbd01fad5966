// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics as lines of text.
#include "compiler/Driver/DiagnosticLog.h"

#include "compiler/Transforms/Unsupported.h"

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Location.h"

#include <algorithm>

namespace spargejit::compiler {

namespace {

/// The file position within `location`, which may be nested in others, or null.
mlir::FileLineColLoc filePosition(mlir::Location location) {
  mlir::FileLineColLoc found;
  location->walk([&](mlir::Location inner) {
    found = mlir::dyn_cast<mlir::FileLineColLoc>(inner);
    return found ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return found;
}

void appendLine(std::string &lines, mlir::Diagnostic &diagnostic,
                llvm::StringRef prefix) {
  llvm::raw_string_ostream stream(lines);
  if (!lines.empty())
    stream << '\n';
  // The module that stands for a whole file is at line 0, column 0.
  if (mlir::FileLineColLoc position = filePosition(diagnostic.getLocation()))
    stream << position.getFilename().getValue() << ':'
           << std::max(position.getLine(), 1u) << ':'
           << std::max(position.getColumn(), 1u) << ": ";
  stream << prefix << diagnostic.str();
}

} // namespace

DiagnosticLog::DiagnosticLog(mlir::MLIRContext *context)
    : handler_(context, [this](mlir::Diagnostic &diagnostic) {
        add(diagnostic);
        return mlir::success();
      }) {}

void DiagnosticLog::add(mlir::Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
    return;
  bool unsupported = mlir::sparge::isUnsupported(diagnostic);
  hasUnsupported_ |= unsupported;
  hasMistake_ |= !unsupported;
  appendLine(lines_, diagnostic, "");
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    appendLine(lines_, note, "note: ");
}

Status DiagnosticLog::toStatus() const {
  if (hasMistake_)
    return Status(ErrorCode::CompileFailed, lines_);
  if (hasUnsupported_)
    return Status(ErrorCode::Unsupported, lines_);
  return Status(ErrorCode::Internal,
                "bug in spargejit: the compiler failed without a diagnostic");
}

} // namespace spargejit::compiler

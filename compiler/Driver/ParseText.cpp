// SPDX-License-Identifier: Apache-2.0
//
// ParseText.h.
#include "compiler/Driver/ParseText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "mlir/Parser/Parser.h"

#include <optional>

namespace spargejit::compiler {

namespace {

/// Kernels of this library reach a depth of 12.
constexpr int kMaxNesting = 200;

struct TextPosition {
  int line = 1;
  int column = 1;
};

/// Where brackets are first nested deeper than kMaxNesting. Comments and
/// strings are passed over; what is wrongly nested is left to the parser.
std::optional<TextPosition> findDeepNesting(llvm::StringRef text) {
  int depth = 0;
  TextPosition at;
  for (std::size_t i = 0; i < text.size(); ++i, ++at.column) {
    const char c = text[i];
    if (c == '\n') {
      ++at.line;
      at.column = 0;
    } else if (c == '"') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != '"' && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      at.column += static_cast<int>(end - i);
      i = end;
      if (i < text.size() && text[i] == '\n')
        --i;
    } else if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (llvm::StringRef("([{<").contains(c)) {
      if (++depth > kMaxNesting)
        return at;
    } else if (llvm::StringRef(")]}").contains(c) ||
               (c == '>' && (i == 0 || text[i - 1] != '-'))) {
      depth = std::max(depth - 1, 0);
    }
  }
  return std::nullopt;
}

/// Ops keep their own attributes apart from those that anybody may add to any
/// op; the latter are named after a dialect ("llvm.readonly").
mlir::LogicalResult refuseUnknownAttributes(mlir::Operation *op) {
  const llvm::StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "sparge" && dialect != "tile")
    return mlir::success();
  for (mlir::NamedAttribute attribute : op->getDiscardableAttrs()) {
    if (attribute.getName().strref().contains('.'))
      continue;
    std::string known = llvm::join(
        llvm::map_range(op->getName().getAttributeNames(),
                        [](mlir::StringAttr name) { return name.str(); }),
        ", ");
    return op->emitOpError() << "has no attribute " << attribute.getName()
                             << (known.empty() ? ": expected none"
                                               : ": expected one of " + known);
  }
  return mlir::success();
}

} // namespace

Result<mlir::OwningOpRef<mlir::ModuleOp>> parseText(const std::string &text,
                                                    const std::string &textName,
                                                    mlir::MLIRContext &context,
                                                    const DiagnosticLog &log) {
  if (auto deep = findDeepNesting(text))
    return Status(ErrorCode::CompileFailed,
                  textName + ":" + std::to_string(deep->line) + ":" +
                      std::to_string(deep->column) +
                      ": expected brackets nested at most " +
                      std::to_string(kMaxNesting) + " deep, got more");
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, textName),
                             llvm::SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return log.toStatus();
  auto walked = module->walk([](mlir::Operation *op) {
    return failed(refuseUnknownAttributes(op)) ? mlir::WalkResult::interrupt()
                                               : mlir::WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return log.toStatus();
  return module;
}

} // namespace spargejit::compiler

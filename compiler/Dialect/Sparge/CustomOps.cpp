// SPDX-License-Identifier: Apache-2.0
//
// Syntax and verifiers of CustomOps.td.
#include "compiler/Dialect/Sparge/SelectionChecks.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace mlir::sparge;

//===----------------------------------------------------------------------===//
// #sparge.code
//===----------------------------------------------------------------------===//

// <config>, or <["line", …]>, where each line notes where it stands.
Attribute CodeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("config"))) {
    if (parser.parseGreater())
      return {};
    return CodeAttr::get(parser.getContext());
  }
  const SMLoc start = parser.getCurrentLocation();
  SmallVector<Attribute> lines;
  SmallVector<int64_t> places;
  auto parseLine = [&]() -> ParseResult {
    Location place = parser.getEncodedSourceLoc(parser.getCurrentLocation());
    std::string text;
    if (parser.parseString(&text))
      return failure();
    auto inFile = dyn_cast<FileLineColLoc>(place);
    places.push_back(inFile ? inFile.getLine() : 0);
    lines.push_back(parser.getBuilder().getStringAttr(text));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLine) ||
      parser.parseGreater())
    return {};
  return CodeAttr::getChecked([&] { return parser.emitError(start); },
                              parser.getContext(),
                              parser.getBuilder().getArrayAttr(lines),
                              parser.getBuilder().getDenseI64ArrayAttr(places));
}

void CodeAttr::print(AsmPrinter &printer) const {
  if (isFromConfig())
    printer << "<config>";
  else
    printer << '<' << getLines() << '>';
}

LogicalResult
CodeAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 ArrayAttr lines, DenseI64ArrayAttr places) {
  if (lines && lines.empty()) // C1
    return emitError() << "expects at least one line of code, got none";
  if (lines && (!places || places.size() != static_cast<int64_t>(lines.size())))
    return emitError() << "expects one place for each of " << lines.size()
                       << " lines";
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult CustomScoresOp::verify() {
  if (failed(verifyPooledRole(*this, "pooled_q", getPooledQ().getType(),
                              Role::Query))) // C1
    return failure();
  return verifyPooledRole(*this, "pooled_k", getPooledK().getType(),
                          Role::Key); // C2
}

LogicalResult CustomSelectOp::verify() {
  return verifyKeepFirst(*this); // C1
}

LogicalResult CustomScoreAndSelectOp::verify() {
  if (failed(verifyPooledRole(*this, "pooled_q", getPooledQ().getType(),
                              Role::Query)) || // C1
      failed(verifyPooledRole(*this, "pooled_k", getPooledK().getType(),
                              Role::Key)) || // C2
      failed(verifyKeepFirst(*this)))        // C3
    return failure();
  if (!getScoreCode() && !getKeepCode()) // C4
    return emitOpError() << "expects score code or keep code, got neither";
  if (getKeepCode())
    return success();
  return verifyHasRule(*this); // C5
}

// SPDX-License-Identifier: Apache-2.0
//
// Syntax and verifier of sparge.launch, and the code generated for all ops,
// which refers to that syntax.
#include "compiler/Dialect/Sparge/Sparge.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::sparge;

//===----------------------------------------------------------------------===//
// (name = %value : type, …) -> (name : type, …)
//===----------------------------------------------------------------------===//

static ParseResult
parseNamedOperands(OpAsmParser &parser,
                   SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                   SmallVectorImpl<Type> &types, ArrayAttr &names) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) ||
        parser.parseColonType(types.emplace_back()))
      return failure();
    parsed.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  names = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printNamedOperands(OpAsmPrinter &printer, Operation *,
                               OperandRange operands, TypeRange,
                               ArrayAttr names) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(names.getAsValueRange<StringAttr>(), operands), printer,
      [&](auto pair) {
        auto [name, operand] = pair;
        printer.printKeywordOrString(name);
        printer << " = " << operand << " : " << operand.getType();
      });
  printer << ')';
}

static ParseResult parseNamedResults(OpAsmParser &parser,
                                     SmallVectorImpl<Type> &types,
                                     ArrayAttr &names) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) ||
        parser.parseColonType(types.emplace_back()))
      return failure();
    parsed.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  names = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printNamedResults(OpAsmPrinter &printer, Operation *,
                              TypeRange types, ArrayAttr names) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(names.getAsValueRange<StringAttr>(), types), printer,
      [&](auto pair) {
        auto [name, type] = pair;
        printer.printKeywordOrString(name);
        printer << " : " << type;
      });
  printer << ')';
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

namespace {

/// C3 and C4 for one value; `seen` collects the names so far.
LogicalResult verifyName(LaunchOp op, StringRef name, Type type,
                         llvm::StringSet<> &seen) {
  if (!seen.insert(name).second) // C3
    return op.emitOpError()
           << "expects each name once, got \"" << name << "\" again";
  const std::pair<StringRef, Type> reserved[] = {
      {"lists", ListsType::get(op.getContext())},
      {"key_lists", KeyListsType::get(op.getContext())},
      {"places", PlacesType::get(op.getContext())}};
  for (const auto &[word, meant] : reserved)
    if ((name == word) != (type == meant)) // C4
      return op.emitOpError()
             << "expects the name \"" << word << "\" for values of type "
             << meant << " and no others, got \"" << name << "\" of type "
             << type;
  return success();
}

} // namespace

LogicalResult LaunchOp::verify() {
  if (getArgumentNames().size() != getOperands().size()) // C1
    return emitOpError() << "expects one argument name for each of "
                         << getOperands().size() << " operands, got "
                         << getArgumentNames().size();
  if (getResultNames().size() != getOutputs().size()) // C2
    return emitOpError() << "expects one result name for each of "
                         << getOutputs().size() << " results, got "
                         << getResultNames().size();
  llvm::StringSet<> seen;
  for (auto [name, value] : llvm::zip_equal(
           getArgumentNames().getAsValueRange<StringAttr>(), getOperands()))
    if (failed(verifyName(*this, name, value.getType(), seen)))
      return failure();
  for (auto [name, value] : llvm::zip_equal(
           getResultNames().getAsValueRange<StringAttr>(), getOutputs()))
    if (failed(verifyName(*this, name, value.getType(), seen)))
      return failure();
  for (NamedAttribute parameter : getParameters()) {
    auto value = dyn_cast<IntegerAttr>(parameter.getValue());
    if (!value || !value.getType().isSignlessInteger(64)) // C5
      return emitOpError() << "expects parameter " << parameter.getName()
                           << " to be a 64-bit integer, got "
                           << parameter.getValue();
  }
  if (DictionaryAttr sources = getSourcesAttr())
    for (NamedAttribute source : sources)
      if (!isa<CodeAttr>(source.getValue())) // C6
        return emitOpError() << "expects source " << source.getName()
                             << " to be a code, got " << source.getValue();
  return success();
}

#define GET_OP_CLASSES
#include "compiler/Dialect/Sparge/SpargeOps.cpp.inc"

// SPDX-License-Identifier: Apache-2.0
//
// Syntax and verifiers of MethodOps.td.
#include "compiler/Dialect/Sparge/Sparge.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::sparge;

//===----------------------------------------------------------------------===//
// sparge.method
//===----------------------------------------------------------------------===//

// sparge.method @name(%q: type, %k: type, %v: type) [attributes {…}] { … }
ParseResult MethodOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void MethodOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           getSymNameAttrName().getValue());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void MethodOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setNameFn) {
  for (BlockArgument argument : region.getArguments())
    if (auto type = dyn_cast<OpAsmTypeInterface>(argument.getType()))
      type.getAsmName([&](StringRef name) { setNameFn(argument, name); });
}

LogicalResult MethodOp::verify() {
  MLIRContext *context = getContext();
  const Type expected[] = {CallTensorType::get(context, Role::Query),
                           CallTensorType::get(context, Role::Key),
                           CallTensorType::get(context, Role::Value),
                           CallTensorType::get(context, Role::Output),
                           LseType::get(context),
                           CallTensorType::get(context, Role::DOutput),
                           DLseType::get(context)};
  TypeRange types = getBody().getArgumentTypes();
  if (types.size() != 3 && types.size() != std::size(expected)) // C1
    return emitOpError() << "expects 3 arguments, or 7 of a backward pass, got "
                         << types.size();
  for (auto [index, type, wanted] :
       llvm::enumerate(types, ArrayRef(expected).take_front(types.size())))
    if (type != wanted) // C2
      return emitOpError() << "expects argument " << index << " of type "
                           << wanted << ", got " << type;
  return success();
}

LogicalResult MethodOp::verifyRegions() {
  Operation &last = getBody().front().back();
  if (!isa<ReturnOp>(last)) // C3
    return emitOpError() << "expects sparge.return as its last op, got "
                         << last.getName();
  return success();
}

//===----------------------------------------------------------------------===//
// sparge.parameter
//===----------------------------------------------------------------------===//

void ParameterOp::getAsmResultNames(OpAsmSetValueNameFn setNameFn) {
  setNameFn(getValue(), getName());
}

LogicalResult ParameterOp::verify() {
  if (getName() != "top_k" && getName() != "top_p") // C1
    return emitOpError() << "expects the name top_k or top_p, got "
                         << getNameAttr();
  return success();
}

//===----------------------------------------------------------------------===//
// sparge.return
//===----------------------------------------------------------------------===//

/// C3
static LogicalResult verifyGradients(ReturnOp op) {
  constexpr Role kRoles[] = {Role::DQuery, Role::DKey, Role::DValue};
  SmallVector<Type> expected;
  for (Role role : kRoles)
    expected.push_back(CallTensorType::get(op.getContext(), role));
  TypeRange types = op.getValues().getTypes();
  if (types != TypeRange(expected))
    return op.emitOpError() << "expects the gradients " << expected
                            << " of a backward pass, got " << types;
  return success();
}

LogicalResult ReturnOp::verify() {
  auto method = cast<MethodOp>((*this)->getParentOp());
  if (method.isBackward())
    return verifyGradients(*this);
  TypeRange types = getValues().getTypes();
  auto output = CallTensorType::get(getContext(), Role::Output);
  if (types.empty()) // C1
    return emitOpError() << "expects " << output
                         << " as its first value, got no value";
  if (types.front() != output) // C1
    return emitOpError() << "expects " << output << " as its first value, got "
                         << types.front();
  TypeRange rest = types.drop_front();
  if (!rest.empty() && isa<LseType>(rest.front()))
    rest = rest.drop_front();
  if (!rest.empty() && isa<ListsType>(rest.front()))
    rest = rest.drop_front();
  if (!rest.empty()) // C2
    return emitOpError() << "expects at most one lse and then at most one "
                            "lists after the output, got "
                         << types.drop_front();
  return success();
}

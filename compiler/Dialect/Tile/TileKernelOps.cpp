// SPDX-License-Identifier: Apache-2.0
//
// tile.kernel's text form, and the verifiers of TileKernelOps.td.
#include "compiler/Dialect/Tile/TileDialect.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::tile;

/// kernel ::= @name `(` arguments `)` `parameters` `[` words `]`
///            `grid` %argument `by` word attr-dict region
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name),
                             state.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();

  SmallVector<Attribute> parameters;
  auto parseParameter = [&]() -> ParseResult {
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    parameters.push_back(builder.getStringAttr(word));
    return success();
  };
  OpAsmParser::UnresolvedOperand gridName;
  StringRef gridParameter;
  if (parser.parseKeyword("parameters") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseParameter) ||
      parser.parseKeyword("grid"))
    return failure();
  llvm::SMLoc gridLocation = parser.getCurrentLocation();
  if (parser.parseOperand(gridName) || parser.parseKeyword("by") ||
      parser.parseKeyword(&gridParameter) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();

  SmallVector<Attribute> names;
  std::optional<int64_t> gridArgument;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    StringRef spelling = argument.ssaName.name;
    if (spelling == gridName.name)
      gridArgument = static_cast<int64_t>(index);
    names.push_back(builder.getStringAttr(spelling.drop_front()));
  }
  if (!gridArgument)
    return parser.emitError(gridLocation)
           << "expects the grid to name an argument of the kernel, got "
           << gridName.name;
  state.addAttribute(getArgumentNamesAttrName(state.name),
                     builder.getArrayAttr(names));
  state.addAttribute(getParametersAttrName(state.name),
                     builder.getArrayAttr(parameters));
  state.addAttribute(getGridArgumentAttrName(state.name),
                     builder.getI64IntegerAttr(*gridArgument));
  state.addAttribute(getGridParameterAttrName(state.name),
                     builder.getStringAttr(gridParameter));
  Region *body = state.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, builder, state.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ")\n    parameters [";
  llvm::interleaveComma(getParameters().getAsValueRange<StringAttr>(), printer);
  printer << "]\n    grid ";
  printer.printOperand(getBody().getArgument(getGridArgument()));
  printer << " by " << getGridParameter();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getArgumentNamesAttrName(),
                            getParametersAttrName(), getGridArgumentAttrName(),
                            getGridParameterAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (auto [argument, name] :
       llvm::zip(region.getArguments(),
                 getArgumentNames().getAsValueRange<StringAttr>()))
    setName(argument, name);
}

/// C4 for one op: everything symbolic in its types and attributes.
static LogicalResult verifyDeclared(Operation *op,
                                    const llvm::StringSet<> &declared) {
  LogicalResult result = success();
  auto check = [&](StringRef name) {
    if (succeeded(result) && !declared.contains(name))
      result = op->emitOpError()
               << "expects '" << name
               << "' among the kernel's parameters, got no such parameter";
  };
  AttrTypeWalker walker;
  walker.addWalk([&](ElementType type) { check(type.getName()); });
  walker.addWalk([&](SizesAttr attr) {
    for (Attribute size : attr.getSizes())
      if (auto name = dyn_cast<StringAttr>(size))
        check(name.getValue());
  });
  walker.addWalk([&](ScratchType type) {
    if (auto name = dyn_cast<StringAttr>(type.getRows()))
      check(name.getValue());
  });
  for (Type type : op->getResultTypes())
    walker.walk(type);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        walker.walk(type);
  walker.walk(op->getAttrDictionary());
  if (auto parameter = dyn_cast<ParameterOp>(op))
    check(parameter.getName());
  return result;
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (getArgumentNames().size() != block.getNumArguments())
    return emitOpError() << "expects a name for each argument, got "
                         << getArgumentNames().size() << " for "
                         << block.getNumArguments();
  for (auto [name, argument] :
       llvm::zip(getArgumentNames().getAsValueRange<StringAttr>(),
                 block.getArguments())) // C1
    if (Type type = argument.getType();
        !isa<GlobalType, IndexType, Float32Type>(type))
      return emitOpError() << "expects argument '" << name
                           << "' to be a !tile.global, index or f32, got "
                           << type;
  int64_t gridArgument = getGridArgument();
  auto grid =
      gridArgument >= 0 && gridArgument < block.getNumArguments()
          ? dyn_cast<GlobalType>(block.getArgument(gridArgument).getType())
          : GlobalType();
  if (!grid || grid.getRank() < 3) // C2
    return emitOpError()
           << "expects the grid's argument to be a !tile.global of rank 3 or "
              "more, got argument "
           << gridArgument;
  llvm::StringSet<> declared;
  for (StringRef parameter : getParameters().getAsValueRange<StringAttr>())
    if (!declared.insert(parameter).second) // C3
      return emitOpError() << "expects unique parameters, got '" << parameter
                           << "' twice";
  if (!declared.contains(getGridParameter())) // C3
    return emitOpError() << "expects the grid's parameter among the kernel's, "
                            "got '"
                         << getGridParameter() << "'";
  if (auto level = getAssemblerLevel(); level && (*level < 0 || *level > 3))
    return emitOpError() << "expects an assembler_level from 0 to 3, got " // C5
                         << *level;
  WalkResult walk = (*this)->walk([&](Operation *op) { // C4
    return failed(verifyDeclared(op, declared)) ? WalkResult::interrupt()
                                                : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult ParameterOp::verify() {
  if (!(*this)->getParentOfType<KernelOp>()) // C2
    return emitOpError() << "expects a tile.kernel around it, got none";
  return success();
}

LogicalResult DimOp::verify() {
  int64_t dimension = getDimension();
  if (dimension < 0 || dimension >= getSource().getType().getRank()) // C1
    return emitOpError() << "expects a dimension below the rank "
                         << getSource().getType().getRank() << ", got "
                         << dimension;
  return success();
}

// SPDX-License-Identifier: Apache-2.0
//
// The tile dialect: types, attributes and ops (reference: TileOps.td).
#pragma once

#include "compiler/Dialect/Tile/TileDialectDialect.h.inc"
#include "compiler/Dialect/Tile/TileTypesEnums.h.inc"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesTypes.h.inc"

namespace mlir::tile {
// Text forms of sizes on ops: a word or an integer, and a list of them.
ParseResult parseSize(OpAsmParser &parser, SizesAttr &size);
void printSize(OpAsmPrinter &printer, Operation *, SizesAttr size);
ParseResult parseSizeList(OpAsmParser &parser, SizesAttr &sizes);
void printSizeList(OpAsmPrinter &printer, Operation *, SizesAttr sizes);
} // namespace mlir::tile

#define GET_OP_CLASSES
#include "compiler/Dialect/Tile/TileOps.h.inc"

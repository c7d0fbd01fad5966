// SPDX-License-Identifier: Apache-2.0
//
// The tile dialect: types, attributes and ops (reference: TileOps.td).
#pragma once

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

#include "compiler/Dialect/Tile/TileDialectDialect.h.inc"
#include "compiler/Dialect/Tile/TileTypesEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/Dialect/Tile/TileTypesTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/Dialect/Tile/TileOps.h.inc"

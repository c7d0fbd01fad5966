// SPDX-License-Identifier: Apache-2.0
//
// The sparge dialect: methods of sparse attention over whole tensors. The
// meaning of each op stands in its .td file.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

// clang-format off: generated code needs the headers above it
#include "compiler/Dialect/Sparge/SpargeOpsDialect.h.inc"
#include "compiler/Dialect/Sparge/SpargeOpsEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Sparge/SpargeOpsAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/Dialect/Sparge/SpargeOpsTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/Dialect/Sparge/SpargeOps.h.inc"
// clang-format on

// SPDX-License-Identifier: Apache-2.0
//
// Registration and types of the sparge dialect.
#include "compiler/Dialect/Sparge/Sparge.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::sparge;

#include "compiler/Dialect/Sparge/SpargeOpsDialect.cpp.inc"
#include "compiler/Dialect/Sparge/SpargeOpsEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Sparge/SpargeOpsAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/Dialect/Sparge/SpargeOpsTypes.cpp.inc"

void SpargeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/Dialect/Sparge/SpargeOpsAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/Dialect/Sparge/SpargeOpsTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/Dialect/Sparge/SpargeOps.cpp.inc"
      >();
}

void CallTensorType::getAsmName(OpAsmSetNameFn setNameFn) const {
  constexpr StringLiteral kNames[] = {"q",   "k",   "v",   "o",
                                      "d_q", "d_k", "d_v", "d_o"};
  setNameFn(kNames[static_cast<unsigned>(getRole())]);
}

void PooledType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn(getRole() == Role::Query ? "pooled_q" : "pooled_k");
}

LogicalResult
PooledType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   Role role) {
  if (role != Role::Query && role != Role::Key) // C1
    return emitError() << "expects role query or key, got "
                       << stringifyRole(role);
  return success();
}

void ScoresType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("scores");
}

void ListsType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("lists");
}

void KeyListsType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("key_lists");
}

void LseType::getAsmName(OpAsmSetNameFn setNameFn) const { setNameFn("lse"); }

void DLseType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("d_lse");
}

void DeltaType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("delta");
}

void PlacesType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("places");
}

void UnkeptType::getAsmName(OpAsmSetNameFn setNameFn) const {
  setNameFn("unkept");
}

void KeptType::getAsmName(OpAsmSetNameFn setNameFn) const { setNameFn("kept"); }

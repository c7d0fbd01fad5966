// SPDX-License-Identifier: Apache-2.0
//
// The whole sparge dialect, for mlir-tblgen.
include "compiler/Dialect/Sparge/SpargeDialect.td"
include "compiler/Dialect/Sparge/SpargeTypes.td"
include "compiler/Dialect/Sparge/MethodOps.td"
include "compiler/Dialect/Sparge/SelectionOps.td"
include "compiler/Dialect/Sparge/CustomOps.td"
include "compiler/Dialect/Sparge/AttentionOps.td"
include "compiler/Dialect/Sparge/LaunchOps.td"

// SPDX-License-Identifier: Apache-2.0
//
// tile-specialise: values that are missing or of the wrong kind.
// RUN: not sparge-opt %s --tile-specialise 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not sparge-opt %s --tile-specialise=parameters=elem=float32,rows=float32 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not sparge-opt %s --tile-specialise=parameters=elem=8,rows=8 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not sparge-opt %s --tile-specialise=parameters=elem=float32,rows=0 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not sparge-opt %s --tile-specialise=parameters=elem=float64,rows=8 2>&1 | FileCheck %s --check-prefix=VALUE

// MISSING: tile_specialise_invalid.mlir:[[#@LINE+4]]:1: error: 'tile.kernel' op expects a value for parameter 'elem', got none
// KIND: error: 'tile.kernel' op expects positive integers for sizes and data types for elements, got a parameter of the other kind
// VALUE: error: expects parameter 'elem' to be an integer or float32, bfloat16, float16, got 'float64'

tile.kernel @needs_values(%x: !tile.global<4 x !tile.element<"elem">>) parameters [elem, rows] grid %x by rows {
  %0 = tile.iota : tensor<?xi32, #tile.sizes<rows>>
}

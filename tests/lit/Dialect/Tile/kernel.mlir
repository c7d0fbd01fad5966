// SPDX-License-Identifier: Apache-2.0
//
// tile.kernel and what tells a program where it works: round trip.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @double(%x: !tile.global<4 x !tile.element<"elem">>, %y: !tile.global<3 x f32>, %count: index, %factor: f32)
// CHECK-NEXT: parameters [elem, rows, wide]
// CHECK-NEXT: grid %x by rows {
tile.kernel @double(%x: !tile.global<4 x !tile.element<"elem">>, %y: !tile.global<3 x f32>,
                    %count: index, %factor: f32)
    parameters [elem, rows, wide]
    grid %x by rows {
  // CHECK: tile.parameter "rows" : index
  %rows = tile.parameter "rows" : index
  // CHECK: tile.parameter "wide" : i1
  %wide = tile.parameter "wide" : i1
  // CHECK: tile.program_id : index, index, index
  %batch, %head, %tile = tile.program_id : index, index, index
  // CHECK: tile.dim %x, 3 : !tile.global<4 x !tile.element<"elem">>
  %dim = tile.dim %x, 3 : !tile.global<4 x !tile.element<"elem">>
  // CHECK: tile.is_present %y : !tile.global<3 x f32>
  %present = tile.is_present %y : !tile.global<3 x f32>
  tile.return
}

// CHECK: grid %x by rows attributes {assembler_level = 1 : i64} {
tile.kernel @ready_sooner(%x: !tile.global<4 x f32>) parameters [rows]
    grid %x by rows attributes {assembler_level = 1} {
}

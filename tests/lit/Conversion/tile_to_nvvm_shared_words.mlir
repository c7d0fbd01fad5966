// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: words in shared memory that warpgroups write and read.
// RUN: sparge-opt %s --tile-specialise="parameters=n=64" --convert-tile-to-nvvm --canonicalize --cse | FileCheck %s

!row_note = !tile.shared<n x f32>
!column_note = !tile.shared<16 x f32>
!ring = !tile.ring<!row_note, !column_note>
!rows = tensor<?xf32, #tile.sizes<n>>
!wide = tensor<?x?xf32, #tile.sizes<n, 16>>

// Both rows of a thread by the first of the four lanes that have them, 32 bytes
// apart. The thread's number is read where it is needed.
// CHECK-LABEL: llvm.func @words(
// CHECK: %[[THREAD:.*]] = llvm.inline_asm {{.*}}"mov.u32 $0, %tid.x;", "=r"
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %c32_i32
// CHECK: %[[IN_GROUP:.*]] = arith.remui %[[LANE]], %c4_i32
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[IN_GROUP]], %c0_i32
// CHECK: llvm.inline_asm {{.*}}"@$2 st.shared.b32 [$0], $1;", "r,f,b,~{memory}" %[[FIRST:[^,]*]], %{{.*}}, %[[IS_FIRST]]
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c32_i32
// CHECK: llvm.inline_asm {{.*}}"@$2 st.shared.b32 [$0], $1;", "r,f,b,~{memory}" %[[SECOND]], %{{.*}}, %[[IS_FIRST]]
// Two words of every eight columns, again with the thread's number read there.
// CHECK: %[[AGAIN:.*]] = llvm.inline_asm {{.*}}"mov.u32 $0, %tid.x;", "=r"
// CHECK: arith.remui %[[AGAIN]], %c32_i32
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
tile.kernel @words(%x: !tile.global<3 x f32>) parameters [n] grid %x by n {
  %f1 = arith.constant 1.0 : f32
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 232 {
    %row_note, %column_note = tile.ring_wait %ring[%at] : !ring -> !row_note, !column_note
    %ones = tile.splat %f1 : f32 -> !rows
    tile.store_shared %ones, %row_note {tile.late_addresses} : !rows, !row_note
    %columns = tile.load_shared %column_note {tile.late_addresses} : !column_note -> tensor<16xf32>
    %wide = tile.expand %columns axis 0 : tensor<16xf32> -> !wide
    %largest = tile.reduce max %wide : !wide -> !rows
    tile.store_shared %largest, %row_note : !rows, !row_note
    tile.ring_release %ring[%at] : !ring
  }
}

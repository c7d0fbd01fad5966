// SPDX-License-Identifier: Apache-2.0
//
// tile.ring and what stations do with it, tile.store_note, tile.load_note.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s

!tile = !tile.shared<n x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!tile, !note>

// CHECK-LABEL: tile.kernel @rings
// CHECK: %[[RING:.*]] = tile.ring stages stages passed_by [warps, 1] : !tile.ring<
// CHECK: %[[AT:.*]] = tile.ring_start : !tile.cursor
// CHECK: %[[SLOT:.*]]:2 = tile.ring_acquire %[[RING]][%[[AT]]]
// CHECK: tile.store_note(%{{.*}}, %{{.*}}), %[[SLOT]]#1 : !tile.shared<2 x i32>
// CHECK: tile.ring_commit %[[RING]][%[[AT]]] loads(%[[SLOT]]#0 : !tile.shared<n x 64 x bf16, swizzle 128>)
// CHECK: tile.ring_next %[[RING]][%[[AT]]] : {{.*}} -> !tile.cursor
// CHECK: tile.ring_commit %[[RING]][%{{.*}}] : !tile.ring
// CHECK: tile.ring_wait %[[RING]][%[[AT]]] : !tile.ring
// CHECK: tile.load_note %{{.*}} : !tile.shared<2 x i32> -> i32, i32
// CHECK: tile.ring_pieces %[[RING]][%[[AT]]] : !tile.ring
// CHECK: tile.ring_release %[[RING]][%[[AT]]] : !tile.ring
// CHECK: tile.ring_wait %[[RING]][%[[AT]]] station 2 : !tile.ring
// CHECK: tile.ring_release %[[RING]][%[[AT]]] station 2 : !tile.ring
tile.kernel @rings(%x: !tile.global<4 x bf16>) parameters [n, stages, warps] grid %x by n {
  %c1 = arith.constant 1 : i32
  %ring = tile.ring stages stages passed_by [warps, 1] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %tile, %note = tile.ring_acquire %ring[%at] : !ring -> !tile, !note
    tile.store_note (%c1, %c1), %note : !note
    tile.ring_commit %ring[%at] loads(%tile : !tile) : !ring
    %next = tile.ring_next %ring[%at] : !ring -> !tile.cursor
    tile.ring_commit %ring[%next] : !ring
  }
  tile.role "consumers" warps warps registers 128 {
    %tile, %note = tile.ring_wait %ring[%at] : !ring -> !tile, !note
    %a, %b = tile.load_note %note : !note -> i32, i32
    %same_tile, %same_note = tile.ring_pieces %ring[%at] : !ring -> !tile, !note
    tile.ring_release %ring[%at] : !ring
  }
  tile.role "storer" warps 1 registers 24 {
    %tile, %note = tile.ring_wait %ring[%at] station 2 : !ring -> !tile, !note
    tile.ring_release %ring[%at] station 2 : !ring
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// tile.tensor_map, the async loads and stores, and what moves between shared
// memory and registers.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=n=128,box=32,boxes=4,d=72" -o /dev/null

!slot = !tile.shared<n x d x bf16, swizzle 128>
!box = !tile.shared<box x d x bf16, swizzle 128>
!note = !tile.shared<boxes x i32>
!ring = !tile.ring<!slot, !note>

// CHECK-LABEL: tile.kernel @copies
// CHECK: %[[MAP:.*]] = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !tile.shared<n x d x bf16, swizzle 128>>
// CHECK: %[[BOXES:.*]] = tile.tensor_map %x
// CHECK: tile.load_async %[[MAP]][%{{.*}}, %{{.*}}, %{{.*}}] into %{{.*}} :
// CHECK: %[[ROWS:.*]] = tile.list_boxes %{{.*}}[%{{.*}}] count %{{.*}} block %{{.*}} box %{{.*}} limit %{{.*}} : !tile.view<1 x i32> -> tensor<?xi32, #tile.sizes<boxes>>
// CHECK: tile.store_shared %[[ROWS]], %{{.*}} : tensor<?xi32, #tile.sizes<boxes>>, !tile.shared<boxes x i32>
// CHECK: tile.gather_async %[[BOXES]][%{{.*}}, %{{.*}}] rows %[[ROWS]] into %{{.*}} :
// CHECK: tile.store_async %{{.*}}, %[[MAP]][%{{.*}}, %{{.*}}, %{{.*}}] :
// CHECK: tile.store_wait
// CHECK: tile.load_shared %{{.*}} : !tile.shared<boxes x i32> -> tensor<?xi32, #tile.sizes<boxes>>
// CHECK: tile.shared_positions %{{.*}} : !tile.shared<boxes x i32> -> tensor<?xi32, #tile.sizes<n>>
// CHECK: tile.shared_columns %{{.*}}[%{{.*}}] : !tile.shared<n x d x bf16, swizzle 128> -> !tile.shared<n x 8 x bf16, swizzle 128>
tile.kernel @copies(%x: !tile.global<4 x bf16>, %lists: !tile.global<4 x i32>) parameters [n, d, box, boxes] grid %x by n {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %box_map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  %list = tile.slice %lists[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  tile.role "loader" warps 1 registers 24 {
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    tile.load_async %map[%c0, %c0, %c8] into %slot : !tile.tensor_map<4, !slot>, !slot
    %rows = tile.list_boxes %list[%c0] count %c8 block %c8 box %c8 limit %c8 : !tile.view<1 x i32> -> tensor<?xi32, #tile.sizes<boxes>>
    tile.store_shared %rows, %note : tensor<?xi32, #tile.sizes<boxes>>, !note
    tile.gather_async %box_map[%c0, %c0] rows %rows into %slot
        : !tile.tensor_map<4, !box>, tensor<?xi32, #tile.sizes<boxes>>, !slot
    tile.store_async %slot, %map[%c0, %c0, %c8] : !slot, !tile.tensor_map<4, !slot>
    tile.store_wait
    %again = tile.load_shared %note : !note -> tensor<?xi32, #tile.sizes<boxes>>
  }
  tile.role "consumers" warps 4 registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    %positions = tile.shared_positions %note : !note -> tensor<?xi32, #tile.sizes<n>>
    %part = tile.shared_columns %slot[%c0] : !slot -> !tile.shared<n x 8 x bf16, swizzle 128>
  }
}

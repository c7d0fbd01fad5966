// SPDX-License-Identifier: Apache-2.0
//
// Types of hand-scheduled kernels, with symbolic and with fixed sizes.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=elem=float16,n=64,d=96,swizzle_bytes=64,warps=8" \
// RUN:   | FileCheck %s --check-prefix=FIXED

!elem = !tile.element<"elem">
!slot = !tile.shared<n x d x !elem, swizzle swizzle_bytes>
!note = !tile.shared<4 x i32>

// CHECK-LABEL: tile.kernel @types
// CHECK: tile.tensor_map %x : {{.*}} -> !tile.tensor_map<4, !tile.shared<n x d x !tile.element<"elem">, swizzle swizzle_bytes>>
// CHECK: tile.ring stages 2 passed_by [warps, 1] : !tile.ring<!tile.shared<n x d x !tile.element<"elem">, swizzle swizzle_bytes>, !tile.shared<4 x i32>>
// CHECK: tile.ring_start : !tile.cursor
// FIXED: tile.tensor_map %x : {{.*}} -> !tile.tensor_map<4, !tile.shared<64 x 96 x f16, swizzle 64>>
// FIXED: tile.ring stages 2 passed_by [8, 1] : !tile.ring<!tile.shared<64 x 96 x f16, swizzle 64>, !tile.shared<4 x i32>>
// FIXED: tile.dot_async {{.*}} -> !tile.pending<tensor<64x64xf32>>
tile.kernel @types(%x: !tile.global<4 x !elem>) parameters [elem, n, d, swizzle_bytes, warps] grid %x by n {
  %map = tile.tensor_map %x : !tile.global<4 x !elem> -> !tile.tensor_map<4, !slot>
  %ring = tile.ring stages 2 passed_by [warps, 1] : !tile.ring<!slot, !note>
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps warps registers 128 {
    %slot, %note = tile.ring_wait %ring[%at] : !tile.ring<!slot, !note> -> !slot, !note
    %s = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<tensor<?x?xf32, #tile.sizes<n, n>>>
    %done = tile.dot_wait 0 (%s : !tile.pending<tensor<?x?xf32, #tile.sizes<n, n>>>) -> tensor<?x?xf32, #tile.sizes<n, n>>
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// tile.fma_relu, tile.low_bits, tile.columns, tile.first_columns, tile.load_columns, tile.load_rows,
// tile.gather_panels, dots of 8-bit elements.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=score=float16,m=128,n=64,d=32,r=40,box=32,boxes=2" -o /dev/null
// RUN: sparge-opt %s --tile-specialise="parameters=score=float32,m=128,n=64,d=32,r=40,box=32,boxes=2" -o /dev/null

!score = !tile.element<"score">
!q_slot = !tile.shared<m x d x f8E4M3FN, swizzle 32>
!k_slot = !tile.shared<n x d x f8E4M3FN, swizzle 32>
!v_slot = !tile.shared<r x n x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<r x box x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!q_slot, !k_slot, !v_slot>
!scores = tensor<?x?x!score, #tile.sizes<m, n>>
!weights = tensor<?x?xf8E4M3FN, #tile.sizes<m, n>>
!output = tensor<?x?xf32, #tile.sizes<m, r>>

// CHECK-LABEL: tile.kernel @narrow
// CHECK: tile.tensor_map %{{.*}} -> !tile.tensor_map<4, !tile.shared<r x box x f8E4M3FN, swizzle 16>>
// CHECK: tile.gather_panels %{{.*}}[%{{.*}}, %{{.*}}] columns %{{.*}} into %{{.*}} : !tile.tensor_map<4, !tile.shared<r x box x f8E4M3FN, swizzle 16>>, tensor<?xi32, #tile.sizes<boxes>>, !tile.shared<r x n x f8E4M3FN, swizzle 16>
// CHECK: %[[S:.*]] = tile.dot_wait 0(%{{.*}} : !tile.pending<tensor<?x?x!tile.element<"score">, #tile.sizes<m, n>>>)
// CHECK: tile.first_columns %[[S]] to %{{.*}} otherwise %[[S]] : tensor<?x?x!tile.element<"score">, #tile.sizes<m, n>>
// CHECK: %[[BITS:.*]] = tile.fma_relu %[[S]], %[[S]], %[[S]] : tensor<?x?x!tile.element<"score">, #tile.sizes<m, n>>
// CHECK: %[[P:.*]] = tile.low_bits %[[BITS]] : tensor<?x?x!tile.element<"score">, #tile.sizes<m, n>> -> tensor<?x?xf8E4M3FN, #tile.sizes<m, n>>
// CHECK: %[[O:.*]] = tile.dot_wait 0(
// CHECK: tile.columns %[[O]] from d : tensor<?x?xf32, #tile.sizes<m, r>> -> tensor<?x?xf32, #tile.sizes<m, 8>>
// CHECK: tile.columns %[[O]] from 0 : tensor<?x?xf32, #tile.sizes<m, r>> -> tensor<?x?xf32, #tile.sizes<m, d>>
// CHECK: tile.load_columns %{{.*}}[%{{.*}}] : !tile.view<1 x f32> -> tensor<?xf32, #tile.sizes<d>>
// CHECK: tile.load_rows %{{.*}}[%{{.*}}] : !tile.view<1 x f32> -> tensor<?xf32, #tile.sizes<m>>
tile.kernel @narrow(%v: !tile.global<4 x f8E4M3FN>, %scales: !tile.global<1 x f32>) parameters [score, m, n, d, r, box, boxes] grid %v by m {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %q, %k, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !q_slot, !k_slot, !v_slot
    %firsts = tile.splat %c0_i32 : i32 -> tensor<?xi32, #tile.sizes<boxes>>
    tile.ring_commit %ring[%at] loads(%v_slot : !v_slot) : !ring
    tile.gather_panels %map[%c0, %c0] columns %firsts into %v_slot
        : !tile.tensor_map<4, !v_box>, tensor<?xi32, #tile.sizes<boxes>>, !v_slot
  }
  tile.role "consumers" warps 8 registers 128 {
    %q, %k, %v_slot = tile.ring_wait %ring[%at] : !ring -> !q_slot, !k_slot, !v_slot
    %products = tile.dot_async %q, %k transposed : !q_slot, !k_slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %first = tile.first_columns %s to %c0 otherwise %s : !scores
    %bits = tile.fma_relu %s, %s, %s : !scores
    %p = tile.low_bits %bits : !scores -> !weights
    %adding = tile.dot_async %p, %v_slot transposed : !weights, !v_slot -> !tile.pending<!output>
    %o = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
    %sums = tile.columns %o from d : !output -> tensor<?x?xf32, #tile.sizes<m, 8>>
    %values = tile.columns %o from 0 : !output -> tensor<?x?xf32, #tile.sizes<m, d>>
    %view = tile.slice %scales[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
    %columns = tile.load_columns %view[%c0] : !tile.view<1 x f32> -> tensor<?xf32, #tile.sizes<d>>
    %row_values = tile.load_rows %view[%c0] : !tile.view<1 x f32> -> tensor<?xf32, #tile.sizes<m>>
  }
}

// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[PEAKS:.*]] = tile.peak_rows %{{.*}}[%{{.*}} to %{{.*}}] : !tile.view<2 x bf16> -> tensor<?xf32, #tile.sizes<d>>
// CHECK: tile.scale_rows %{{.*}}[%{{.*}} to %{{.*}}] by %{{.*}} into %{{.*}} columns d : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN>
// CHECK: tile.peak_rows %{{.*}}[%{{.*}} to %{{.*}}] : !tile.view<2 x bf16> -> tensor<?xf32, #tile.sizes<d>>, tensor<?xf32, #tile.sizes<d>>
// CHECK: tile.scale_rows %{{.*}}[%{{.*}} to %{{.*}}] by %{{.*}} into %{{.*}} columns d : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> -> tensor<?xf32, #tile.sizes<d>>{{$}}
// CHECK: %{{.*}}, %{{.*}} = tile.scale_rows %{{.*}} -> tensor<?xf32, #tile.sizes<d>> saturates i1
// CHECK: %{{.*}} = tile.scale_rows %{{.*}}, !tile.view<2 x f8E4M3FN> saturates i1
// CHECK: tile.scale_cores %{{.*}}[%{{.*}} to %{{.*}}] by %[[PEAKS]] into %{{.*}} : !tile.view<2 x bf16>, tensor<?xf32, #tile.sizes<d>>, !tile.view<2 x f8E4M3FN>{{$}}
// CHECK: %{{.*}} = tile.scale_cores %{{.*}}, !tile.view<2 x f8E4M3FN> saturates i1
tile.kernel @rows(%x: !tile.global<3 x bf16>, %y: !tile.global<3 x f8E4M3FN>) parameters [m, d] grid %x by m {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %f1 = arith.constant 1.0 : f32
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %rows = tile.slice %x[%c0] : !tile.global<3 x bf16> -> !tile.view<2 x bf16>
  %narrow = tile.slice %y[%c0] : !tile.global<3 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %peaks = tile.peak_rows %rows[%c0 to %c16] : !tile.view<2 x bf16> -> tensor<?xf32, #tile.sizes<d>>
  tile.scale_rows %rows[%c0 to %c16] by %f1 into %narrow columns d : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN>
  %peaks_too, %sums = tile.peak_rows %rows[%c0 to %c16]
      : !tile.view<2 x bf16> -> tensor<?xf32, #tile.sizes<d>>, tensor<?xf32, #tile.sizes<d>>
  %sums_too = tile.scale_rows %rows[%c0 to %c16] by %f1 into %narrow columns d
      : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> -> tensor<?xf32, #tile.sizes<d>>
  %sums_again, %saturates = tile.scale_rows %rows[%c0 to %c16] by %f1 into %narrow columns d
      : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> -> tensor<?xf32, #tile.sizes<d>> saturates i1
  %alone = tile.scale_rows %rows[%c0 to %c16] by %f1 into %narrow columns d
      : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> saturates i1
  tile.scale_cores %rows[%c0 to %c16] by %peaks into %narrow
      : !tile.view<2 x bf16>, tensor<?xf32, #tile.sizes<d>>, !tile.view<2 x f8E4M3FN>
  %of_cores = tile.scale_cores %rows[%c0 to %c16] by %peaks into %narrow
      : !tile.view<2 x bf16>, tensor<?xf32, #tile.sizes<d>>, !tile.view<2 x f8E4M3FN> saturates i1
}

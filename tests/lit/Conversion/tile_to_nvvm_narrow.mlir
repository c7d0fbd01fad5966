// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: 8-bit dots, images, pairs of float16, rows in eight bits.
// RUN: sparge-opt %s --tile-specialise="parameters=n=64" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!slot = !tile.shared<n x 128 x f8E4M3FN, swizzle 128>
!v_slot = !tile.shared<136 x n x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<136 x 32 x f8E4M3FN, swizzle 16>
!ring = !tile.ring<!slot, !v_slot>
!scores = tensor<?x?xf16, #tile.sizes<n, n>>
!weights = tensor<?x?xf8E4M3FN, #tile.sizes<n, n>>
!output = tensor<?x?xf32, #tile.sizes<n, 136>>

// A box of 32 columns of an image of 136 rows: 34 core matrices, rows of 128 bytes
// without a swizzle. A slot: 8192 and 8704 bytes.
// CHECK-LABEL: llvm.func @dots(
// CHECK-SAME: spargejit.tensor_maps = [array<i64: 0, 34, 128, 0>]
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,n,b,~{memory}" %{{.*}}, %c8704_i32,
// Seventeen core matrices to sixteen columns; the second box is 4352 bytes on.
// CHECK: arith.divui %{{.*}}, %c16_i32
// CHECK: arith.muli %{{.*}}, %c17_i32
// CHECK-COUNT-2: cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2];"
// Four k32 steps of 32 bytes, in float16 sums, two to a register; no majors.
// CHECK: wgmma.fence.sync.aligned; setp.ne.b32 add, 0, 0; add.u32 low, $16, 0; mov.b64 left, {low, 1073741888};
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k32.f16.e4m3.e4m3 {$0, {{[^}]*}}, $15}, left, right, add, 1, 1;
// CHECK-SAME: add.u32 low, $16, 2;
// CHECK-SAME: add.u32 low, $16, 4;
// CHECK-SAME: add.u32 low, $16, 6;
// CHECK-SAME: "=r,=r,
// CHECK: wgmma.wait_group.sync.aligned 0;", "=r,=r,
// Sixteen columns are four registers, and one comparison.
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[END:.*]], %c0_i32
// CHECK-COUNT-4: arith.select %[[ANY]],
// CHECK-NOT: arith.select
// CHECK: %[[MORE:.*]] = arith.cmpi sgt, %[[END]], %c16_i32
// CHECK-COUNT-4: arith.select %[[MORE]],
// CHECK-COUNT-16: fma.rn.relu.f16x2 $0, $1, $2, $3;
// Low bytes of what a thread has of two groups of eight columns.
// CHECK-COUNT-8: prmt.b32 $0, $1, $2, 0x6420;
// Core matrices: 128 bytes to the next eight rows and no swizzle (high word 8), two
// panels of 2176 bytes to a step (272 sixteens).
// CHECK: setp.ne.b32 add, 0, 0; add.u32 low, $76, 0; mov.b64 right, {low, 8}; wgmma.mma_async.sync.aligned.m64n136k32.f32.e4m3.e4m3
// CHECK-SAME: {$68, $69, $70, $71}, right, add, 1, 1;
// CHECK-SAME: add.u32 low, $76, 272; mov.b64 right, {low, 8};
// CHECK-SAME: {$72, $73, $74, $75}, right, add, 1, 1;
// The sixteen registers of all pairs keep the wait behind them.
// CHECK: lop3.b32 c2, $4, $5, c2, 0xfe;
// CHECK-SAME: lop3.b32 c3, $14, $15, c3, 0xfe; lop3.b32 c0, c0, c1, c2, 0xfe; or.b32 c0, c0, c3; setp.eq.b32 never, c0, 0x7fedbeef; @never st.shared.b32 [$16], c0;
// CHECK: wgmma.wait_group.sync.aligned 0;", "=f,=f,
tile.kernel @dots(%v: !tile.global<4 x f8E4M3FN>) parameters [n] grid %v by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 40 {
    %slot, %v_slot = tile.ring_acquire %ring[%at] : !ring -> !slot, !v_slot
    %firsts = tile.iota : tensor<2xi32>
    tile.ring_commit %ring[%at] loads(%v_slot : !v_slot) : !ring
    tile.gather_panels %map[%c0, %c0] columns %firsts into %v_slot : !tile.tensor_map<4, !v_box>, tensor<2xi32>, !v_slot
  }
  tile.role "consumers" warps 4 registers 232 {
    %slot, %v_slot = tile.ring_wait %ring[%at] : !ring -> !slot, !v_slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %end = tile.dim %v, 2 : !tile.global<4 x f8E4M3FN>
    %no_rows = tile.splat %f0 : f32 -> tensor<?xf32, #tile.sizes<n>>
    %no_halves = tile.convert %no_rows : tensor<?xf32, #tile.sizes<n>> -> tensor<?xf16, #tile.sizes<n>>
    %none = tile.expand %no_halves axis 1 : tensor<?xf16, #tile.sizes<n>> -> !scores
    %first = tile.first_columns %s to %end otherwise %none : !scores
    %bits = tile.fma_relu %first, %s, %s : !scores
    %p = tile.low_bits %bits : !scores -> !weights
    %adding = tile.dot_async %p, %v_slot transposed : !weights, !v_slot -> !tile.pending<!output>
    %o = tile.dot_wait 0 (%adding : !tile.pending<!output>) after %bits : !scores -> !output
    %sums = tile.columns %o from 128 : !output -> tensor<?x?xf32, #tile.sizes<n, 8>>
    %total = tile.reduce max %sums : tensor<?x?xf32, #tile.sizes<n, 8>> -> tensor<?xf32, #tile.sizes<n>>
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!slot = !tile.shared<n x n x f8E4M3FN, swizzle 64>
!ring = !tile.ring<!slot>
!scores = tensor<?x?xf16, #tile.sizes<n, n>>
!mask = tensor<?x?xi1, #tile.sizes<n, n>>
!numbers = tensor<?x?xi32, #tile.sizes<n, n>>
!rows = tensor<?xf32, #tile.sizes<n>>
!score_rows = tensor<?xf16, #tile.sizes<n>>
!weights = tensor<?x?xf8E4M3FN, #tile.sizes<n, n>>

// CHECK-LABEL: llvm.func @pairs(
// One value a row fills a pair.
// CHECK: "llvm.nvvm.ff2f16x2.rn"(%[[LEAST:.*]], %[[LEAST]])
// CHECK: wgmma.wait_group.sync.aligned 0;
// A pair's halves are chosen one by one.
// CHECK: %[[LOW:.*]] = arith.select %{{.*}}, %c65535_i32, %c0_i32
// CHECK: %[[HIGH:.*]] = arith.select %{{.*}}, %c-65536_i32, %c0_i32
// CHECK: arith.ori %[[LOW]], %[[HIGH]]
// Of a row half a thread has eight pairs, three other lanes have the rest; then
// the halves meet.
// CHECK-COUNT-7: max.f16x2
// CHECK: nvvm.shfl.sync bfly
// CHECK: max.f16x2
// CHECK: nvvm.shfl.sync bfly
// CHECK: max.f16x2
// CHECK: prmt.b32 $0, $1, $1, 0x1032;
// CHECK: max.f16x2
// CHECK-COUNT-16: fma.rn.f16x2
// CHECK-COUNT-16: ex2.approx.f16x2
// CHECK-COUNT-16: abs.f16x2
// CHECK-COUNT-8: cvt.rn.satfinite.e4m3x2.f16x2 low, $1;
// CHECK: llvm.load
// CHECK: cvt.rn.satfinite.e4m3x2.f32 low, $2, $1;
tile.kernel @pairs(%x: !tile.global<4 x f8E4M3FN>, %scales: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %least = arith.constant 0xFF800000 : f32
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 232 {
    %least_rows = tile.splat %least : f32 -> !rows
    %hidden_rows = tile.convert %least_rows : !rows -> !score_rows
    %hidden = tile.expand %hidden_rows axis 1 : !score_rows -> !scores
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!scores>
    %s = tile.dot_wait 0 (%products : !tile.pending<!scores>) -> !scores
    %row = tile.iota : tensor<?xi32, #tile.sizes<n>>
    %rows = tile.expand %row axis 1 : tensor<?xi32, #tile.sizes<n>> -> !numbers
    %columns = tile.expand %row axis 0 : tensor<?xi32, #tile.sizes<n>> -> !numbers
    %sees = arith.cmpi sle, %columns, %rows : !numbers
    %visible = arith.select %sees, %s, %hidden : !mask, !scores
    %most = tile.reduce max %visible : !scores -> !score_rows
    %most_f32 = tile.convert %most : !score_rows -> !rows
    %offset = tile.convert %most_f32 : !rows -> !score_rows
    %offsets = tile.expand %offset axis 1 : !score_rows -> !scores
    %exponents = math.fma %visible, %visible, %offsets : !scores
    %powers = math.exp2 %exponents : !scores
    %sizes = math.absf %powers : !scores
    %p = tile.convert %sizes : !scores -> !weights
    %used = tile.dot_async %p, %slot transposed : !weights, !slot -> !tile.pending<!scores>
    %view = tile.slice %scales[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
    %scale = tile.load_columns %view[%c0] : !tile.view<1 x f32> -> !rows
    %factors = tile.expand %scale axis 0 : !rows -> tensor<?x?xf32, #tile.sizes<n, n>>
    %p_32 = tile.convert %factors : tensor<?x?xf32, #tile.sizes<n, n>> -> !weights
    %used_too = tile.dot_async %p_32, %slot transposed : !weights, !slot -> !tile.pending<!scores>
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

// Sixteen lanes to a row of 128, two rows at a time, eight such loads under way.
// CHECK-LABEL: llvm.func @narrows(
// CHECK: llvm.intr.fabs
// CHECK: arith.maxnumf
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: st.global.v2.b32 [$0], {$1, $2};
// Four columns of each of sixteen rows, then sixteen bytes for each column, and
// for the eight rows of ones.
// CHECK: scf.if
// CHECK-COUNT-16: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
// Neighbours exchange two of four columns, four words each.
// CHECK-COUNT-8: nvvm.shfl.sync bfly
// CHECK-COUNT-5: st.global.v4.b32 [$0], {$1, $2, $3, $4};
// The sums are of what was read. Of the codes it is seen whether any is 0x7e or
// 0x7f, but for its sign: then 2 more has the highest bit.
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: arith.andi %{{.*}}, %c2139062143_i32
// CHECK: arith.addi %{{.*}}, %c33686018_i32
// CHECK: arith.ori
// Pieces that are not aligned: two at a time.
// CHECK: scf.for
// CHECK-COUNT-16: llvm.load %{{.*}} : !llvm.ptr<1> -> bf16
// CHECK-NOT: llvm.load
// CHECK: %[[SEEN:.*]] = arith.andi %{{.*}}, %c-2139062144_i32
// CHECK: %[[HERE:.*]] = arith.cmpi ne, %[[SEEN]], %c0_i32
// CHECK: nvvm.vote.sync any %{{.*}}, %[[HERE]]
// Codes of the cores' columns, aligned or not, and none of the ones.
// CHECK-COUNT-32: arith.addi %{{.*}}, %c33686018_i32
// CHECK-NOT: %c33686018_i32
// CHECK: nvvm.vote.sync any
// CHECK: red.release.gpu.global.add.u32
tile.kernel @narrows(%x: !tile.global<4 x bf16>, %rows: !tile.global<4 x f8E4M3FN>,
                     %image: !tile.global<4 x f8E4M3FN>, %sums: !tile.global<1 x f32>,
                     %flags: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %row_view = tile.slice %rows[%c0, %c0] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %image_view = tile.slice %image[%c0, %c0] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  %peaks = tile.peak_rows %view[%c0 to %c64] : !tile.view<2 x bf16> -> tensor<128xf32>
  %peak = tile.total max %peaks : tensor<128xf32> -> f32
  tile.scale_rows %view[%c0 to %c64] by %peak into %row_view columns 128 : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN>
  tile.scale_cores %view[%c0 to %c64] by %peaks into %image_view : !tile.view<2 x bf16>, tensor<128xf32>, !tile.view<2 x f8E4M3FN>
  %sum, %rows_saturate = tile.scale_rows %view[%c0 to %c64] by %peak into %row_view columns 128
      : !tile.view<2 x bf16>, !tile.view<2 x f8E4M3FN> -> tensor<128xf32> saturates i1
  %cores_saturate = tile.scale_cores %view[%c0 to %c64] by %peaks into %image_view
      : !tile.view<2 x bf16>, tensor<128xf32>, !tile.view<2 x f8E4M3FN> saturates i1
  %any = arith.ori %rows_saturate, %cores_saturate : i1
  scf.if %any {
    tile.signal %flags[%c0] by %c1 : !tile.global<1 x i32>
  }
  %first = tile.total sum %sum : tensor<128xf32> -> f32
  %factor_row = tile.slice %sums[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
  tile.store_scalar %first, %factor_row[%c0] : f32, !tile.view<1 x f32>
}

// -----

!slot = !tile.shared<n x n x f16, swizzle 128>
!ring = !tile.ring<!slot>
!tile_ = tensor<?x?xf16, #tile.sizes<n, n>>

// The thread's number is read where the tile is stored, for its addresses.
// CHECK-LABEL: llvm.func @late(
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: %[[THREAD:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %tid.x;", "=r"
// CHECK: arith.remui %[[THREAD]], %c32_i32
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
tile.kernel @late(%x: !tile.global<4 x f16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    %products = tile.dot_async %slot, %slot transposed : !slot, !slot -> !tile.pending<!tile_>
    %s = tile.dot_wait 0 (%products : !tile.pending<!tile_>) -> !tile_
    tile.store_shared %s, %slot {tile.late_addresses} : !tile_, !slot
    tile.ring_release %ring[%at] : !ring
  }
}

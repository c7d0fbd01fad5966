// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: stacks, from registers to global memory, from there to
// shared memory, and as left operands; and sums over lanes.
// RUN: sparge-opt %s --tile-specialise="parameters=n=128" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!weights = tensor<64x64xbf16>
!slot = !tile.shared<16 x 256 x bf16, swizzle 16>
!ring = !tile.ring<!slot>

// 64 columns of 16 rows a warp: 2 KiB, 512 bytes at a time.
// CHECK-LABEL: llvm.func @store_stacked(
// CHECK: cp.async.bulk.wait_group.read 0;
// CHECK: bar.warp.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: fence.proxy.async.shared::cta;
// CHECK: bar.warp.sync
// CHECK: cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;
// CHECK: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 0;
tile.kernel @store_stacked(%x: !tile.global<4 x bf16>, %kept: !tile.global<2 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %true = arith.constant true
  %view = tile.slice %kept[%c0] : !tile.global<2 x bf16> -> !tile.view<1 x bf16>
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
  }
  tile.role "consumers" warps 4 registers 232 {
    %s = tile.splat %f0 : f32 -> tensor<64x64xf32>
    %ds = tile.convert %s : tensor<64x64xf32> -> !weights
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    tile.store_stacked %ds through %slot, %view[%c0] columns 128 rows 64 where %true : !weights, !slot, !tile.view<1 x bf16>
    tile.store_stacked_wait
  }
}

// -----

!stack = !tile.shared<16 x 512 x bf16, swizzle 16>
!k_slot = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!stack, !k_slot>
!output = tensor<128x64xf32>
!output_elem = tensor<128x64xbf16>

// Two runs of 8 KiB; four steps of 16 keys, 4 KiB apart, whose left operands are
// stored M-major: groups of eight rows 256 bytes apart (16).
// CHECK-LABEL: llvm.func @stacked_dot(
// CHECK-COUNT-2: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [$0], [$1], $3, [$2], $4;
// CHECK: add.u32 low, ${{[0-9]+}}, 0; mov.b64 left, {low, 16};
// CHECK-SAME: add.u32 low, ${{[0-9]+}}, 256; mov.b64 left, {low, 16};
// CHECK-SAME: add.u32 low, ${{[0-9]+}}, 768; mov.b64 left, {low, 16};
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, left, right, add, 1, 1, 1, 1;
// CHECK-COUNT-16: st.global.b32
tile.kernel @stacked_dot(%x: !tile.global<4 x bf16>, %kept: !tile.global<2 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %view = tile.slice %kept[%c0] : !tile.global<2 x bf16> -> !tile.view<1 x bf16>
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !k_slot>
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %firsts = tile.splat %c0_i32 : i32 -> tensor<2xi32>
    %stack, %k = tile.ring_acquire %ring[%at] : !ring -> !stack, !k_slot
    tile.ring_commit %ring[%at] loads(%stack, %k : !stack, !k_slot) : !ring
    tile.gather_runs %view from %firsts into %stack : !tile.view<1 x bf16>, tensor<2xi32>, !stack
    tile.load_async %map[%c0, %c0, %c0] into %k : !tile.tensor_map<4, !k_slot>, !k_slot
  }
  tile.role "consumers" warps 8 registers 104 {
    %stack, %k = tile.ring_wait %ring[%at] : !ring -> !stack, !k_slot
    %adding = tile.dot_async %stack stacked, %k : !stack, !k_slot -> !tile.pending<!output>
    %dq = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
    %rounded = tile.convert %dq : !output -> !output_elem
    %rows = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    tile.store %rounded, %rows[%c0, %c0] : !output_elem, !tile.view<2 x bf16>
  }
}

// -----

!slot = !tile.shared<128 x 72 x bf16, swizzle 128>
!box = !tile.shared<16 x 72 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
!output = tensor<128x72xf32>

// Two panels, 16 KiB and 64 columns apart, of the first 32 rows.
// CHECK-LABEL: llvm.func @store_slabs(
// CHECK: cp.async.bulk.wait_group.read 0;
// CHECK: bar.warp.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: stmatrix.sync.aligned.m8n8.x2.shared.b16
// CHECK-NOT: stmatrix
// CHECK: fence.proxy.async.shared::cta;
// CHECK: bar.warp.sync
// CHECK-COUNT-2: cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [$1, {$2, $3, $4, $5}], [$0];
// CHECK: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 0;
tile.kernel @store_slabs(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 1 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
  }
  tile.role "consumers" warps 8 registers 104 {
    %sum = tile.splat %f0 : f32 -> !output
    %rounded = tile.convert %sum : !output -> tensor<128x72xbf16>
    %slot = tile.ring_pieces %ring[%at] : !ring -> !slot
    tile.store_slabs %rounded through %slot, %map[%c0, %c0, %c0, %c0] rows 32 : tensor<128x72xbf16>, !slot, !tile.tensor_map<4, !box>
    tile.store_stacked_wait
  }
}

// -----

// CHECK-LABEL: llvm.func @sums(
// CHECK-COUNT-5: nvvm.shfl.sync up
tile.kernel @sums(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %numbers = tile.iota : tensor<32xi32>
  %sums = tile.sum_up_to %numbers : tensor<32xi32> -> tensor<32xi32>
  %view = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %true = arith.constant true
  %all = tile.splat %true : i1 -> tensor<32xi1>
  tile.scatter %sums at %numbers where %all into %view : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x i32>
}

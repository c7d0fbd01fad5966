// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: launch, roles, rings, copies, dots.
// RUN: sparge-opt %s --tile-specialise="parameters=n=64" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=n=64" --convert-tile-to-nvvm=every-lane-arrives --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=LANES

// With every lane arriving, for racecheck: 32 arrivals a warp.
// LANES: mbarrier.init{{.*}} %{{.*}}, %c32_i32,
// LANES: mbarrier.init{{.*}} %{{.*}}, %c128_i32,
// LANES: mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,n,b,~{memory}" %{{.*}}, %c8192_i32,
// LANES: mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}"

!slot = !tile.shared<n x 64 x bf16, swizzle 128>
!box = !tile.shared<32 x 64 x bf16, swizzle 128>
!note = !tile.shared<2 x i32>
!ring = !tile.ring<!slot, !note>

// One matrix of 64 x 64 x 2 bytes in each of two slots, two notes of 16 bytes, two
// stations of two barriers, and the spare word.
// CHECK: llvm.mlir.global external @spargejit_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: llvm.func @roles_and_rings(
// CHECK-SAME: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<9 x i64>, nvvm.grid_constant}
// CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32
// CHECK-SAME: spargejit.assembler_level = 1 : i64, spargejit.persistent = true
// CHECK-SAME: spargejit.shared_bytes = 16452 : i64
// CHECK-SAME: spargejit.tensor_maps = [array<i64: 0, 64, 64, 128>, array<i64: 0, 32, 64, 128>], spargejit.threads = 256 : i64
// Station 0 arrives once with its bytes; station 1 once a warp.
// CHECK: mbarrier.init{{.*}} %{{.*}}, %[[ONE:c1_i32]],
// CHECK: mbarrier.init{{.*}} %{{.*}}, %[[ONE]],
// CHECK: mbarrier.init{{.*}} %{{.*}}, %c4_i32,
// CHECK: mbarrier.init{{.*}} %{{.*}}, %c4_i32,
// CHECK: fence.mbarrier_init
// CHECK: nvvm.barrier0
// Each role is one branch; 256 threads start with 255 registers.
// CHECK: scf.if
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.elect.sync
// CHECK: mbarrier.try_wait.parity
// CHECK: st.shared.b32
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,n,b,~{memory}" %{{.*}}, %c8192_i32,
// CHECK: cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2];"
// CHECK: } else {
// CHECK: nvvm.setmaxregister decrease 232
// CHECK: mbarrier.try_wait.parity
// CHECK: mbarrier.arrive.shared::cta.b64 _, [$0];
tile.kernel @roles_and_rings(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n
    attributes {assembler_level = 1} {
  %c1 = arith.constant 1 : i32
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
  %boxes = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !box>
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 40 {
    %first, %end, %step = tile.programs : index, index, index
    %slot, %note = tile.ring_acquire %ring[%at] : !ring -> !slot, !note
    tile.store_note (%c1, %c1), %note : !note
    tile.ring_commit %ring[%at] loads(%slot : !slot) : !ring
    tile.load_async %map[%first, %first, %first] into %slot : !tile.tensor_map<4, !slot>, !slot
  }
  tile.role "consumers" warps 4 registers 232 {
    %slot, %note = tile.ring_wait %ring[%at] : !ring -> !slot, !note
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!q_slot = !tile.shared<n x 80 x f16, swizzle 128>
!ring = !tile.ring<!q_slot>
!scores = tensor<?x?xf32, #tile.sizes<n, n>>
!output = tensor<?x?xf32, #tile.sizes<n, 80>>

// 80 columns are five k16 steps, the last one in the second panel, 8192 bytes on.
// CHECK-LABEL: llvm.func @dots(
// CHECK: wgmma.fence.sync.aligned; setp.ne.b32 add, 0, 0; add.u32 low, $32, 0; mov.b64 left, {low, 1073741888};
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// CHECK-SAME: setp.ne.b32 add, 1, 0; add.u32 low, $32, 2;
// CHECK-SAME: add.u32 low, $32, 512;
// CHECK-SAME: left, right, add, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;
// The wait takes and returns the 32 registers.
// CHECK: wgmma.wait_group.sync.aligned 0;", "=f,=f,
// CHECK-COUNT-16: "llvm.nvvm.ff2f16x2.rn"
// A in registers, B with n along its columns: one panel of columns is 8192 bytes.
// CHECK: wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16
// CHECK-SAME: right, add, 1, 1, 1;
// A store that never happens keeps the wait behind the sum.
// CHECK: @never st.shared.b32
// CHECK: wgmma.wait_group.sync.aligned 0;
// Ten groups of eight columns, two to a stmatrix.
// CHECK-COUNT-5: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: fence.proxy.async.shared::cta;
tile.kernel @dots(%x: !tile.global<4 x f16>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %zero = tile.splat %f0 : f32 -> !output
    %slot = tile.ring_wait %ring[%at] : !ring -> !q_slot
    %s = tile.dot_async %slot, %slot transposed : !q_slot, !q_slot -> !tile.pending<!scores>
    %scores = tile.dot_wait 0 (%s : !tile.pending<!scores>) -> !scores
    %weights = tile.convert %scores : !scores -> tensor<?x?xf16, #tile.sizes<n, n>>
    %o = tile.dot_async %weights, %slot onto %zero : !output
        : tensor<?x?xf16, #tile.sizes<n, n>>, !q_slot -> !tile.pending<!output>
    %sum = tile.reduce_partial sum %scores : !scores -> tensor<?x?xf32, #tile.sizes<n, 4>>
    %output = tile.dot_wait 0 (%o : !tile.pending<!output>) after %sum : tensor<?x?xf32, #tile.sizes<n, 4>> -> !output
    %o_tile = tile.convert %output : !output -> tensor<?x?xf16, #tile.sizes<n, 80>>
    tile.store_shared %o_tile, %slot : tensor<?x?xf16, #tile.sizes<n, 80>>, !q_slot
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!slot = !tile.shared<n x 48 x bf16, swizzle 32>
!ring = !tile.ring<!slot>
!scores = tensor<?x?xf32, #tile.sizes<n, n>>

// Three k16 steps, one a panel of 2048 bytes; eight times eight columns.
// CHECK-LABEL: llvm.func @warp_dots(
// CHECK: %[[STEPS:.*]] = arith.constant 3 : i32
// CHECK: scf.for %{{.*}} to %[[STEPS]] step
// CHECK-COUNT-8: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-NOT: mma.sync
// CHECK: scf.yield
tile.kernel @warp_dots(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 128 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    %s = tile.warp_dot %slot, %slot : !slot, !slot -> !scores
    %weights = tile.convert %s : !scores -> tensor<?x?xbf16, #tile.sizes<n, n>>
    %o = tile.dot_async %weights, %slot : tensor<?x?xbf16, #tile.sizes<n, n>>, !slot -> !tile.pending<tensor<?x?xf32, #tile.sizes<n, 48>>>
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!note = !tile.shared<2 x i32>
!ring = !tile.ring<!note>

// A counter, if there is one, gives the programs out; it wraps after the last of
// them has been asked for.
// CHECK-LABEL: llvm.func @shares(
// CHECK: %[[NEXT:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK: mov.u32 $0, 0; @$3 atom.relaxed.gpu.global.inc.u32 $0, [$1], $2;
// CHECK: redux.sync
// CHECK: } else {
// Then the largest number of a view, its bits, and the rank among equals.
// CHECK: redux.sync.max.s32
// CHECK-SAME: bfind.u32
// CHECK-SAME: vote.sync.ballot.b32
// CHECK-SAME: "=&r,l,r,r,r,~{memory}"
// CHECK: nvvm.vote.sync any
tile.kernel @shares(%x: !tile.global<4 x bf16>, %counter: !tile.global<1 x i32>, %y: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %f0 = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %ring = tile.ring stages 2 passed_by [8] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "scout" warps 1 registers 40 {
    %first, %end, %step = tile.programs : index, index, index
    %next = tile.next_program %first counted by %counter : !tile.global<1 x i32> -> index
    %numbers = tile.slice %counter[] : !tile.global<1 x i32> -> !tile.view<1 x i32>
    %largest = tile.nth_largest %numbers[%first] of %end : !tile.view<1 x i32> -> index
    %next_i32 = arith.index_cast %next : index to i32
    %largest_i32 = arith.index_cast %largest : index to i32
    %note = tile.ring_acquire %ring[%at] : !ring -> !note
    tile.store_note (%next_i32, %largest_i32), %note : !note
    tile.ring_commit %ring[%at] : !ring
  }
  tile.role "consumers" warps 8 registers 232 {
    %note = tile.ring_wait %ring[%at] : !ring -> !note
    %a, %b = tile.load_note %note : !note -> i32, i32
    %zeros = tile.splat %f0 : f32 -> tensor<128xf32>
    %numbers = tile.iota : tensor<128xi32>
    %ends = tile.splat %a : i32 -> tensor<128xi32>
    %limits = tile.splat %b : i32 -> tensor<128x4xi32>
    %numbers_of = tile.expand %numbers axis 1 : tensor<128xi32> -> tensor<128x4xi32>
    %beyond = arith.cmpi sgt, %numbers_of, %limits : tensor<128x4xi32>
    %any = tile.warp_any %beyond : tensor<128x4xi1>
    scf.if %any {
      %view = tile.slice %y[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
      tile.store %zeros, %view[%c0] : tensor<128xf32>, !tile.view<1 x f32>
    }
    tile.ring_release %ring[%at] : !ring
  }
}

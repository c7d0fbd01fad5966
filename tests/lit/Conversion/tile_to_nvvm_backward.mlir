// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: what the backward kernels need beyond the forward: turns,
// values along rows and columns, tiles stored from registers, several CTAs on a
// multiprocessor.
// RUN: sparge-opt %s --tile-specialise="parameters=n=128" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

!rows = tensor<?xf32, #tile.sizes<n>>
!output = tensor<?x?xf32, #tile.sizes<n, 64>>
!output_elem = tensor<?x?xbf16, #tile.sizes<n, 64>>

// 24 + 2 x 240 registers leave no room for a second CTA.
// CHECK-LABEL: llvm.func @turns(
// CHECK-SAME: nvvm.maxntid = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32
// The last warpgroup gives the first one its first turn.
// CHECK: nvvm.setmaxregister increase 240
// CHECK: scf.if
// CHECK: bar.arrive $0, 256;
// CHECK: scf.for
// CHECK: bar.sync $0, 256;
// CHECK: bar.arrive $0, 256;
// One value for each of a thread's two rows, read inside the tensor and replaced
// beyond its end.
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// Eight groups of eight columns, two rows: 16 stores of two elements.
// CHECK-COUNT-16: st.global.b32
// CHECK-NOT: st.global.b32
// The first warpgroup takes the last pass.
// CHECK: scf.if
// CHECK: bar.sync $0, 256;
tile.kernel @turns(%x: !tile.global<4 x bf16>, %l: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f0 = arith.constant 0.0 : f32
  tile.role "loader" warps 1 registers 24 {
  }
  tile.role "consumers" warps 8 registers 240 {
    scf.for %i = %c0 to %c4 step %c1 {
      tile.take_turn
      tile.pass_turn
    }
    %view = tile.slice %l[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
    %values = tile.load_values %view[%c0] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
    %tile = tile.expand %values axis 1 : !rows -> !output
    %packed = tile.convert %tile : !output -> !output_elem
    %matrix = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    tile.store %packed, %matrix[%c0, %c0] : !output_elem, !tile.view<2 x bf16>
  }
}

// -----

!values = !tile.shared<64 x f32>
!ring = !tile.ring<!values>
!scores = tensor<64x64xf32>
!weights = tensor<64x64xbf16>

// 24 + 232 registers are half of a multiprocessor's: 128 a thread at the start.
// CHECK-LABEL: llvm.func @two_ctas(
// CHECK-SAME: nvvm.maxntid = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32
// CHECK: nvvm.setmaxregister decrease 24
// One program a CTA.
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// 64 values are two a lane.
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK-COUNT-2: st.shared.b32
// CHECK: nvvm.setmaxregister increase 232
// Two neighbouring columns of every eight; pairs back to float32 by shift and mask.
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: "llvm.nvvm.ff2bf16x2.rn"
// CHECK: arith.shli %{{.*}}, %c16_i32
// CHECK: arith.andi %{{.*}}, %c-65536_i32
// CHECK: "llvm.nvvm.ff2bf16x2.rn"
tile.kernel @two_ctas(%x: !tile.global<4 x bf16>, %l: !tile.global<1 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %ring = tile.ring stages 2 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "loader" warps 1 registers 24 {
    %batch, %head, %tile = tile.program_id : index, index, index
    %view = tile.slice %l[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
    %read = tile.load_values %view[%tile] otherwise %f0 : !tile.view<1 x f32>, f32 -> tensor<64xf32>
    %slot = tile.ring_acquire %ring[%at] : !ring -> !values
    tile.store_shared %read, %slot : tensor<64xf32>, !values
    tile.ring_commit %ring[%at] : !ring
  }
  tile.role "consumers" warps 4 registers 232 {
    %slot = tile.ring_wait %ring[%at] : !ring -> !values
    %columns = tile.load_shared %slot : !values -> tensor<64xf32>
    %values = tile.expand %columns axis 0 : tensor<64xf32> -> !scores
    %packed = tile.convert %values : !scores -> !weights
    %back = tile.convert %packed : !weights -> !scores
    %sum = arith.addf %back, %values : !scores
    %packed_sum = tile.convert %sum : !scores -> !weights
    %matrix = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    tile.store %packed_sum, %matrix[%c0, %c0] : !weights, !tile.view<2 x bf16>
    tile.ring_release %ring[%at] : !ring
  }
}

// -----

!slot = !tile.shared<64 x 128 x bf16, swizzle 128>
!part = !tile.shared<64 x 64 x bf16, swizzle 128>
!ring = !tile.ring<!slot>
!weights = tensor<64x64xbf16>
!output = tensor<64x64xf32>

// The second panel of 64 rows of 128 bytes lies 8192 bytes on.
// CHECK-LABEL: llvm.func @parts(
// CHECK: %[[PANEL:.*]] = arith.divui %{{.*}}, %c64_i32
// CHECK: arith.muli %[[PANEL]], %c8192_i32
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// Rows from the 48th on are not stored.
// CHECK: arith.cmpi slt, %{{.*}}, %c48_i32
// CHECK: st.global.b32
tile.kernel @parts(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %f0 = arith.constant 0.0 : f32
  %ring = tile.ring stages 1 passed_by [4] : !ring
  %at = tile.ring_start : !tile.cursor
  tile.role "consumers" warps 4 registers 232 {
    %batch, %head, %column = tile.program_id : index, index, index
    %zeros = tile.splat %f0 : f32 -> !output
    %weights = tile.convert %zeros : !output -> !weights
    %slot = tile.ring_wait %ring[%at] : !ring -> !slot
    %part = tile.shared_columns %slot[%column] : !slot -> !part
    %adding = tile.dot_async %weights, %part onto %zeros : !output : !weights, !part -> !tile.pending<!output>
    %sum = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
    %packed = tile.convert %sum : !output -> !weights
    %matrix = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    tile.store %packed, %matrix[%c0, %c0] below %c48 : !weights, !tile.view<2 x bf16>
  }
}

// -----

// Five groups of eight columns of two rows: four exchanges for each four groups, of
// which the second has one, that lane 0 stores. Rows that do not start at multiples
// of 16 bytes are stored in words.
// CHECK-LABEL: llvm.func @exchanged(
// CHECK: mov.u32 $0, %tid.x;
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: st.global.v4.b32 [$0], {$1, $2, $3, $4};
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: arith.cmpi slt, %{{.*}}, %c1_i32
// CHECK: st.global.v4.b32
// CHECK-COUNT-8: nvvm.shfl.sync bfly
// CHECK: st.global.v4.b32
// CHECK: } else {
// CHECK-NOT: nvvm.shfl
// CHECK-COUNT-10: st.global.b32
tile.kernel @exchanged(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  tile.role "consumers" warps 4 registers 232 {
    %zeros = tile.splat %f0 : f32 -> tensor<64x40xf32>
    %packed = tile.convert %zeros : tensor<64x40xf32> -> tensor<64x40xbf16>
    %matrix = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    tile.store %packed, %matrix[%c0, %c0] {tile.exchanged} : tensor<64x40xbf16>, !tile.view<2 x bf16>
  }
}

// -----

// Eight lanes share a row of 64 columns, so that 32 rows take eight loads of 16
// bytes from each tensor, all under way at once; rows that do not start at such
// multiples are read element by element.
// CHECK-LABEL: llvm.func @streams(
// CHECK: scf.if
// CHECK-COUNT-16: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: } else {
// CHECK-NOT: {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> bf16
// CHECK: st.global.b32
tile.kernel @streams(%x: !tile.global<4 x bf16>, %y: !tile.global<4 x bf16>, %l: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %other = tile.slice %y[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %dots = tile.row_dots %view, %other[%warp] columns 64 : !tile.view<2 x bf16>, !tile.view<2 x bf16> -> tensor<32xf32>
  %zeros = tile.splat %f0 : f32 -> tensor<32xf32>
  %is_positive = arith.cmpf ogt, %dots, %zeros : tensor<32xf32>
  %numbers = tile.iota : tensor<32xi32>
  %lists = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  tile.scatter_at %numbers at %numbers, %numbers where %is_positive into %lists
      : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<2 x i32>
}

// -----

// What one-warp roles do beside the copies: rows are brought nearer, a lane takes
// four pieces of a row (of one view here) in a loop that nobody unrolls;
// sums are stored, counted, and waited for by one lane.
// CHECK-LABEL: llvm.func @sums(
// CHECK-COUNT-2: prefetch.global.L2
// CHECK: mov.b32 $0, 4;
// CHECK: scf.for
// CHECK: .pragma \22nounroll\22;
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: nvvm.shfl.sync bfly
// CHECK: st.global.b32
// CHECK: red.release.gpu.global.add.u32
// CHECK: griddepcontrol.wait;
// CHECK: ld.acquire.gpu.global.u32 v
// CHECK: red.relaxed.gpu.global.inc.u32
// CHECK-NOT: nvvm.barrier0
// CHECK: nvvm.bar.warp.sync
tile.kernel @sums(%x: !tile.global<4 x bf16>, %l: !tile.global<1 x f32>, %c: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  tile.role "sums" warps 1 registers 56 {
    %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
    %list = tile.slice %l[] : !tile.global<1 x f32> -> !tile.view<1 x f32>
    %numbers = tile.iota : tensor<32xi32>
    %all = tile.splat %true : i1 -> tensor<32xi1>
    tile.prefetch_rows %view[%c0] rows 32 columns 128 : !tile.view<2 x bf16>
    %dots = tile.row_dots %view, %view[%c0] columns 128 : !tile.view<2 x bf16>, !tile.view<2 x bf16> -> tensor<32xf32>
    tile.scatter %dots at %numbers where %all into %list
        : tensor<32xf32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x f32>
    tile.signal %c[%c0] by %c1 : !tile.global<1 x i32>
    // A wait that happens once at least.
    %end = scf.while (%i = %c0) : (index) -> (index) {
      %is_first = arith.cmpi eq, %i, %c0 : index
      scf.if %is_first {
        tile.launch_wait
      }
      scf.condition(%is_first) %i : index
    } do {
    ^again(%i: index):
      %next = arith.addi %i, %c1 : index
      scf.yield %next : index
    }
    tile.await %c[%c0] until %c1 by %c1 : !tile.global<1 x i32>
  }
}

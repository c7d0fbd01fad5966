// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: teams, their shared memory, exact dots, rank-1 tensors.
// RUN: sparge-opt %s --tile-specialise="parameters=n=16" --convert-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

// Sixteen rows: 5 steps of 1024 bytes, 16 factors and a barrier, in multiples of
// 128; eight words beyond the end of each of two rows of scratch, whose columns
// follow from the size in slot 3.
// CHECK-LABEL: llvm.func @team(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 8, 1, 1>
// CHECK-SAME: nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32
// CHECK-SAME: spargejit.dynamic_shared = [array<i64: 8, 64, 3>], spargejit.members = 8 : i64
// CHECK-SAME: spargejit.shared_bytes = 5312 : i64, spargejit.starts_early = true
// CHECK-SAME: spargejit.threads = 128 : i64
// CHECK: griddepcontrol.launch_dependents;
// CHECK: griddepcontrol.wait;
// CHECK: mbarrier.init.shared::cta.b64
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64
// CHECK: fence.mbarrier_init.release.cluster;
// CHECK: barrier.cluster.arrive.relaxed.aligned;
// The first keys' first three steps, then the rows' parts and the factors that undo
// their scaling, eight rows at a time.
// CHECK-COUNT-6: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: scf.for
// CHECK-COUNT-5: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> f32
// CHECK-COUNT-20: st.shared.b32
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: mapa.shared::cluster.u32
// CHECK: barrier.cluster.wait.acquire.aligned;
// The other two steps are loaded before the first three are multiplied, and the next
// keys' first ones before those; low · high, high · low, high · high.
// CHECK: scf.for
// CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-18: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: mma.sync
// CHECK-COUNT-6: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-12: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: mma.sync
// CHECK-COUNT-4: st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32
// CHECK: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
tile.kernel @team(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %member, %warp = tile.team members 8 warps 4 ctas 2 : index, index
  tile.launch_next
  tile.launch_wait
  %columns = tile.dim %x, 2 : !tile.global<4 x f32>
  %scratch = tile.scratch %columns multiple %c64 : !tile.scratch<2, f32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %one = arith.constant 1.0 : f32
  tile.spread_dots %view, %view[%warp] by %one columns 72 into %scratch
      : !tile.view<2 x f32>, !tile.view<2 x f32>, !tile.scratch<2, f32>
}

// -----

// Each lane has four neighbouring elements, and once more 128 elements on.
// CHECK-LABEL: llvm.func @rows(
// CHECK-SAME: spargejit.members = 1 : i64
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-7: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// Both groups' counts in one word, summed up over the lanes.
// CHECK-COUNT-5: nvvm.shfl.sync up {{.*}}return_value_and_is_valid
// CHECK: nvvm.shfl.sync idx
// CHECK-COUNT-8: st.global.b32
// CHECK: st.global.v4.b32
tile.kernel @rows(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0 : i32
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %scratch = tile.scratch %c256 multiple %c256 : !tile.scratch<4, f32>
  %list = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %row = tile.row_load %scratch[%warp, %c0] : !tile.scratch<4, f32> -> tensor<256xf32>
  %sum = tile.total sum %row : tensor<256xf32> -> f32
  %sums = tile.splat %sum : f32 -> tensor<256xf32>
  %keep = arith.cmpf olt, %row, %sums : tensor<256xf32>
  %ranks = tile.rank %keep : tensor<256xi1> -> tensor<256xi32>
  %numbers = tile.iota : tensor<256xi32>
  tile.scatter %numbers at %ranks where %keep into %list : tensor<256xi32>, tensor<256xi32>, tensor<256xi1>, !tile.view<1 x i32>
  tile.fill_rest %zero into %list[%c256] : i32, !tile.view<1 x i32>
}

// -----

// Rows at multiples of 16 bytes are read in 16-byte pieces, which leave no line in
// the L1 cache, others by element: whole rounds of eight loads, and what is left.
// CHECK-LABEL: llvm.func @sums(
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-8: ld.global.L1::no_allocate.v4.b32
// CHECK-NOT: ld.global
// CHECK: scf.yield
// CHECK-COUNT-8: ld.global.L1::no_allocate.v4.b32
// CHECK: } else {
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> bf16
// CHECK: nvvm.shfl.sync idx
// CHECK: st.global.v4.f32
tile.kernel @sums(%x: !tile.global<4 x bf16>, %y: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  %to = tile.slice %y[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %sum = tile.sum_rows %view[%c0 to %c64] loads 8 : !tile.view<2 x bf16> -> tensor<72xf32>
  tile.store %sum, %to[%warp, %c0] : tensor<72xf32>, !tile.view<2 x f32>
}

// -----

// Each of a lane's four elements where it lies inside the view; bytes are widened.
// CHECK-LABEL: llvm.func @runs(
// CHECK-COUNT-4: ld.global.u8
// CHECK-COUNT-4: ld.global.b32
// CHECK-NOT: ld.global
tile.kernel @runs(%x: !tile.global<4 x i8>, %y: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %bytes = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i8> -> !tile.view<1 x i8>
  %words = tile.slice %y[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %a = tile.load_run %bytes[%warp] : !tile.view<1 x i8> -> tensor<128xi32>
  %b = tile.load_run %words[%warp] : !tile.view<1 x i32> -> tensor<128xi32>
  %sum = arith.addi %a, %b : tensor<128xi32>
  %total = tile.total sum %sum : tensor<128xi32> -> i32
  tile.store_scalar %total, %words[%c0] : i32, !tile.view<1 x i32>
}

// -----

// Vectors that start and end at a multiple of four elements' size move four
// elements at a time, others one by one; 16 bits become 32 and back.
// CHECK-LABEL: llvm.func @floats(
// CHECK: scf.if
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: } else {
// CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<1> -> bf16
// CHECK: scf.if
// CHECK-COUNT-2: st.global.v4.b32
// CHECK: } else {
// CHECK-COUNT-8: st.global.b32
// CHECK: scf.if
// CHECK-COUNT-2: st.global.v2.b32
// CHECK: } else {
// CHECK-COUNT-8: llvm.nvvm.ff2f16x2.rn
// CHECK: st.global.b16
tile.kernel @floats(%x: !tile.global<4 x bf16>, %y: !tile.global<4 x f32>, %z: !tile.global<4 x f16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %from = tile.slice %x[%c0, %c0, %warp] : !tile.global<4 x bf16> -> !tile.view<1 x bf16>
  %to = tile.slice %y[%c0, %c0, %warp] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  %narrow = tile.slice %z[%c0, %c0, %warp] : !tile.global<4 x f16> -> !tile.view<1 x f16>
  %values = tile.load_values %from[%c0] otherwise %f0 : !tile.view<1 x bf16>, f32 -> tensor<256xf32>
  tile.store %values, %to[%c0] : tensor<256xf32>, !tile.view<1 x f32>
  tile.store %values, %narrow[%c0] : tensor<256xf32>, !tile.view<1 x f16>
}

// -----

// A warp signals after its stores; one thread of a CTA waits, and says that it has,
// for all three CTAs of the program. Persistent CTAs take half of a multiprocessor.
// CHECK-LABEL: llvm.func @progress(
// CHECK-SAME: spargejit.persistent = true, spargejit.resident_ctas = 1 : i64
// CHECK-SAME: spargejit.starts_early = true
// CHECK: nvvm.bar.warp.sync
// CHECK: red.release.gpu.global.add.u32
// CHECK: scf.if
// CHECK: scf.if
// CHECK: ld.acquire.gpu.global.u32
// CHECK-SAME: nanosleep
// CHECK-SAME: ld.relaxed.gpu.global.u32
// CHECK-SAME: red.relaxed.gpu.global.inc.u32
// CHECK: } else {
// CHECK-NEXT: griddepcontrol.wait;
// CHECK: nvvm.barrier0
tile.kernel @progress(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %member, %warp = tile.team members 3 warps 4 ctas 2 : index, index
  %cta, %programs, %ctas = tile.programs : index, index, index
  %count = tile.dim %x, 2 : !tile.global<4 x f32>
  tile.signal %counter[%cta] by %count : !tile.global<1 x i32>
  tile.await %counter[%cta] until %count by %ctas : !tile.global<1 x i32>
}

// -----

// A warp asks for its next part before it works on the one that it has, and takes the
// answer behind that; without a counter, or of more parts a warp than 16, the next one
// is `step` further.
// CHECK-LABEL: llvm.func @parts(
// CHECK: scf.while
// CHECK: } do {
// CHECK: atom.relaxed.gpu.global.inc.u32
// CHECK: red.release.gpu.global.add.u32
// CHECK: llvm.nvvm.redux.sync.or
// CHECK: arith.select
// CHECK: scf.yield
tile.kernel @parts(%x: !tile.global<4 x f32>, %done: !tile.global<1 x i32>, %counter: !tile.global<1 x i32>)
    parameters [n] grid %x by n {
  %c4 = arith.constant 4 : index
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %parts = tile.dim %x, 2 : !tile.global<4 x f32>
  scf.while (%now = %warp) : (index) -> (index) {
    %more = arith.cmpi slt, %now, %parts : index
    scf.condition(%more) %now : index
  } do {
  ^part(%part: index):
    tile.signal %done[%part] by %c4 : !tile.global<1 x i32>
    %next = tile.next_part %part of %parts step %c4 counted by %counter draws 16 : !tile.global<1 x i32> -> index
    scf.yield %next : index
  }
}

// -----

// Of one part a warp nobody asks for another.
// CHECK-LABEL: llvm.func @single_parts(
// CHECK-NOT: atom.
tile.kernel @single_parts(%x: !tile.global<4 x f32>, %counter: !tile.global<1 x i32>) parameters [n] grid %x by n {
  %c4 = arith.constant 4 : index
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %parts = tile.dim %x, 2 : !tile.global<4 x f32>
  scf.for %part = %warp to %parts step %c4 {
    %next = tile.next_part %part of %parts step %c4 counted by %counter draws 1 : !tile.global<1 x i32> -> index
  }
}

// -----

// Each lane splits its four columns and stores the parts; one stores the factor.
// CHECK-LABEL: llvm.func @split(
// CHECK: llvm.nvvm.redux.sync.max
// CHECK-COUNT-4: llvm.nvvm.ff2f16x2.rn
// CHECK: st.global.v4.b32
// CHECK: st.global.b32
// CHECK-NOT: st.global
tile.kernel @split(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f = arith.constant 3.0 : f32
  %member, %warp = tile.team members 1 warps 4 ctas 2 : index, index
  %to = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %values = tile.splat %f : f32 -> tensor<72xf32>
  tile.store_split %values, %to[%warp] : tensor<72xf32>, !tile.view<2 x f32>
}

// -----

// Eight rows of flags take a byte a column. A lane stores those that it and the next
// one have of four neighbours, and counts and then lists those of its words.
// CHECK-LABEL: llvm.func @flags(
// CHECK-SAME: spargejit.dynamic_shared = [array<i64: 1, 256, 3>]
// CHECK: or.b32 $0, $0, 128;
// CHECK: nvvm.shfl.sync bfly
// CHECK: st.shared.b8
// CHECK-NOT: st.shared.b8
// CHECK: red.shared.or.b32
// CHECK: scf.for
// CHECK: bmsk.clamp.b32
// CHECK: scf.for
// CHECK: llvm.intr.ctpop
// CHECK: scf.yield
// CHECK-COUNT-5: nvvm.shfl.sync up
// CHECK: scf.for
// CHECK: st.global.b32 [to], number;
tile.kernel @flags(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %columns = tile.dim %x, 2 : !tile.global<4 x f32>
  %marks = tile.scratch %columns multiple %c256 : !tile.scratch<8, i1>
  %list = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %numbers = tile.iota : tensor<256xi32>
  %firsts = tile.load_run %list[%c0] : !tile.view<1 x i32> -> tensor<256xi32>
  %run = arith.cmpi slt, %firsts, %numbers : tensor<256xi32>
  tile.row_store %run, %marks[%warp, %c0] : tensor<256xi1>, !tile.scratch<8, i1>
  %lanes = tile.iota : tensor<32xi32>
  %few = tile.load_run %list[%c0] : !tile.view<1 x i32> -> tensor<32xi32>
  %where = arith.cmpi slt, %few, %lanes : tensor<32xi32>
  tile.set_true %few where %where into %marks[%warp] : tensor<32xi32>, tensor<32xi1>, !tile.scratch<8, i1>
  tile.set_run_true %marks[%warp, %c0 to %columns] : !tile.scratch<8, i1>
  %count = tile.list_true %marks[%warp] to %columns into %list : !tile.scratch<8, i1>, !tile.view<1 x i32>
}

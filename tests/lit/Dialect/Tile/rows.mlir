// SPDX-License-Identifier: Apache-2.0
//
// What one warp does with rank-1 tensors: sum_rows, load_run, total, pick, rank,
// scatter, row_scatter, fill_rest, store_scalar, row_dots, prefetch_rows, scatter_at,
// row_gather, set_true, set_run_true, list_true, row_list_true, add_products.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --mlir-print-op-generic | sparge-opt | FileCheck %s
// RUN: sparge-opt %s --tile-specialise="parameters=n=64,dim=72,elem=bfloat16" | FileCheck %s --check-prefix=FIXED

// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[SUM:.*]] = tile.sum_rows %{{.*}}[%[[C0:.*]] to %[[C0]]] loads 8 : !tile.view<2 x !tile.element<"elem">> -> tensor<?xf32, #tile.sizes<dim>>
// CHECK: tile.load_run %{{.*}}[%[[C0]]] : !tile.view<1 x i8> -> tensor<32xi32>
// CHECK: tile.load_run %{{.*}}[%[[C0]]] : !tile.view<1 x i32> -> tensor<?xi32, #tile.sizes<n>>
// CHECK: tile.total max %[[SUM]] : tensor<?xf32, #tile.sizes<dim>> -> f32
// CHECK: %[[IOTA:.*]] = tile.iota
// CHECK: %[[TOTAL:.*]] = tile.total sum %[[IOTA]] : tensor<32xi32> -> i32
// CHECK: tile.pick %[[IOTA]][%[[C0]]] : tensor<32xi32> -> i32
// CHECK: %[[RANK:.*]] = tile.rank %[[WHERE:.*]] : tensor<32xi1> -> tensor<32xi32>
// CHECK: tile.sum_up_to %[[RANK]] : tensor<32xi32> -> tensor<32xi32>
// CHECK: tile.scatter %[[IOTA]] at %[[RANK]] where %[[WHERE]] into %[[LIST:.*]] : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x i32>
// CHECK: tile.row_scatter %[[IOTA]] at %[[RANK]] where %[[WHERE]] into %{{.*}}[%[[C0]]] : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.scratch<4, i32>
// CHECK: tile.fill_rest %[[TOTAL]] into %[[LIST]][%[[C0]]] : i32, !tile.view<1 x i32>
// CHECK: tile.store_scalar %[[TOTAL]], %[[LIST]][%[[C0]]] : i32, !tile.view<1 x i32>
// CHECK: tile.row_dots %[[VIEW:.*]], %[[VIEW]][%[[C0]]] columns dim : !tile.view<2 x !tile.element<"elem">>, !tile.view<2 x !tile.element<"elem">> -> tensor<32xf32>
// CHECK: tile.prefetch_rows %[[VIEW]][%[[C0]]] rows n columns dim : !tile.view<2 x !tile.element<"elem">>
// CHECK: tile.scatter_at %[[IOTA]] at %[[IOTA]], %[[RANK]] where %[[WHERE]] into %{{.*}} : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<2 x i32>
// FIXED: tile.sum_rows {{.*}} : !tile.view<2 x bf16> -> tensor<72xf32>
// FIXED: tile.row_dots {{.*}} columns 72 : !tile.view<2 x bf16>
// FIXED: tile.prefetch_rows {{.*}} rows 64 columns 72 : !tile.view<2 x bf16>
tile.kernel @rows(%x: !tile.global<4 x !tile.element<"elem">>, %l: !tile.global<4 x i32>, %m: !tile.global<4 x i8>) parameters [elem, n, dim] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %scratch = tile.scratch %c32 multiple %c32 : !tile.scratch<4, i32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x !tile.element<"elem">> -> !tile.view<2 x !tile.element<"elem">>
  %list = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %sum = tile.sum_rows %view[%c0 to %c0] loads 8 : !tile.view<2 x !tile.element<"elem">> -> tensor<?xf32, #tile.sizes<dim>>
  %flags = tile.slice %m[%c0, %c0, %c0] : !tile.global<4 x i8> -> !tile.view<1 x i8>
  %bytes = tile.load_run %flags[%c0] : !tile.view<1 x i8> -> tensor<32xi32>
  %words = tile.load_run %list[%c0] : !tile.view<1 x i32> -> tensor<?xi32, #tile.sizes<n>>
  %max = tile.total max %sum : tensor<?xf32, #tile.sizes<dim>> -> f32
  %iota = tile.iota : tensor<32xi32>
  %total = tile.total sum %iota : tensor<32xi32> -> i32
  %first = tile.pick %iota[%c0] : tensor<32xi32> -> i32
  %firsts = tile.splat %first : i32 -> tensor<32xi32>
  %where = arith.cmpi ne, %iota, %firsts : tensor<32xi32>
  %rank = tile.rank %where : tensor<32xi1> -> tensor<32xi32>
  %until = tile.sum_up_to %rank : tensor<32xi32> -> tensor<32xi32>
  tile.scatter %iota at %rank where %where into %list : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x i32>
  tile.row_scatter %iota at %rank where %where into %scratch[%c0] : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.scratch<4, i32>
  tile.fill_rest %total into %list[%c0] : i32, !tile.view<1 x i32>
  tile.store_scalar %total, %list[%c0] : i32, !tile.view<1 x i32>
  %dots = tile.row_dots %view, %view[%c0] columns dim
      : !tile.view<2 x !tile.element<"elem">>, !tile.view<2 x !tile.element<"elem">> -> tensor<32xf32>
  tile.prefetch_rows %view[%c0] rows n columns dim : !tile.view<2 x !tile.element<"elem">>
  %lists = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  tile.scatter_at %iota at %iota, %rank where %where into %lists
      : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<2 x i32>
}

// CHECK-LABEL: tile.kernel @flags
// CHECK: %[[MARKS:.*]] = tile.scratch %[[COLUMNS:.*]] multiple %{{.*}} : !tile.scratch<8, i1>
// CHECK: tile.row_store %{{.*}}, %[[MARKS]][%[[WARP:.*]], %[[C0:.*]]] : tensor<256xi1>, !tile.scratch<8, i1>
// CHECK: tile.set_true %[[IOTA:.*]] where %[[WHERE:.*]] into %[[MARKS]][%[[WARP]]] : tensor<32xi32>, tensor<32xi1>, !tile.scratch<8, i1>
// CHECK: tile.set_run_true %[[MARKS]][%[[WARP]], %[[C0]] to %[[COLUMNS]]] : !tile.scratch<8, i1>
// CHECK: %[[FOUND:.*]] = tile.row_list_true %[[MARKS]][%[[WARP]]] to %[[COLUMNS]] into %[[NUMBERS:.*]][%[[C0]]] : !tile.scratch<8, i1>, !tile.scratch<4, i32>
// CHECK: tile.list_true %[[MARKS]][%[[WARP]]] to %[[COLUMNS]] into %{{.*}} : !tile.scratch<8, i1>, !tile.view<1 x i32>
// CHECK: tile.add_products %[[A:.*]], %[[A]] to %[[S:.*]] : tensor<256xf32>, tensor<256xf32>, tensor<32xf32> -> tensor<32xf32>
// CHECK: tile.row_gather %[[NUMBERS]][%[[C0]]] at %[[IOTA]] : !tile.scratch<4, i32>, tensor<32xi32> -> tensor<32xi32>
tile.kernel @flags(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %true = arith.constant true
  %member, %warp = tile.team members 1 warps 4 ctas 1 : index, index
  %columns = tile.dim %x, 2 : !tile.global<4 x f32>
  %numbers = tile.scratch %c32 multiple %c32 : !tile.scratch<4, i32>
  %marks = tile.scratch %columns multiple %c256 : !tile.scratch<8, i1>
  %list = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %run = tile.splat %true : i1 -> tensor<256xi1>
  tile.row_store %run, %marks[%warp, %c0] : tensor<256xi1>, !tile.scratch<8, i1>
  %iota = tile.iota : tensor<32xi32>
  %where = tile.splat %true : i1 -> tensor<32xi1>
  tile.set_true %iota where %where into %marks[%warp] : tensor<32xi32>, tensor<32xi1>, !tile.scratch<8, i1>
  tile.set_run_true %marks[%warp, %c0 to %columns] : !tile.scratch<8, i1>
  %found = tile.row_list_true %marks[%warp] to %columns into %numbers[%c0] : !tile.scratch<8, i1>, !tile.scratch<4, i32>
  %count = tile.list_true %marks[%warp] to %columns into %list : !tile.scratch<8, i1>, !tile.view<1 x i32>
  %one = arith.constant 1.0 : f32
  %ones = tile.splat %one : f32 -> tensor<256xf32>
  %sums = tile.splat %one : f32 -> tensor<32xf32>
  %sum = tile.add_products %ones, %ones to %sums : tensor<256xf32>, tensor<256xf32>, tensor<32xf32> -> tensor<32xf32>
  %same = tile.row_gather %numbers[%c0] at %iota : !tile.scratch<4, i32>, tensor<32xi32> -> tensor<32xi32>
}

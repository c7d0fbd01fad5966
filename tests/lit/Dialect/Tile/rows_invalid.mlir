// SPDX-License-Identifier: Apache-2.0
//
// What the ops on a warp's rank-1 tensors refuse.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @sum_rows_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a view of rank 2 and bf16 or f16, got '!tile.view<2 x f32>'}}
  %s = tile.sum_rows %v[%c0 to %c0] loads 8 : !tile.view<2 x f32> -> tensor<64xf32>
}

// -----

tile.kernel @sum_rows_c2_type(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a rank-1 tensor of f32, got 'tensor<8x64xf32>'}}
  %s = tile.sum_rows %v[%c0 to %c0] loads 8 : !tile.view<2 x bf16> -> tensor<8x64xf32>
}

// -----

tile.kernel @sum_rows_c2_size(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a multiple of 8 elements up to 256, got 12}}
  %s = tile.sum_rows %v[%c0 to %c0] loads 8 : !tile.view<2 x bf16> -> tensor<12xf32>
}

// -----

tile.kernel @sum_rows_c3(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects 1 to 32 loads, got 33}}
  %s = tile.sum_rows %v[%c0 to %c0] loads 33 : !tile.view<2 x bf16> -> tensor<64xf32>
}

// -----

tile.kernel @total_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %i = tile.iota : tensor<32xi32>
  // expected-error @below {{expects a rank-1 tensor of i32, f32 or f64 and one of its elements, got 'tensor<32xi32>' and 'f32'}}
  %s = tile.total sum %i : tensor<32xi32> -> f32
}

// -----

tile.kernel @pick_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %i = tile.iota : tensor<64xi32>
  // expected-error @below {{expects a rank-1 tensor of at most 32 i32 or f32 and one of its elements, got 'tensor<64xi32>' and 'i32'}}
  %s = tile.pick %i[%c0] : tensor<64xi32> -> i32
}

// -----

tile.kernel @rank_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %i = tile.iota : tensor<32xi32>
  // expected-error @below {{expects a rank-1 tensor of i1 and one of i32 of its size, got 'tensor<32xi32>' and 'tensor<32xi32>'}}
  %r = tile.rank %i : tensor<32xi32> -> tensor<32xi32>
}

// -----

tile.kernel @sum_up_to_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %i = tile.iota : tensor<64xi32>
  // expected-error @below {{expects a rank-1 tensor of at most 32 i32 and its like, got 'tensor<64xi32>' and 'tensor<64xi32>'}}
  %r = tile.sum_up_to %i : tensor<64xi32> -> tensor<64xi32>
}

// -----

tile.kernel @scatter_c1_view(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<32xi1>
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  // expected-error @below {{expects a view of rank 1, got '!tile.view<2 x i32>'}}
  tile.scatter %i at %i where %w into %v : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<2 x i32>
}

// -----

tile.kernel @scatter_c1_type(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<32xi1>
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects values of the 32-bit elements 'f32', got 'tensor<32xi32>'}}
  tile.scatter %i at %i where %w into %v : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x f32>
}

// -----

tile.kernel @scatter_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<64xi1>
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects positions of i32 and a mask of i1 of the values' size, got 'tensor<32xi32>' and 'tensor<64xi1>'}}
  tile.scatter %i at %i where %w into %v : tensor<32xi32>, tensor<32xi32>, tensor<64xi1>, !tile.view<1 x i32>
}

// -----

tile.kernel @row_scatter_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c32 = arith.constant 32 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<32xi1>
  %s = tile.scratch %c32 multiple %c32 : !tile.scratch<4, f32>
  // expected-error @below {{expects values of the 32-bit elements 'f32', got 'tensor<32xi32>'}}
  tile.row_scatter %i at %i where %w into %s[%c32] : tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.scratch<4, f32>
}

// -----

tile.kernel @row_scatter_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c32 = arith.constant 32 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<16xi1>
  %s = tile.scratch %c32 multiple %c32 : !tile.scratch<4, i32>
  // expected-error @below {{expects positions of i32 and a mask of i1 of the values' size, got 'tensor<32xi32>' and 'tensor<16xi1>'}}
  tile.row_scatter %i at %i where %w into %s[%c32] : tensor<32xi32>, tensor<32xi32>, tensor<16xi1>, !tile.scratch<4, i32>
}

// -----

tile.kernel @fill_rest_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %i = arith.constant 0 : i32
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects a value and a rank-1 view of 32-bit elements of its type, got 'i32' and '!tile.view<1 x f32>'}}
  tile.fill_rest %i into %v[%c0] : i32, !tile.view<1 x f32>
}

// -----

tile.kernel @store_scalar_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a value and a rank-1 view of 32-bit elements of its type, got 'f32' and '!tile.view<2 x f32>'}}
  tile.store_scalar %f, %v[%c0] : f32, !tile.view<2 x f32>
}

// -----

tile.kernel @row_dots_c1_element(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects two views of rank 2 and bf16 or f16, got '!tile.view<2 x f32>' and '!tile.view<2 x f32>'}}
  %0 = tile.row_dots %v, %v[%c0] columns 64 : !tile.view<2 x f32>, !tile.view<2 x f32> -> tensor<32xf32>
}

// -----

tile.kernel @row_dots_c2_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a rank-1 tensor of 32 f32, got 'tensor<16xf32>'}}
  %0 = tile.row_dots %v, %v[%c0] columns 64 : !tile.view<2 x bf16>, !tile.view<2 x bf16> -> tensor<16xf32>
}

// -----

tile.kernel @row_dots_c3_columns(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a multiple of 8 columns up to 256, got 60}}
  %0 = tile.row_dots %v, %v[%c0] columns 60 : !tile.view<2 x bf16>, !tile.view<2 x bf16> -> tensor<32xf32>
}

// -----

tile.kernel @prefetch_rows_c1(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x bf16> -> !tile.view<1 x bf16>
  // expected-error @below {{expects a view of rank 2, got '!tile.view<1 x bf16>'}}
  tile.prefetch_rows %v[%c0] rows 32 columns 64 : !tile.view<1 x bf16>
}

// -----

tile.kernel @prefetch_rows_c2_rows(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects a multiple of 32 rows, got 16}}
  tile.prefetch_rows %v[%c0] rows 16 columns 64 : !tile.view<2 x bf16>
}

// -----

tile.kernel @prefetch_rows_c2_columns(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x bf16> -> !tile.view<2 x bf16>
  // expected-error @below {{expects at least one column, got 0}}
  tile.prefetch_rows %v[%c0] rows 32 columns 0 : !tile.view<2 x bf16>
}

// -----

tile.kernel @scatter_at_c1_rank(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %w = tile.splat %t : i1 -> tensor<32xi1>
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects a view of rank 2, got '!tile.view<1 x i32>'}}
  tile.scatter_at %i at %i, %i where %w into %v : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x i32>
}

// -----

tile.kernel @scatter_at_c2_size(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %i = tile.iota : tensor<32xi32>
  %j = tile.iota : tensor<16xi32>
  %w = tile.splat %t : i1 -> tensor<32xi1>
  %v = tile.slice %x[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  // expected-error @below {{expects positions of i32 and a mask of i1 of the values' size, got 'tensor<16xi32>' and 'tensor<32xi1>'}}
  tile.scatter_at %i at %i, %j where %w into %v : tensor<32xi32>, tensor<32xi32>, tensor<16xi32>, tensor<32xi1>, !tile.view<2 x i32>
}

// -----

tile.kernel @load_run_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects a view of rank 1 and i8 or i32, got '!tile.view<1 x f32>'}}
  %r = tile.load_run %v[%c0] : !tile.view<1 x f32> -> tensor<32xi32>
}

// -----

tile.kernel @load_run_c2(%x: !tile.global<4 x i8>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %v = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i8> -> !tile.view<1 x i8>
  // expected-error @below {{expects a rank-1 tensor of i32, got 'tensor<32xf32>'}}
  %r = tile.load_run %v[%c0] : !tile.view<1 x i8> -> tensor<32xf32>
}

// -----

tile.kernel @row_gather_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects a rank-1 tensor of 32-bit elements like those of '!tile.scratch<8, i32>', got 'tensor<32xf32>'}}
  %r = tile.row_gather %words[%c0] at %i : !tile.scratch<8, i32>, tensor<32xi32> -> tensor<32xf32>
}

// -----

tile.kernel @row_gather_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects positions of i32 of the result's size, got 'tensor<32xi32>'}}
  %r = tile.row_gather %words[%c0] at %i : !tile.scratch<8, i32>, tensor<32xi32> -> tensor<16xi32>
}

// -----

tile.kernel @set_true_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  %t = arith.cmpi eq, %i, %i : tensor<32xi32>
  // expected-error @below {{expects scratch of i1, got '!tile.scratch<8, i32>'}}
  tile.set_true %i where %t into %words[%c0] : tensor<32xi32>, tensor<32xi1>, !tile.scratch<8, i32>
}

// -----

tile.kernel @set_true_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects positions of i32 and a mask of i1 of their size, got 'tensor<32xi32>' and 'tensor<32xi32>'}}
  tile.set_true %i where %i into %flags[%c0] : tensor<32xi32>, tensor<32xi32>, !tile.scratch<8, i1>
}

// -----

tile.kernel @set_run_true_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects scratch of i1, got '!tile.scratch<8, i32>'}}
  tile.set_run_true %words[%c0, %c0 to %c32] : !tile.scratch<8, i32>
}

// -----

tile.kernel @list_true_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  %list = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects scratch of i1, got '!tile.scratch<8, i32>'}}
  %n = tile.list_true %words[%c0] to %c32 into %list : !tile.scratch<8, i32>, !tile.view<1 x i32>
}

// -----

tile.kernel @list_true_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  %rows = tile.slice %x[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  // expected-error @below {{expects a view of rank 1 and i32, got '!tile.view<2 x i32>'}}
  %n = tile.list_true %flags[%c0] to %c32 into %rows : !tile.scratch<8, i1>, !tile.view<2 x i32>
}

// -----

tile.kernel @row_list_true_c1(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects scratch of i1, got '!tile.scratch<8, i32>'}}
  %n = tile.row_list_true %words[%c0] to %c32 into %words[%c0] : !tile.scratch<8, i32>, !tile.scratch<8, i32>
}

// -----

tile.kernel @row_list_true_c2(%x: !tile.global<4 x i32>) parameters [n] grid %x by n {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %i = tile.iota : tensor<32xi32>
  %columns = tile.dim %x, 2 : !tile.global<4 x i32>
  %flags = tile.scratch %columns multiple %c32 : !tile.scratch<8, i1>
  %words = tile.scratch %columns multiple %c32 : !tile.scratch<8, i32>
  // expected-error @below {{expects a target of i32, got '!tile.scratch<8, i1>'}}
  %n = tile.row_list_true %flags[%c0] to %c32 into %flags[%c0] : !tile.scratch<8, i1>, !tile.scratch<8, i1>
}

// -----

tile.kernel @add_products_c1(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<256xf32>
  %b = tile.splat %f : f32 -> tensor<128xf32>
  %s = tile.splat %f : f32 -> tensor<32xf32>
  // expected-error @below {{expects two rank-1 tensors of f32 of one size, got 'tensor<256xf32>' and 'tensor<128xf32>'}}
  %r = tile.add_products %a, %b to %s : tensor<256xf32>, tensor<128xf32>, tensor<32xf32> -> tensor<32xf32>
}

// -----

tile.kernel @add_products_c2(%x: !tile.global<4 x f32>) parameters [n] grid %x by n {
  %f = arith.constant 0.0 : f32
  %a = tile.splat %f : f32 -> tensor<256xf32>
  // expected-error @below {{expects sums and a result of 32 f32, got 'tensor<256xf32>' and 'tensor<256xf32>'}}
  %r = tile.add_products %a, %a to %a : tensor<256xf32>, tensor<256xf32>, tensor<256xf32> -> tensor<256xf32>
}

// SPDX-License-Identifier: Apache-2.0
//
// One violation a constraint of TileMemoryOps.td.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

tile.kernel @slice_c1_rank(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects rank(source) = indices + rank(result), got 4 and 1 + 2}}
  %0 = tile.slice %x[%c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
}

// -----

tile.kernel @slice_c2_element(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expects the source's element type 'f32', got 'bf16'}}
  %0 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x bf16>
}

// -----

tile.kernel @load_c1_view(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v1 = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects a view of rank 2, got '!tile.view<1 x f32>'}}
  %0 = tile.load %v1[%c0, %c0] : !tile.view<1 x f32> -> tensor<16x8xf32>
}

// -----

tile.kernel @load_c2_result(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a result of rank 2, got 'tensor<16xf32>'}}
  %0 = tile.load %v2[%c0, %c0] : !tile.view<2 x f32> -> tensor<16xf32>
}

// -----

tile.kernel @load_c3_element(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects elements of f32 or of the view's type 'f32', got 'bf16'}}
  %0 = tile.load %v2[%c0, %c0] : !tile.view<2 x f32> -> tensor<16x8xbf16>
}

// -----

tile.kernel @load_scalar_c1_view(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a rank-1 view of 'f32', got '!tile.view<2 x f32>'}}
  %0 = tile.load_scalar %v2[%c0] : !tile.view<2 x f32> -> f32
}

// -----

tile.kernel @store_c1_offsets(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %f = arith.constant 0.0 : f32
  %0 = tile.splat %f : f32 -> tensor<16x8xf32>
  // expected-error @below {{expects 2 offsets, one a dimension of the view, got 1}}
  tile.store %0, %v2[%c0] : tensor<16x8xf32>, !tile.view<2 x f32>
}

// -----

tile.kernel @store_c2_rank(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v1 = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  %f = arith.constant 0.0 : f32
  %0 = tile.splat %f : f32 -> tensor<16x8xf32>
  // expected-error @below {{expects a value of rank 1 to 1, got 2}}
  tile.store %0, %v1[%c0] : tensor<16x8xf32>, !tile.view<1 x f32>
}

// -----

tile.kernel @gather_c1_list(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  // expected-error @below {{expects the list to be a rank-1 view of i32, got '!tile.view<2 x i32>'}}
  %0 = tile.gather %v2 by %l2[%c0] count %c0 block %c0 : !tile.view<2 x f32>, !tile.view<2 x i32> -> tensor<16x8xf32>
}

// -----

tile.kernel @gather_c1_view(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v1 = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  %l1 = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects a view of rank 2, got '!tile.view<1 x f32>'}}
  %0 = tile.gather %v1 by %l1[%c0] count %c0 block %c0 : !tile.view<1 x f32>, !tile.view<1 x i32> -> tensor<16x8xf32>
}

// -----

tile.kernel @gather_c2_result(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v2 = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  %l1 = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects a result of rank 2, got 'tensor<16xf32>'}}
  %0 = tile.gather %v2 by %l1[%c0] count %c0 block %c0 : !tile.view<2 x f32>, !tile.view<1 x i32> -> tensor<16xf32>
}

// -----

tile.kernel @gather_positions_c1_list(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %v1 = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects the list to be a rank-1 view of i32, got '!tile.view<1 x f32>'}}
  %0 = tile.gather_positions %v1[%c0] count %c0 block %c0 limit %c0 : !tile.view<1 x f32> -> tensor<16xi32>
}

// -----

tile.kernel @gather_positions_c2_result(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l1 = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  // expected-error @below {{expects the result to be a rank-1 tensor of i32, got 'tensor<16xf32>'}}
  %0 = tile.gather_positions %l1[%c0] count %c0 block %c0 limit %c0 : !tile.view<1 x i32> -> tensor<16xf32>
}

// -----

tile.kernel @append_indices_c1_keep(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects keep to be a rank-2 tensor of i1, got 'tensor<16xi32>'}}
  %0 = tile.append_indices %n from %c0 counts %n into %l2[%c0] : tensor<16xi32>, tensor<16xi32>, !tile.view<2 x i32> -> tensor<16xi32>
}

// -----

tile.kernel @append_indices_c1_counts(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects counts to be a rank-1 tensor of i32, got 'tensor<16x8xi1>'}}
  %0 = tile.append_indices %k from %c0 counts %k into %l2[%c0] : tensor<16x8xi1>, tensor<16x8xi1>, !tile.view<2 x i32> -> tensor<16x8xi1>
}

// -----

tile.kernel @append_indices_c1_rows(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  %m = tile.splat %i : i32 -> tensor<8xi32>
  // expected-error @below {{expects as many counts as keep has rows, got 8 for 16 x 8}}
  %0 = tile.append_indices %k from %c0 counts %m into %l2[%c0] : tensor<16x8xi1>, tensor<8xi32>, !tile.view<2 x i32> -> tensor<8xi32>
}

// -----

tile.kernel @append_indices_c1_result(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects a result of the counts' type, got 'tensor<8xi32>'}}
  %0 = tile.append_indices %k from %c0 counts %n into %l2[%c0] : tensor<16x8xi1>, tensor<16xi32>, !tile.view<2 x i32> -> tensor<8xi32>
}

// -----

tile.kernel @append_indices_c2_view(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l1 = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects the lists to be a rank-2 view of i32, got '!tile.view<1 x i32>'}}
  %0 = tile.append_indices %k from %c0 counts %n into %l1[%c0] : tensor<16x8xi1>, tensor<16xi32>, !tile.view<1 x i32> -> tensor<16xi32>
}

// -----

tile.kernel @fill_tail_c1_counts(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l2 = tile.slice %l[%c0, %c0] : !tile.global<4 x i32> -> !tile.view<2 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects counts to be a rank-1 tensor of i32, got 'tensor<16x8xi1>'}}
  tile.fill_tail %i after %k into %l2[%c0] : tensor<16x8xi1>, !tile.view<2 x i32>
}

// -----

tile.kernel @fill_tail_c1_view(%x: !tile.global<4 x f32>, %l: !tile.global<4 x i32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %l1 = tile.slice %l[%c0, %c0, %c0] : !tile.global<4 x i32> -> !tile.view<1 x i32>
  %i = arith.constant 0 : i32
  %t = arith.constant true
  %n = tile.splat %i : i32 -> tensor<16xi32>
  %k = tile.splat %t : i1 -> tensor<16x8xi1>
  // expected-error @below {{expects the lists to be a rank-2 view of i32, got '!tile.view<1 x i32>'}}
  tile.fill_tail %i after %n into %l1[%c0] : tensor<16xi32>, !tile.view<1 x i32>
}

// -----

tile.kernel @scratch_c1_columns(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c1 = arith.constant 1 : index
  %d = tile.dim %x, 2 : !tile.global<4 x f32>
  %two = arith.addi %d, %d : index
  // expected-error @below {{expects its columns to be a tile.dim or a constant, got another value}}
  %0 = tile.scratch %two multiple %c1 : !tile.scratch<16, i32>
}

// -----

tile.kernel @scratch_c2_multiple(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %d = tile.dim %x, 2 : !tile.global<4 x f32>
  // expected-error @below {{expects its multiple to be a tile.parameter or a constant, got another value}}
  %0 = tile.scratch %d multiple %d : !tile.scratch<16, i32>
}

// -----

tile.kernel @scratch_load_c1_rows(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %d = tile.dim %x, 2 : !tile.global<4 x f32>
  %s = tile.scratch %d multiple %c0 : !tile.scratch<16, i32>
  // expected-error @below {{expects a tile with the rows and elements of '!tile.scratch<16, i32>', got 'tensor<8x8xi32>'}}
  %0 = tile.scratch_load %s[%c0] : !tile.scratch<16, i32> -> tensor<8x8xi32>
}

// -----

tile.kernel @scratch_store_c1_element(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %d = tile.dim %x, 2 : !tile.global<4 x f32>
  %s = tile.scratch %d multiple %c0 : !tile.scratch<16, i32>
  %f = arith.constant 0.0 : f32
  %v = tile.splat %f : f32 -> tensor<16x8xf32>
  // expected-error @below {{expects a tile with the rows and elements of '!tile.scratch<16, i32>', got 'tensor<16x8xf32>'}}
  tile.scratch_store %v, %s[%c0] : tensor<16x8xf32>, !tile.scratch<16, i32>
}

// -----

tile.kernel @scratch_rows(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %d = tile.dim %x, 2 : !tile.global<4 x f32>
  // expected-error @below {{expects a positive number of rows, got 0}}
  %0 = tile.scratch %d multiple %c0 : !tile.scratch<0, i32>
}

// -----

tile.kernel @load_values_c1_rank(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a rank-1 view of 32-bit elements, bf16 or f16, got '!tile.view<2 x f32>'}}
  %0 = tile.load_values %view[%c0] otherwise %f : !tile.view<2 x f32>, f32 -> tensor<16xf32>
}

// -----

tile.kernel @load_values_c2_element(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %view = tile.slice %x[%c0, %c0, %c0] : !tile.global<4 x f32> -> !tile.view<1 x f32>
  // expected-error @below {{expects a rank-1 tensor and a scalar of 'f32', got 'tensor<16xi32>' and 'f32'}}
  %0 = tile.load_values %view[%c0] otherwise %f : !tile.view<1 x f32>, f32 -> tensor<16xi32>
}

// -----

tile.kernel @store_c3_below(%x: !tile.global<4 x f32>) parameters [rows] grid %x by rows {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %v = tile.splat %f : f32 -> tensor<16xf32>
  %view = tile.slice %x[%c0, %c0] : !tile.global<4 x f32> -> !tile.view<2 x f32>
  // expected-error @below {{expects a value of rank 2 with a last row, got 1}}
  tile.store %v, %view[%c0, %c0] below %c0 : tensor<16xf32>, !tile.view<2 x f32>
}

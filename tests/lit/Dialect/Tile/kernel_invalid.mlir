// SPDX-License-Identifier: Apache-2.0
//
// One violation a constraint of TileKernelOps.td.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{expects argument 'x' to be a !tile.global, index or f32, got 'i64'}}
tile.kernel @kernel_c1_argument_type(%q: !tile.global<4 x f32>, %x: i64) parameters [rows] grid %q by rows {}

// -----

// expected-error @below {{expects the grid's argument to be a !tile.global of rank 3 or more, got argument 0}}
tile.kernel @kernel_c2_grid_rank(%q: !tile.global<2 x f32>) parameters [rows] grid %q by rows {}

// -----

// expected-error @below {{expects the grid to name an argument of the kernel, got %x}}
tile.kernel @kernel_c2_grid_name(%q: !tile.global<4 x f32>) parameters [rows] grid %x by rows {}

// -----

// expected-error @below {{expects unique parameters, got 'rows' twice}}
tile.kernel @kernel_c3_twice(%q: !tile.global<4 x f32>) parameters [rows, rows] grid %q by rows {}

// -----

// expected-error @below {{expects the grid's parameter among the kernel's, got 'columns'}}
tile.kernel @kernel_c3_grid_parameter(%q: !tile.global<4 x f32>) parameters [rows] grid %q by columns {}

// -----

tile.kernel @kernel_c4_parameter(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects 'columns' among the kernel's parameters, got no such parameter}}
  %0 = tile.parameter "columns" : index
}

// -----

tile.kernel @kernel_c4_size(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects 'columns' among the kernel's parameters, got no such parameter}}
  %0 = tile.iota : tensor<?xi32, #tile.sizes<columns>>
}

// -----

// expected-error @below {{expects 'elem' among the kernel's parameters, got no such parameter}}
tile.kernel @kernel_c4_element(%q: !tile.global<4 x !tile.element<"elem">>) parameters [rows] grid %q by rows {}

// -----

// expected-error @below {{expects an assembler_level from 0 to 3, got 4}}
tile.kernel @kernel_c5_level(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows attributes {assembler_level = 4} {}

// -----

tile.kernel @parameter_c1_type(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{op result #0 must be index or 1-bit signless integer, but got 'f32'}}
  %0 = tile.parameter "rows" : f32
}

// -----

// expected-error @below {{expects a tile.kernel around it, got none}}
%parameter_c2_outside = tile.parameter "rows" : index

// -----

tile.kernel @dim_c1_range(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects a dimension below the rank 4, got 4}}
  %0 = tile.dim %q, 4 : !tile.global<4 x f32>
}

// -----

// expected-error @below {{expects a rank from 1 to 4, got 5}}
tile.kernel @global_rank(%q: !tile.global<5 x f32>) parameters [rows] grid %q by rows {}

// -----

tile.kernel @sizes_rank(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects one symbolic size a dimension, got 2 for rank 1}}
  %0 = tile.iota : tensor<?xi32, #tile.sizes<rows, rows>>
}

// -----

tile.kernel @sizes_fixed(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects every size of a tensor with symbolic sizes to be ?}}
  %0 = tile.iota : tensor<4xi32, #tile.sizes<rows>>
}

// -----

tile.kernel @layout_rank(%q: !tile.global<4 x f32>) parameters [rows] grid %q by rows {
  // expected-error @below {{expects a layout on a tensor of two fixed sizes}}
  %0 = tile.iota : tensor<4xi32, #tile.layout<panels>>
}

// SPDX-License-Identifier: Apache-2.0
//
// scaled_total for Hopper: the sum of all elements of a dense tensor, times a
// factor.
//
//   total[0, 0, 0] = factor sum_i partial[0, 0, i]
//
// summed in float64 in one order. One program, for sums by row that many programs
// have made (squared_error.mlir): each warp adds up 128 elements of every total_warps
// times 128, and the first one what all have. Between them a warp's product with the
// factor goes through shared memory as two float32, high + low, of together 48 bits.

!chunk = tensor<128xf32>
!sums = tensor<128xf64>
!parts = tensor<32xf32>
!parts_f64 = tensor<32xf64>
!numbers = tensor<32xi32>
!shared = !tile.scratch<1, f32>

tile.kernel @scaled_total(%partial: !tile.global<3 x f32>, %total: !tile.global<3 x f32>, %factor: f32)
    parameters [total_rows, total_warps]
    grid %total by total_rows {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %f0_f64 = arith.constant 0.0 : f64
  %total_warps = tile.parameter "total_warps" : index
  %member, %warp = tile.team members 1 warps total_warps ctas 1 : index, index
  %highs = tile.scratch %c32 multiple %c32 : !shared
  %lows = tile.scratch %c32 multiple %c32 : !shared
  tile.launch_next
  tile.launch_wait
  %length = tile.dim %partial, 2 : !tile.global<3 x f32>
  %elements = tile.slice %partial[%c0, %c0] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %total_view = tile.slice %total[%c0, %c0] : !tile.global<3 x f32> -> !tile.view<1 x f32>

  // Warps that there are not add nothing.
  %is_first = arith.cmpi eq, %warp, %c0 : index
  %nothing = tile.splat %f0 : f32 -> !parts
  scf.if %is_first {
    tile.row_store %nothing, %highs[%c0, %c0] : !parts, !shared
    tile.row_store %nothing, %lows[%c0, %c0] : !parts, !shared
  }
  tile.team_barrier

  %start = arith.muli %warp, %c128 : index
  %step = arith.muli %total_warps, %c128 : index
  %none = tile.splat %f0_f64 : f64 -> !sums
  %sums = scf.for %first = %start to %length step %step iter_args(%old = %none) -> (!sums) {
    %chunk = tile.load_values %elements[%first] otherwise %f0 : !tile.view<1 x f32>, f32 -> !chunk
    %chunk_f64 = arith.extf %chunk : !chunk to !sums
    %new = arith.addf %old, %chunk_f64 : !sums
    scf.yield %new : !sums
  }
  %sum = tile.total sum %sums : !sums -> f64
  %factor_f64 = arith.extf %factor : f32 to f64
  %scaled = arith.mulf %sum, %factor_f64 : f64
  %high = arith.truncf %scaled : f64 to f32
  %high_f64 = arith.extf %high : f32 to f64
  %rest = arith.subf %scaled, %high_f64 : f64
  %rest_f32 = arith.truncf %rest : f64 to f32
  // What is too large has no rest.
  %none_of_high = arith.subf %high, %high : f32
  %is_finite = arith.cmpf oeq, %none_of_high, %f0 : f32
  %low = arith.select %is_finite, %rest_f32, %f0 : f32

  %numbers = tile.iota : !numbers
  %zeros = tile.splat %c0_i32 : i32 -> !numbers
  %is_own = arith.cmpi eq, %numbers, %zeros : !numbers
  %warp_i32 = arith.index_cast %warp : index to i32
  %place = tile.splat %warp_i32 : i32 -> !numbers
  %own_high = tile.splat %high : f32 -> !parts
  %own_low = tile.splat %low : f32 -> !parts
  tile.row_scatter %own_high at %place where %is_own into %highs[%c0]
      : !parts, !numbers, tensor<32xi1>, !shared
  tile.row_scatter %own_low at %place where %is_own into %lows[%c0]
      : !parts, !numbers, tensor<32xi1>, !shared
  tile.team_barrier
  scf.if %is_first {
    %all_highs = tile.row_load %highs[%c0, %c0] : !shared -> !parts
    %all_lows = tile.row_load %lows[%c0, %c0] : !shared -> !parts
    %highs_f64 = arith.extf %all_highs : !parts to !parts_f64
    %lows_f64 = arith.extf %all_lows : !parts to !parts_f64
    %parts = arith.addf %highs_f64, %lows_f64 : !parts_f64
    %whole = tile.total sum %parts : !parts_f64 -> f64
    %result = arith.truncf %whole : f64 to f32
    tile.store_scalar %result, %total_view[%c0] : f32, !tile.view<1 x f32>
  }
}

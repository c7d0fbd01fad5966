// SPDX-License-Identifier: Apache-2.0
//
// scaled_total: the sum of all elements of a dense tensor, times a factor.
//
//   total[0, 0, 0] = factor sum_{b, h, i} partial[b, h, i]
//
// summed in float64 in one order. One program, for sums by row that many
// programs have made (squared_error.mlir).

!chunk = tensor<?x?xf32, #tile.sizes<1, tile_columns>>
!chunk_f64 = tensor<?x?xf64, #tile.sizes<1, tile_columns>>
!sums_f32 = tensor<?xf32, #tile.sizes<1>>
!sums = tensor<?xf64, #tile.sizes<1>>

tile.kernel @scaled_total(%partial: !tile.global<3 x f32>, %total: !tile.global<3 x f32>, %factor: f32)
    parameters [tile_rows, tile_columns]
    grid %total by tile_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f64
  %tile_columns = tile.parameter "tile_columns" : index
  %batches = tile.dim %partial, 0 : !tile.global<3 x f32>
  %heads = tile.dim %partial, 1 : !tile.global<3 x f32>
  %length = tile.dim %partial, 2 : !tile.global<3 x f32>
  %total_view = tile.slice %total[%c0, %c0] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %none = tile.splat %f0 : f64 -> !sums

  %sums = scf.for %batch = %c0 to %batches step %c1 iter_args(%of_batches = %none) -> (!sums) {
    %view = tile.slice %partial[%batch] : !tile.global<3 x f32> -> !tile.view<2 x f32>
    %of_heads = scf.for %head = %c0 to %heads step %c1 iter_args(%of_heads_yet = %of_batches) -> (!sums) {
      %of_rows = scf.for %column = %c0 to %length step %tile_columns
          iter_args(%old = %of_heads_yet) -> (!sums) {
        %chunk = tile.load %view[%head, %column] : !tile.view<2 x f32> -> !chunk
        %chunk_f64 = arith.extf %chunk : !chunk to !chunk_f64
        %chunk_sums = tile.reduce sum %chunk_f64 : !chunk_f64 -> !sums
        %new = arith.addf %old, %chunk_sums : !sums
        scf.yield %new : !sums
      }
      scf.yield %of_rows : !sums
    }
    scf.yield %of_heads : !sums
  }
  %factor_f64 = arith.extf %factor : f32 to f64
  %factors = tile.splat %factor_f64 : f64 -> !sums
  %scaled = arith.mulf %sums, %factors : !sums
  %result = arith.truncf %scaled : !sums to !sums_f32
  tile.store %result, %total_view[%c0] : !sums_f32, !tile.view<1 x f32>
}

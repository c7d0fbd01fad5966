// SPDX-License-Identifier: Apache-2.0
//
// squared_error: the squares of a difference, summed by row, and its multiple.
//
//   partial[b, h, i]     = sum_d (a - b)[b, h, i, d]²
//   gradient[b, h, i, d] = factor (a - b)[b, h, i, d]
//
// in float32; without a gradient only the sums. With factor = 2 / n the gradient
// is that of the mean over all n elements with respect to a. One program a few
// rows; a row's sum has one order.

!elem = !tile.element<"elem">
!gradient_elem = !tile.element<"gradient_elem">
!tile = tensor<?x?xf32, #tile.sizes<tile_rows, tile_columns>>
!rows = tensor<?xf32, #tile.sizes<tile_rows>>

tile.kernel @squared_error(%a: !tile.global<4 x !elem>, %b: !tile.global<4 x !elem>,
                           %gradient: !tile.global<4 x !gradient_elem>,
                           %partial: !tile.global<3 x f32>, %factor: f32)
    parameters [elem, gradient_elem, tile_rows, tile_columns]
    grid %a by tile_rows {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %tile_rows = tile.parameter "tile_rows" : index
  %tile_columns = tile.parameter "tile_columns" : index
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %tile_rows : index
  %columns = tile.dim %a, 3 : !tile.global<4 x !elem>
  %a_view = tile.slice %a[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %b_view = tile.slice %b[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %gradient_view = tile.slice %gradient[%batch, %head] : !tile.global<4 x !gradient_elem> -> !tile.view<2 x !gradient_elem>
  %partial_view = tile.slice %partial[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %wants_gradient = tile.is_present %gradient : !tile.global<4 x !gradient_elem>
  %factors = tile.splat %factor : f32 -> !tile
  %no_sums = tile.splat %f0 : f32 -> !rows

  %sums = scf.for %column = %c0 to %columns step %tile_columns
      iter_args(%old_sums = %no_sums) -> (!rows) {
    // Beyond the end both are 0, and so is what they add.
    %a_tile = tile.load %a_view[%first_row, %column] : !tile.view<2 x !elem> -> !tile
    %b_tile = tile.load %b_view[%first_row, %column] : !tile.view<2 x !elem> -> !tile
    %difference = arith.subf %a_tile, %b_tile : !tile
    %squares = arith.mulf %difference, %difference : !tile
    %tile_sums = tile.reduce sum %squares : !tile -> !rows
    %new_sums = arith.addf %old_sums, %tile_sums : !rows
    scf.if %wants_gradient {
      %scaled = arith.mulf %difference, %factors : !tile
      tile.store %scaled, %gradient_view[%first_row, %column] : !tile, !tile.view<2 x !gradient_elem>
    }
    scf.yield %new_sums : !rows
  }
  tile.store %sums, %partial_view[%first_row] : !rows, !tile.view<1 x f32>
}

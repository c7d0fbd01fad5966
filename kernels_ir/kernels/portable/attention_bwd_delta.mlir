// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_delta: what the gradients of a row's scores are measured from.
//
//   delta[i] = sum_d d_o[i, d] o[i, d] - d_lse[i]
//
// in float32; without d_lse nothing is subtracted. The first launch of the
// backward pass (FlashAttention-2, arXiv 2307.08691, section 3.2; that d_lse
// joins it follows from d lse / d s = p).

!elem = !tile.element<"elem">
!tile = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>

tile.kernel @attention_bwd_delta(%o: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                                 %d_lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>)
    parameters [elem, head_dim, tile_q]
    grid %o by tile_q {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %tile_q = tile.parameter "tile_q" : index
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %tile_q : index
  %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %d_o_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>

  %o_tile = tile.load %o_view[%first_row, %c0] : !tile.view<2 x !elem> -> !tile
  %d_o_tile = tile.load %d_o_view[%first_row, %c0] : !tile.view<2 x !elem> -> !tile
  %products = arith.mulf %d_o_tile, %o_tile : !tile
  %sums = tile.reduce sum %products : !tile -> !rows
  %has_d_lse = tile.is_present %d_lse : !tile.global<3 x f32>
  %result = scf.if %has_d_lse -> (!rows) {
    %d_lse_view = tile.slice %d_lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %d_lse_rows = tile.load_values %d_lse_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
    %less = arith.subf %sums, %d_lse_rows : !rows
    scf.yield %less : !rows
  } else {
    scf.yield %sums : !rows
  }
  tile.store %result, %delta_view[%first_row] : !rows, !tile.view<1 x f32>
}

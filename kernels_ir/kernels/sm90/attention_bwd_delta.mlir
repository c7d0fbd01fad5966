// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_delta for Hopper: what the gradient of a softmax subtracts.
//
//   delta[i] = sum_d o[i, d] do[i, d] - dlse[i]
//
// (FlashAttention-2, arXiv 2307.08691, section 2.3.2; with a gradient of lse, ds =
// p (dp - delta) + p dlse.) A stream of two tensors: each warp takes 32 rows.
//
// Parameter that follows from others: delta_rows = 32 delta_warps.

!elem = !tile.element<"elem">
!rows = tensor<32xf32>

tile.kernel @attention_bwd_delta(%o: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                                 %d_lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>)
    parameters [elem, head_dim, delta_rows, delta_warps, delta_ctas]
    grid %o by delta_rows {
  %c32 = arith.constant 32 : index
  %f0 = arith.constant 0.0 : f32
  %delta_rows = tile.parameter "delta_rows" : index
  %member, %warp = tile.team members 1 warps delta_warps ctas delta_ctas : index, index
  tile.launch_next
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_of_tile = arith.muli %tile, %delta_rows : index
  %first_of_warp = arith.muli %warp, %c32 : index
  %first = arith.addi %first_of_tile, %first_of_warp : index
  %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %do_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %products = tile.row_dots %o_view, %do_view[%first] columns head_dim
      : !tile.view<2 x !elem>, !tile.view<2 x !elem> -> !rows
  %has_d_lse = tile.is_present %d_lse : !tile.global<3 x f32>
  %value = scf.if %has_d_lse -> (!rows) {
    %d_lse_view = tile.slice %d_lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %d_lse_rows = tile.load_values %d_lse_view[%first] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
    %difference = arith.subf %products, %d_lse_rows : !rows
    scf.yield %difference : !rows
  } else {
    scf.yield %products : !rows
  }
  %numbers = tile.iota : tensor<32xi32>
  %first_i32 = arith.index_cast %first : index to i32
  %firsts = tile.splat %first_i32 : i32 -> tensor<32xi32>
  %places = arith.addi %firsts, %numbers : tensor<32xi32>
  %true = arith.constant true
  %all = tile.splat %true : i1 -> tensor<32xi1>
  %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  tile.scatter %value at %places where %all into %delta_view
      : !rows, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x f32>
  // o and d_o are what the forward pass and the caller wrote, so that nothing above
  // waits for the inversion of lists that is launched just before; what comes next
  // waits for both.
  tile.launch_wait
}

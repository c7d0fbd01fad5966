// SPDX-License-Identifier: Apache-2.0
//
// squared_error for Hopper: the squares of a difference, summed by row, and its
// multiple.
//
//   partial[b, h, i]     = sum_d (a - b)[b, h, i, d]²
//   gradient[b, h, i, d] = factor (a - b)[b, h, i, d]
//
// in float32; without a gradient only the sums. With factor = 2 / n the gradient
// is that of the mean over all n elements with respect to a. A stream of three
// tensors: each warp takes one row, 512 elements at a time, and adds up what each
// register has before lanes meet; a row's sum has one order.
//
// Parameter that follows from others: loss_rows = loss_warps.

!elem = !tile.element<"elem">
!gradient_elem = !tile.element<"gradient_elem">
!piece = tensor<512xf32>

tile.kernel @squared_error(%a: !tile.global<4 x !elem>, %b: !tile.global<4 x !elem>,
                           %gradient: !tile.global<4 x !gradient_elem>,
                           %partial: !tile.global<3 x f32>, %factor: f32)
    parameters [elem, gradient_elem, loss_rows, loss_warps, loss_ctas]
    grid %a by loss_rows {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %f0 = arith.constant 0.0 : f32
  %loss_rows = tile.parameter "loss_rows" : index
  %member, %warp = tile.team members 1 warps loss_warps ctas loss_ctas : index, index
  // What adds up the rows waits for this launch; this one for what makes a and b.
  tile.launch_next
  tile.launch_wait
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_row = arith.muli %tile, %loss_rows : index
  %row = arith.addi %first_row, %warp : index
  %rows = tile.dim %a, 2 : !tile.global<4 x !elem>
  %columns = tile.dim %a, 3 : !tile.global<4 x !elem>
  %exists = arith.cmpi slt, %row, %rows : index
  scf.if %exists {
    %a_row = tile.slice %a[%batch, %head, %row] : !tile.global<4 x !elem> -> !tile.view<1 x !elem>
    %b_row = tile.slice %b[%batch, %head, %row] : !tile.global<4 x !elem> -> !tile.view<1 x !elem>
    %gradient_row = tile.slice %gradient[%batch, %head, %row]
        : !tile.global<4 x !gradient_elem> -> !tile.view<1 x !gradient_elem>
    %partial_rows = tile.slice %partial[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %wants_gradient = tile.is_present %gradient : !tile.global<4 x !gradient_elem>
    %factors = tile.splat %factor : f32 -> !piece
    %no_sums = tile.splat %f0 : f32 -> !piece
    %sums = scf.for %column = %c0 to %columns step %c512 iter_args(%old_sums = %no_sums) -> (!piece) {
      // Beyond the end both are 0, and so is what they add.
      %a_piece = tile.load_values %a_row[%column] otherwise %f0 : !tile.view<1 x !elem>, f32 -> !piece
      %b_piece = tile.load_values %b_row[%column] otherwise %f0 : !tile.view<1 x !elem>, f32 -> !piece
      %difference = arith.subf %a_piece, %b_piece : !piece
      %new_sums = math.fma %difference, %difference, %old_sums : !piece
      scf.if %wants_gradient {
        %scaled = arith.mulf %difference, %factors : !piece
        tile.store %scaled, %gradient_row[%column] : !piece, !tile.view<1 x !gradient_elem>
      }
      scf.yield %new_sums : !piece
    }
    %sum = tile.total sum %sums : !piece -> f32
    tile.store_scalar %sum, %partial_rows[%row] : f32, !tile.view<1 x f32>
  }
}

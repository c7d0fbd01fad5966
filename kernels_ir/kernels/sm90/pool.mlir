// SPDX-License-Identifier: Apache-2.0
//
// pool for Hopper: the mean of each block of rows, over the tokens it really has.
//
//   pooled[b, h, i, :] = mean of x[b, h, t, :] over t in block i, t < length
//
// A stream: each warp takes one block, eight 16-byte loads of a lane under way at
// a time. Sums and result are float32 (SpargeAttention2, arXiv 2602.13515, pools q
// and k this way before scoring blocks).
//
// Parameter that follows from others: pool_rows = pool_warps * pool_block.

!elem = !tile.element<"elem">
!mean = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @pool(%x: !tile.global<4 x !elem>, %pooled: !tile.global<4 x f32>)
    parameters [elem, head_dim, pool_block, pool_rows, pool_warps, pool_ctas]
    grid %x by pool_rows {
  %zero = arith.constant 0 : index
  %pool_block = tile.parameter "pool_block" : index
  %pool_warps = tile.parameter "pool_warps" : index
  %member, %warp = tile.team members 1 warps pool_warps ctas pool_ctas : index, index
  // Whatever follows reads what this launch writes, and waits for it.
  tile.launch_next
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_block = arith.muli %tile, %pool_warps : index
  %block = arith.addi %first_block, %warp : index
  %first = arith.muli %block, %pool_block : index
  %length = tile.dim %x, 2 : !tile.global<4 x !elem>
  %exists = arith.cmpi slt, %first, %length : index
  scf.if %exists {
    %whole_end = arith.addi %first, %pool_block : index
    %end = arith.minsi %whole_end, %length : index
    %rows = tile.slice %x[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %sum = tile.sum_rows %rows[%first to %end] : !tile.view<2 x !elem> -> !mean
    %count = arith.subi %end, %first : index
    %count_i32 = arith.index_cast %count : index to i32
    %count_f32 = arith.sitofp %count_i32 : i32 to f32
    %divisor = tile.splat %count_f32 : f32 -> !mean
    %mean = arith.divf %sum, %divisor : !mean
    %pooled_rows = tile.slice %pooled[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>
    tile.store %mean, %pooled_rows[%block, %zero] : !mean, !tile.view<2 x f32>
  }
  // x is the caller's, so that nothing above waits for a pool of the other
  // tensor that is launched just before; what comes next waits for both.
  tile.launch_wait
}

// SPDX-License-Identifier: Apache-2.0
//
// pool: the mean of each block of rows, over the tokens it really has.
//
//   pooled[b, h, i, :] = mean of x[b, h, t, :] over t in block i, t < length
//
// One program a block; sums and result are float32 (SpargeAttention2,
// arXiv 2602.13515, pools q and k this way before scoring blocks).

!block = tensor<?x?xf32, #tile.sizes<head_dim, pool_block>>
!mean = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @pool(%x: !tile.global<4 x !tile.element<"elem">>,
                  %pooled: !tile.global<4 x f32>)
    parameters [elem, head_dim, pool_block]
    grid %x by pool_block {
  %zero = arith.constant 0 : index
  %pool_block = tile.parameter "pool_block" : index
  %batch, %head, %i = tile.program_id : index, index, index
  %first = arith.muli %i, %pool_block : index
  %x_rows = tile.slice %x[%batch, %head] : !tile.global<4 x !tile.element<"elem">> -> !tile.view<2 x !tile.element<"elem">>
  %pooled_rows = tile.slice %pooled[%batch, %head] : !tile.global<4 x f32> -> !tile.view<2 x f32>

  // Tokens beyond the end load as zeros and do not count.
  %tokens = tile.load %x_rows[%first, %zero] transposed : !tile.view<2 x !tile.element<"elem">> -> !block
  %length = tile.dim %x, 2 : !tile.global<4 x !tile.element<"elem">>
  %rest = arith.subi %length, %first : index
  %count = arith.minsi %rest, %pool_block : index
  %count_i32 = arith.index_cast %count : index to i32
  %count_f32 = arith.sitofp %count_i32 : i32 to f32

  %sum = tile.reduce sum %tokens : !block -> !mean
  %divisor = tile.splat %count_f32 : f32 -> !mean
  %mean = arith.divf %sum, %divisor : !mean
  tile.store %mean, %pooled_rows[%i, %zero] : !mean, !tile.view<2 x f32>
}

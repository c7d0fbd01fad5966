// SPDX-License-Identifier: Apache-2.0
//
// quantise_values for Hopper: v in eight bits as the image that
// attention_fwd_fp8.mlir multiplies weights with.
//
//   image[b, h][c, p(t)] = round(factors[b, h, c] v[b, h, t, c])
//   image[b, h][head_dim + i, p(t)] = 1, i < 8
//
// as f8E4M3FN, to the nearest, at most 448; p(t) is a key's place within its
// sixteen (tile.scale_cores). Row g (head_dim / 8 + 1) + i of the tensor `image`
// is the core matrix of channels 8 i to 8 i + 7 and keys 16 g to 16 g + 15. Keys
// from the last to the next multiple of sixteen are 0.
//
// A stream: each warp takes quantise_block keys, sixteen loads of a lane under way
// at a time.
//
// Parameter that follows from others: quantise_rows = quantise_warps *
// quantise_block; quantise_block is a multiple of 16.

!elem = !tile.element<"elem">
!channels = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @quantise_values(%v: !tile.global<4 x !elem>, %factors: !tile.global<3 x f32>,
                             %image: !tile.global<4 x f8E4M3FN>)
    parameters [elem, head_dim, quantise_block, quantise_rows, quantise_warps, quantise_ctas]
    grid %v by quantise_rows {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %f1 = arith.constant 1.0 : f32
  %quantise_block = tile.parameter "quantise_block" : index
  %quantise_warps = tile.parameter "quantise_warps" : index
  %member, %warp = tile.team members 1 warps quantise_warps ctas quantise_ctas : index, index
  tile.launch_next
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_block = arith.muli %tile, %quantise_warps : index
  %block = arith.addi %first_block, %warp : index
  %first = arith.muli %block, %quantise_block : index
  %length = tile.dim %v, 2 : !tile.global<4 x !elem>
  %whole_end = arith.addi %first, %quantise_block : index
  %end = arith.minsi %whole_end, %length : index
  // The factors are what the launch before this one found.
  tile.launch_wait
  %head_factors = tile.slice %factors[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
  %channel_factors = tile.load_values %head_factors[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> !channels
  %keys = tile.slice %v[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
  %into = tile.slice %image[%batch, %head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
  scf.for %key = %first to %end step %c16 {
    tile.scale_cores %keys[%key to %end] by %channel_factors into %into
        : !tile.view<2 x !elem>, !channels, !tile.view<2 x f8E4M3FN>
  }
}

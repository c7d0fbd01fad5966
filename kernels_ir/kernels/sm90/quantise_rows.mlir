// SPDX-License-Identifier: Apache-2.0
//
// quantise_rows for Hopper: q or k in eight bits, for attention_fwd_fp8.mlir.
//
//   into[b, h, t, :] = round(factors[b, h] x[b, h, t, :])
//
// as f8E4M3FN, to the nearest, at most 448. A factor is one of a head, not of a
// block: a floating-point number of eight bits has the same three bits of mantissa
// over fourteen octaves, so that a nearer scale would gain nothing, and scores of
// a head then have one unit, which q carries (quantise_factors.mlir).
//
// A stream: each warp takes quantise_block rows, eight 16-byte loads of a lane
// under way at a time.
//
// Parameter that follows from others: quantise_rows = quantise_warps *
// quantise_block.

!elem = !tile.element<"elem">

tile.kernel @quantise_rows(%x: !tile.global<4 x !elem>, %factors: !tile.global<2 x f32>,
                           %into: !tile.global<4 x f8E4M3FN>)
    parameters [elem, head_dim, quantise_block, quantise_rows, quantise_warps, quantise_ctas]
    grid %x by quantise_rows {
  %quantise_block = tile.parameter "quantise_block" : index
  %quantise_warps = tile.parameter "quantise_warps" : index
  %member, %warp = tile.team members 1 warps quantise_warps ctas quantise_ctas : index, index
  tile.launch_next
  %batch, %head, %tile = tile.program_id : index, index, index
  %first_block = arith.muli %tile, %quantise_warps : index
  %block = arith.addi %first_block, %warp : index
  %first = arith.muli %block, %quantise_block : index
  %length = tile.dim %x, 2 : !tile.global<4 x !elem>
  // The factors are what the launch before this one found.
  tile.launch_wait
  %exists = arith.cmpi slt, %first, %length : index
  scf.if %exists {
    %whole_end = arith.addi %first, %quantise_block : index
    %end = arith.minsi %whole_end, %length : index
    %head_factors = tile.slice %factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
    %factor = tile.load_scalar %head_factors[%head] : !tile.view<1 x f32> -> f32
    %rows = tile.slice %x[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
    %into_rows = tile.slice %into[%batch, %head] : !tile.global<4 x f8E4M3FN> -> !tile.view<2 x f8E4M3FN>
    tile.scale_rows %rows[%first to %end] by %factor into %into_rows columns head_dim
        : !tile.view<2 x !elem>, !tile.view<2 x f8E4M3FN>
  }
}

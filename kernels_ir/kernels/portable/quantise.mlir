// SPDX-License-Identifier: Apache-2.0
//
// quantise: q, k and v in eight bits, for attention_fwd_fp8.mlir, and on request the
// means of q's and k's blocks.
//
//   into_q[b, h, t, :] = round(q_factors[b, h] q[b, h, t, :])
//   into_k[b, h, t, :] = round(k_factors[b, h] k[b, h, t, :])
//   image[b, h, t, c]  = round(v_factors[b, h, c] v[b, h, t, c])
//   pooled_q, pooled_k: as pool.mlir, of q and of k as they are
//
// as f8E4M3FN, to the nearest, at most 448. Here the image is v itself, row by row;
// Hopper's tensor cores want another order. pooled_q and pooled_k may be absent
// together. saturated is left as it is: quantise_again.mlir looks for itself.
//
// A factor of q or k is one of a head, not of a block: a floating-point number of
// eight bits has the same three bits of mantissa over fourteen octaves, so that a
// nearer scale would gain nothing, and scores of a head then have one unit, which q
// carries (quantise_factors.mlir).
//
// A program takes one block of q, and the blocks of k and v of its batch are shared
// out among the batch's programs, as in pool.mlir.

!elem = !tile.element<"elem">
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!narrow = !tile.global<4 x f8E4M3FN>
!narrow_rows = !tile.view<2 x f8E4M3FN>
!pooled = !tile.global<4 x f32>
!pooled_rows = !tile.view<2 x f32>
!q_block = tensor<?x?xf32, #tile.sizes<mask_block_q, head_dim>>
!kv_block = tensor<?x?xf32, #tile.sizes<mask_block_kv, head_dim>>
!q_tokens = tensor<?x?xf32, #tile.sizes<head_dim, mask_block_q>>
!k_tokens = tensor<?x?xf32, #tile.sizes<head_dim, mask_block_kv>>
!channels = tensor<?xf32, #tile.sizes<head_dim>>

tile.kernel @quantise(%q: !wide, %k: !wide, %v: !wide,
                      %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                      %v_factors: !tile.global<3 x f32>,
                      %into_q: !narrow, %into_k: !narrow, %image: !narrow,
                      %pooled_q: !pooled, %pooled_k: !pooled, %saturated: !tile.global<1 x i32>)
    parameters [elem, head_dim, mask_block_q, mask_block_kv]
    grid %q by mask_block_q {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.0 : f32
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %batch, %head, %i = tile.program_id : index, index, index
  %q_len = tile.dim %q, 2 : !wide
  %kv_len = tile.dim %k, 2 : !wide
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %q_blocks = arith.ceildivui %q_len, %mask_block_q : index
  %kv_blocks = arith.ceildivui %kv_len, %mask_block_kv : index
  %pools = tile.is_present %pooled_q : !pooled

  %q_rows = tile.slice %q[%batch, %head] : !wide -> !wide_rows
  %q_into = tile.slice %into_q[%batch, %head] : !narrow -> !narrow_rows
  %q_first = arith.muli %i, %mask_block_q : index
  %q_factor_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
  %q_factor = tile.load_scalar %q_factor_row[%head] : !tile.view<1 x f32> -> f32
  %q_scale = tile.splat %q_factor : f32 -> !q_block
  %q_elements = tile.load %q_rows[%q_first, %c0] : !wide_rows -> !q_block
  %q_scaled = arith.mulf %q_elements, %q_scale : !q_block
  tile.store %q_scaled, %q_into[%q_first, %c0] : !q_block, !narrow_rows
  scf.if %pools {
    // Tokens beyond the end load as zeros and do not count.
    %q_means = tile.slice %pooled_q[%batch, %head] : !pooled -> !pooled_rows
    %q_tokens = tile.load %q_rows[%q_first, %c0] transposed : !wide_rows -> !q_tokens
    %q_rest = arith.subi %q_len, %q_first : index
    %q_count = arith.minsi %q_rest, %mask_block_q : index
    %q_count_i32 = arith.index_cast %q_count : index to i32
    %q_count_f32 = arith.sitofp %q_count_i32 : i32 to f32
    %q_sum = tile.reduce sum %q_tokens : !q_tokens -> !channels
    %q_divisor = tile.splat %q_count_f32 : f32 -> !channels
    %q_mean = arith.divf %q_sum, %q_divisor : !channels
    tile.store %q_mean, %q_means[%i, %c0] : !channels, !pooled_rows
  }

  // Every so many-th block of k and v, over all of the batch's heads.
  %before = arith.muli %head, %q_blocks : index
  %program = arith.addi %before, %i : index
  %programs = arith.muli %q_heads, %q_blocks : index
  %all_kv_blocks = arith.muli %kv_heads, %kv_blocks : index
  scf.for %block = %program to %all_kv_blocks step %programs {
    %kv_head = arith.divui %block, %kv_blocks : index
    %head_start = arith.muli %kv_head, %kv_blocks : index
    %j = arith.subi %block, %head_start : index
    %first = arith.muli %j, %mask_block_kv : index

    %k_rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %k_into = tile.slice %into_k[%batch, %kv_head] : !narrow -> !narrow_rows
    %k_factor_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
    %k_factor = tile.load_scalar %k_factor_row[%kv_head] : !tile.view<1 x f32> -> f32
    %k_scale = tile.splat %k_factor : f32 -> !kv_block
    %k_elements = tile.load %k_rows[%first, %c0] : !wide_rows -> !kv_block
    %k_scaled = arith.mulf %k_elements, %k_scale : !kv_block
    tile.store %k_scaled, %k_into[%first, %c0] : !kv_block, !narrow_rows
    scf.if %pools {
      %k_means = tile.slice %pooled_k[%batch, %kv_head] : !pooled -> !pooled_rows
      %k_tokens = tile.load %k_rows[%first, %c0] transposed : !wide_rows -> !k_tokens
      %k_rest = arith.subi %kv_len, %first : index
      %k_count = arith.minsi %k_rest, %mask_block_kv : index
      %k_count_i32 = arith.index_cast %k_count : index to i32
      %k_count_f32 = arith.sitofp %k_count_i32 : i32 to f32
      %k_sum = tile.reduce sum %k_tokens : !k_tokens -> !channels
      %k_divisor = tile.splat %k_count_f32 : f32 -> !channels
      %k_mean_of_block = arith.divf %k_sum, %k_divisor : !channels
      tile.store %k_mean_of_block, %k_means[%j, %c0] : !channels, !pooled_rows
    }

    %v_factor_row = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %v_factor = tile.load_values %v_factor_row[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> !channels
    %v_rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
    %v_into = tile.slice %image[%batch, %kv_head] : !narrow -> !narrow_rows
    %v_elements = tile.load %v_rows[%first, %c0] : !wide_rows -> !kv_block
    %v_scale = tile.expand %v_factor axis 0 : !channels -> !kv_block
    %v_scaled = arith.mulf %v_elements, %v_scale : !kv_block
    tile.store %v_scaled, %v_into[%first, %c0] : !kv_block, !narrow_rows
  }
}

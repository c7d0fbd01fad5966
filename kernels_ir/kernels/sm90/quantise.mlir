// SPDX-License-Identifier: Apache-2.0
//
// quantise for Hopper: q, k and v in eight bits, for attention_fwd_fp8.mlir, and on
// request the means of q's and k's blocks, all in one reading.
//
//   into_q[b, h, t, :] = round(q_factors[b, h] q[b, h, t, :])
//   into_k[b, h, t, :] = round(k_factors[b, h] k[b, h, t, :])
//   image[b, h][c, p(t)] = round(v_factors[b, h, c] v[b, h, t, c])
//   image[b, h][head_dim + i, p(t)] = 1, i < 8
//   pooled_q, pooled_k: as pool.mlir (split_means too), of q and of k as they
//   are, and progress
//
// as f8E4M3FN, to the nearest, at most 448; p(t) is a key's place within its
// sixteen (tile.scale_cores). Row g (head_dim / 8 + 1) + i of the tensor `image`
// is the core matrix of channels 8 i to 8 i + 7 and keys 16 g to 16 g + 15. Keys
// from the last to the next multiple of sixteen are 0.
//
// saturated[b kv_heads + h] is added to where an element of head h of k, of its heads
// of q or of its v became 448, -448 or NaN: factors come from a sample of the rows
// (quantise_factors.mlir), and quantise_again.mlir looks after such a head.
//
// A factor of q or k is one of a head, not of a block: a floating-point number of
// eight bits has the same three bits of mantissa over fourteen octaves, so that a
// nearer scale would gain nothing, and scores of a head then have one unit, which q
// carries (quantise_factors.mlir). progress and saturated may be absent, and pooled_q
// and pooled_k together.
//
// A stream. A program takes quantise_rows rows of q and, of k and v, as many as its
// share of the heads that q's share is: a warp each, with eight (v: sixteen) loads
// of a lane under way at a time. From the last head to the first: what was written
// last is likeliest still in the second-level cache, and attention_fwd_fp8 starts
// with the first heads.
//
// quantise_rows is a multiple of 16 and of both mask blocks.

!elem = !tile.element<"elem">
!mean = tensor<?xf32, #tile.sizes<head_dim>>
!wide = !tile.global<4 x !elem>
!wide_rows = !tile.view<2 x !elem>
!narrow = !tile.global<4 x f8E4M3FN>
!narrow_rows = !tile.view<2 x f8E4M3FN>
!pooled = !tile.global<4 x f32>
!pooled_rows = !tile.view<2 x f32>

tile.kernel @quantise(%q: !wide, %k: !wide, %v: !wide,
                      %q_factors: !tile.global<2 x f32>, %k_factors: !tile.global<2 x f32>,
                      %v_factors: !tile.global<3 x f32>,
                      %into_q: !narrow, %into_k: !narrow, %image: !narrow,
                      %pooled_q: !pooled, %pooled_k: !pooled, %progress: !tile.global<1 x i32>,
                      %saturated: !tile.global<1 x i32>)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, quantise_rows, quantise_ctas, split_means]
    grid %q by quantise_rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %false = arith.constant false
  %f1 = arith.constant 1.0 : f32
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %quantise_rows = tile.parameter "quantise_rows" : index
  %is_split = tile.parameter "split_means" : i1
  %member, %warp = tile.team members 1 warps 3 ctas quantise_ctas : index, index
  tile.launch_next
  %batch, %from_end, %tile = tile.program_id : index, index, index
  %pools = tile.is_present %pooled_q : !pooled
  %q_len = tile.dim %q, 2 : !wide
  %kv_len = tile.dim %k, 2 : !wide
  %q_heads = tile.dim %q, 1 : !wide
  %kv_heads = tile.dim %k, 1 : !wide
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  %last_head = arith.subi %q_heads, %c1 : index
  %q_head = arith.subi %last_head, %from_end : index
  %kv_head = arith.divui %q_head, %heads_per_kv : index
  %batch_group = arith.muli %batch, %kv_heads : index
  %group = arith.addi %batch_group, %kv_head : index
  // Tiles of k and v go round the programs of the heads that share them.
  %q_tiles = arith.ceildivui %q_len, %quantise_rows : index
  %kv_tiles = arith.ceildivui %kv_len, %quantise_rows : index
  %group_first = arith.muli %kv_head, %heads_per_kv : index
  %in_group = arith.subi %q_head, %group_first : index
  %group_start = arith.muli %in_group, %q_tiles : index
  %first_kv_tile = arith.addi %group_start, %tile : index
  %kv_step = arith.muli %heads_per_kv, %q_tiles : index
  // The factors are what the launch before this one found.
  tile.launch_wait

  %is_q = arith.cmpi eq, %warp, %c0 : index
  scf.if %is_q {
    %factor_row = tile.slice %q_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
    %factor = tile.load_scalar %factor_row[%q_head] : !tile.view<1 x f32> -> f32
    %rows = tile.slice %q[%batch, %q_head] : !wide -> !wide_rows
    %into = tile.slice %into_q[%batch, %q_head] : !narrow -> !narrow_rows
    %means = tile.slice %pooled_q[%batch, %q_head] : !pooled -> !pooled_rows
    %tile_first = arith.muli %tile, %quantise_rows : index
    %tile_whole = arith.addi %tile_first, %quantise_rows : index
    %tile_end = arith.minsi %tile_whole, %q_len : index
    %done, %any = scf.for %first = %tile_first to %tile_end step %mask_block_q
        iter_args(%so_far = %c0, %any_so_far = %false) -> (index, i1) {
      %whole_end = arith.addi %first, %mask_block_q : index
      %end = arith.minsi %whole_end, %q_len : index
      %sum, %saturates = tile.scale_rows %rows[%first to %end] by %factor into %into columns head_dim
          : !wide_rows, !narrow_rows -> !mean saturates i1
      %any_more = arith.ori %any_so_far, %saturates : i1
      scf.if %pools {
        %block = arith.divui %first, %mask_block_q : index
        %count = arith.subi %end, %first : index
        %count_i32 = arith.index_cast %count : index to i32
        %count_f32 = arith.sitofp %count_i32 : i32 to f32
        %divisor = tile.splat %count_f32 : f32 -> !mean
        %mean = arith.divf %sum, %divisor : !mean
        scf.if %is_split {
          tile.store_split %mean, %means[%block] : !mean, !pooled_rows
        } else {
          tile.store %mean, %means[%block, %c0] : !mean, !pooled_rows
        }
      }
      %more = arith.addi %so_far, %c1 : index
      scf.yield %more, %any_more : index, i1
    }
    scf.if %pools {
      tile.signal %progress[%group] by %done : !tile.global<1 x i32>
    }
    scf.if %any {
      tile.signal %saturated[%group] by %c1 : !tile.global<1 x i32>
    }
  }

  %is_k = arith.cmpi eq, %warp, %c1 : index
  scf.if %is_k {
    %factor_row = tile.slice %k_factors[%batch] : !tile.global<2 x f32> -> !tile.view<1 x f32>
    %factor = tile.load_scalar %factor_row[%kv_head] : !tile.view<1 x f32> -> f32
    %rows = tile.slice %k[%batch, %kv_head] : !wide -> !wide_rows
    %into = tile.slice %into_k[%batch, %kv_head] : !narrow -> !narrow_rows
    %means = tile.slice %pooled_k[%batch, %kv_head] : !pooled -> !pooled_rows
    %done, %any = scf.for %kv_tile = %first_kv_tile to %kv_tiles step %kv_step
        iter_args(%tiles_done = %c0, %any_of_tiles = %false) -> (index, i1) {
      %tile_first = arith.muli %kv_tile, %quantise_rows : index
      %tile_whole = arith.addi %tile_first, %quantise_rows : index
      %tile_end = arith.minsi %tile_whole, %kv_len : index
      %tile_done, %any_of_tile = scf.for %first = %tile_first to %tile_end step %mask_block_kv
          iter_args(%so_far = %tiles_done, %any_so_far = %any_of_tiles) -> (index, i1) {
        %whole_end = arith.addi %first, %mask_block_kv : index
        %end = arith.minsi %whole_end, %kv_len : index
        %sum, %saturates = tile.scale_rows %rows[%first to %end] by %factor into %into columns head_dim
            : !wide_rows, !narrow_rows -> !mean saturates i1
        %any_more = arith.ori %any_so_far, %saturates : i1
        scf.if %pools {
          %block = arith.divui %first, %mask_block_kv : index
          %count = arith.subi %end, %first : index
          %count_i32 = arith.index_cast %count : index to i32
          %count_f32 = arith.sitofp %count_i32 : i32 to f32
          %divisor = tile.splat %count_f32 : f32 -> !mean
          %mean = arith.divf %sum, %divisor : !mean
          scf.if %is_split {
            tile.store_split %mean, %means[%block] : !mean, !pooled_rows
          } else {
            tile.store %mean, %means[%block, %c0] : !mean, !pooled_rows
          }
        }
        %more = arith.addi %so_far, %c1 : index
        scf.yield %more, %any_more : index, i1
      }
      scf.yield %tile_done, %any_of_tile : index, i1
    }
    scf.if %pools {
      tile.signal %progress[%group] by %done : !tile.global<1 x i32>
    }
    scf.if %any {
      tile.signal %saturated[%group] by %c1 : !tile.global<1 x i32>
    }
  }

  %c2 = arith.constant 2 : index
  %is_v = arith.cmpi eq, %warp, %c2 : index
  scf.if %is_v {
    %head_factors = tile.slice %v_factors[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
    %factors = tile.load_values %head_factors[%c0] otherwise %f1 : !tile.view<1 x f32>, f32 -> !mean
    %rows = tile.slice %v[%batch, %kv_head] : !wide -> !wide_rows
    %into = tile.slice %image[%batch, %kv_head] : !narrow -> !narrow_rows
    %any = scf.for %kv_tile = %first_kv_tile to %kv_tiles step %kv_step iter_args(%any_of_tiles = %false) -> (i1) {
      %tile_first = arith.muli %kv_tile, %quantise_rows : index
      %tile_whole = arith.addi %tile_first, %quantise_rows : index
      %tile_end = arith.minsi %tile_whole, %kv_len : index
      %any_of_tile = scf.for %key = %tile_first to %tile_end step %c16 iter_args(%any_so_far = %any_of_tiles) -> (i1) {
        %saturates = tile.scale_cores %rows[%key to %tile_end] by %factors into %into
            : !wide_rows, !mean, !narrow_rows saturates i1
        %any_more = arith.ori %any_so_far, %saturates : i1
        scf.yield %any_more : i1
      }
      scf.yield %any_of_tile : i1
    }
    scf.if %any {
      tile.signal %saturated[%group] by %c1 : !tile.global<1 x i32>
    }
  }
}

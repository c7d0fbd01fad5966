// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd_fp8 for Hopper: block-sparse attention of 8-bit q, k and v, with
// an online softmax.
//
//   o[i]   = v_scale sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = 2^(s[i, j] / 8)
//   lse[i] = ln sum_j p[i, j],                             s = q kᵀ
//
// q holds 8 log2(e) softmax_scale q 2^n and k k 2^-n for some n of the head (all
// scales that there are are in q, so that s needs none), v is divided by v_scale,
// one a channel; all are f8E4M3FN. v is an image: a matrix of head_dim + 8 rows
// and a column for each key, the last eight rows 1, as its core matrices (see
// tile.gather_panels), with the keys of every sixteen in the order that a dot
// with 8-bit weights in registers wants (see tile.dot_async). Keys that fill the
// image up are 0, in the last eight rows too, so that column head_dim of the
// output is the sum of the weights as they are rounded.
//
// (FlashAttention-3, arXiv 2407.08608; SageAttention2, arXiv 2411.10958, which
// found that the tensor core sums 8-bit products in few bits: so each key tile's
// product starts from 0 and is added to the output in f32.)
//
// score = float32 sums scores in float32 ("exact"), float16 in half the registers
// and instructions: scores are then rounded to 11 bits, and must stay below 65504
// / 8 octaves. With `fast` the weights come without any exp2: n = s + 120 - 8
// reference, rounded and clamped at 0, are the bits of 2^((s - 8 reference) / 8 +
// 8) as f8E4M3FN, but for a mantissa that grows linearly (up to 6 % too large, 4 %
// in the mean, which o does not see and lse is corrected for). They are the bits
// of the float16 subnormal n 2^-24 as well, so that one fma makes two of them.
//
// Weights are taken relative to a reference, the row's maximum so far rounded up
// to a whole octave, at most 2^8, and 0 below 2^-10; rows whose scores are all
// below -4096 octaves give 0.
//
// CTAs, rows, gathered key tiles and masks are as in attention_fwd.mlir. Roles:
//
//   scout      reads counts and lists, several key tiles ahead of the loads
//   loader     starts the copies of q, k and v
//   storer     starts the copies of o
//   consumers  compute; 64 query rows a warpgroup
//
// Rings (stations in brackets; slots in shared memory):
//
//   rows   scout [0] -> loader [1] -> storer [2]: what a row is: steps (-1: no
//          more rows), batch, head, first query row
//   boxes  scout [0] -> loader [1]: first key rows of a tile's boxes, and flags
//   q      loader [0] -> consumers [1]: q of a row, and what the row is
//   k, v   loader [0] -> consumers [1]: a key tile (k with its boxes and flags)
//   o      storer [0] -> consumers [1] -> storer [2]: an empty slot, then o
//
// Step by step the tensor core does the scores of a key tile and the product of
// the tile before. Flags: 1: some scores must be masked.
//
// Shared memory at head_dim = 128 and 192 keys: q 2 x 16 KiB, k 3 x 24 KiB, v 3 x
// 26 KiB, o 32 KiB.
//
// Parameters that follow from others: value_rows = head_dim + 8; key_box =
// gcd(tile_kv, mask_block_kv), the rows that one copy moves (tile_kv without
// lists); boxes = tile_kv / key_box; consumer_warps = tile_q / 16; half: whether
// score is float16; fast only with half.

!elem = !tile.element<"elem">
!score = !tile.element<"score">
!q_slot = !tile.shared<tile_q x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!k_slot = !tile.shared<tile_kv x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!k_box = !tile.shared<key_box x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!v_slot = !tile.shared<value_rows x tile_kv x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<value_rows x key_box x f8E4M3FN, swizzle 16>
!o_slot = !tile.shared<tile_q x head_dim x !elem, swizzle 128>
!row_note = !tile.shared<4 x i32>
!box_note = !tile.shared<boxes x i32>
!flag_note = !tile.shared<1 x i32>

!row_ring = !tile.ring<!row_note>
!box_ring = !tile.ring<!box_note, !flag_note>
!q_ring = !tile.ring<!q_slot, !row_note>
!k_ring = !tile.ring<!k_slot, !box_note, !flag_note>
!v_ring = !tile.ring<!v_slot>
!o_ring = !tile.ring<!o_slot>
!cursor = !tile.cursor

!box_rows = tensor<?xi32, #tile.sizes<boxes>>
!box_mask = tensor<?xi1, #tile.sizes<boxes>>
!scores = tensor<?x?x!score, #tile.sizes<tile_q, tile_kv>>
!half_scores = tensor<?x?xf16, #tile.sizes<tile_q, tile_kv>>
!float_scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
!weights = tensor<?x?xf8E4M3FN, #tile.sizes<tile_q, tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<tile_q, tile_kv>>
!score_mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!output = tensor<?x?xf32, #tile.sizes<tile_q, value_rows>>
!sums = tensor<?x?xf32, #tile.sizes<tile_q, 8>>
!values = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!o_tile = tensor<?x?x!elem, #tile.sizes<tile_q, head_dim>>
!channels = tensor<?xf32, #tile.sizes<head_dim>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>
!score_rows = tensor<?x!score, #tile.sizes<tile_q>>
!half_rows = tensor<?xf16, #tile.sizes<tile_q>>
!row_mask = tensor<?xi1, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>

tile.kernel @attention_fwd_fp8(%q: !tile.global<4 x f8E4M3FN>, %k: !tile.global<4 x f8E4M3FN>,
                               %v: !tile.global<4 x f8E4M3FN>, %v_scale: !tile.global<3 x f32>,
                               %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                               %o: !tile.global<4 x !elem>, %lse: !tile.global<3 x f32>,
                               %tickets: !tile.global<1 x i32>)
    parameters [elem, score, head_dim, value_rows, mask_block_q, mask_block_kv, causal, has_lists, half, fast,
                tile_q, tile_kv, key_box, boxes, swizzle_bytes, q_stages, k_stages, v_stages,
                consumer_warps, producer_registers, consumer_registers]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %nowhere = arith.constant 1073741824 : index
  %masked_bit = arith.constant 1 : i32
  %tile_q = tile.parameter "tile_q" : index
  %tile_kv = tile.parameter "tile_kv" : index
  %key_box = tile.parameter "key_box" : index
  %boxes = tile.parameter "boxes" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1
  %half = tile.parameter "half" : i1
  %fast = tile.parameter "fast" : i1

  %q_len = tile.dim %q, 2 : !tile.global<4 x f8E4M3FN>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x f8E4M3FN>
  // Query row i sees the keys up to i + shift.
  %shift = arith.subi %kv_len, %q_len : index

  // What the TMA copies, in which boxes.
  %q_map = tile.tensor_map %q : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !q_slot>
  %k_map = tile.tensor_map %k : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !k_box>
  %v_map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %o_map = tile.tensor_map %o : !tile.global<4 x !elem> -> !tile.tensor_map<4, !o_slot>

  // Each ring's barriers: a slot is full when station 0 has arrived (one thread,
  // with the bytes of its copies), and passed on when the warps named have.
  %row_ring = tile.ring stages 4 passed_by [1, 1] : !row_ring
  %box_ring = tile.ring stages 8 passed_by [1] : !box_ring
  %q_ring = tile.ring stages q_stages passed_by [consumer_warps] : !q_ring
  %k_ring = tile.ring stages k_stages passed_by [consumer_warps] : !k_ring
  %v_ring = tile.ring stages v_stages passed_by [consumer_warps] : !v_ring
  %o_ring = tile.ring stages 1 passed_by [consumer_warps, 1] : !o_ring
  %start = tile.ring_start : !cursor

  // The lists may be what the launch before this one selects.
  tile.launch_wait

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers producer_registers {
    %first, %end, %step = tile.programs : index, index, index
    %blocks_per_tile_row = arith.divui %mask_block_kv, %key_box : index
    %box_i32 = arith.index_cast %key_box : index to i32
    %box_sizes = tile.splat %box_i32 : i32 -> !box_rows

    %last:3 = scf.while (%program = %first, %row_at = %start, %first_box_at = %start)
        : (index, !cursor, !cursor) -> (index, !cursor, !cursor) {
      %is_program = arith.cmpi slt, %program, %end : index
      scf.condition(%is_program) %program, %row_at, %first_box_at : index, !cursor, !cursor
    } do {
    ^row(%program: index, %row_at: !cursor, %first_box_at: !cursor):
      %batch, %head, %tile = tile.program_place %program : index, index, index
      %first_row = arith.muli %tile, %tile_q : index
      // The keys that the row's first query and its last one see end here.
      %after_first = arith.addi %first_row, %shift : index
      %first_end_causal = arith.addi %after_first, %c1 : index
      %first_end_clipped = arith.minsi %first_end_causal, %kv_len : index
      %first_end = arith.select %causal, %first_end_clipped, %kv_len : index
      %last_row_end = arith.addi %first_row, %tile_q : index
      %row_end = arith.minsi %last_row_end, %q_len : index
      %last_end_causal = arith.addi %row_end, %shift : index
      %last_end_clipped = arith.minsi %last_end_causal, %kv_len : index
      %last_end = arith.select %causal, %last_end_clipped, %kv_len : index

      // Without lists: one box a step, up to the last key seen.
      %mask_row = arith.divui %first_row, %mask_block_q : index
      %list = tile.slice %indices[%batch, %head, %mask_row] : !tile.global<4 x i32> -> !tile.view<1 x i32>
      %count, %key_steps = scf.if %has_lists -> (index, index) {
        %row_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
        %count_i32 = tile.load_scalar %row_counts[%mask_row] : !tile.view<1 x i32> -> i32
        // No count reaches beyond the list's memory, whatever it says.
        %not_negative = arith.maxsi %count_i32, %c0_i32 : i32
        %wanted = arith.index_cast %not_negative : i32 to index
        %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
        %listed = arith.minsi %wanted, %capacity : index
        %listed_boxes = arith.muli %listed, %blocks_per_tile_row : index
        %list_steps = arith.ceildivui %listed_boxes, %boxes : index
        scf.yield %listed, %list_steps : index, index
      } else {
        %reached = arith.maxsi %last_end, %c0 : index
        %dense_steps = arith.ceildivui %reached, %tile_kv : index
        scf.yield %c0, %dense_steps : index, index
      }
      // A row without keys gets one key tile of nothing.
      %steps = arith.maxsi %key_steps, %c1 : index
      %has_keys = arith.cmpi sgt, %key_steps, %c0 : index

      %row_note = tile.ring_acquire %row_ring[%row_at] : !row_ring -> !row_note
      %steps_i32 = arith.index_cast %steps : index to i32
      %batch_i32 = arith.index_cast %batch : index to i32
      %head_i32 = arith.index_cast %head : index to i32
      %first_row_i32 = arith.index_cast %first_row : index to i32
      tile.store_note (%steps_i32, %batch_i32, %head_i32, %first_row_i32), %row_note : !row_note
      tile.ring_commit %row_ring[%row_at] : !row_ring
      %row_after = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor

      // Boxes that reach beyond what the first query sees hold scores to mask.
      %first_end_i32 = arith.index_cast %first_end : index to i32
      %first_ends = tile.splat %first_end_i32 : i32 -> !box_rows
      %box_after = scf.for %s = %c0 to %steps step %c1 iter_args(%box_at = %first_box_at) -> (!cursor) {
        %box_rows = scf.if %has_lists -> (!box_rows) {
          %first_box = arith.muli %s, %boxes : index
          %listed_rows = tile.list_boxes %list[%first_box] count %count block %mask_block_kv box %key_box limit %kv_len
              : !tile.view<1 x i32> -> !box_rows
          scf.yield %listed_rows : !box_rows
        } else {
          %tile_key = arith.muli %s, %tile_kv : index
          %first_key = arith.select %has_keys, %tile_key, %nowhere : index
          %first_key_i32 = arith.index_cast %first_key : index to i32
          %dense_rows = tile.splat %first_key_i32 : i32 -> !box_rows
          scf.yield %dense_rows : !box_rows
        }
        %box_ends = arith.addi %box_rows, %box_sizes : !box_rows
        %beyond = arith.cmpi sgt, %box_ends, %first_ends : !box_rows
        %masked = tile.any %beyond : !box_mask
        %flags = arith.select %masked, %masked_bit, %c0_i32 : i32
        %box_note, %flag_note = tile.ring_acquire %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        tile.store_shared %box_rows, %box_note : !box_rows, !box_note
        tile.store_note (%flags), %flag_note : !flag_note
        tile.ring_commit %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
        scf.yield %box_next : !cursor
      }
      // Rows have unequal lists, so whoever is done takes the next.
      %next = tile.next_program %program counted by %tickets : !tile.global<1 x i32> -> index
      scf.yield %next, %row_after, %box_after : index, !cursor, !cursor
    }

    // No more rows.
    %minus_one = arith.constant -1 : i32
    %end_note = tile.ring_acquire %row_ring[%last#1] : !row_ring -> !row_note
    tile.store_note (%minus_one, %c0_i32, %c0_i32, %c0_i32), %end_note : !row_note
    tile.ring_commit %row_ring[%last#1] : !row_ring
  }

  // ---- loader: q of a row, k and v of each step --------------------------------
  tile.role "loader" warps 1 registers producer_registers {
    %q_heads = tile.dim %q, 1 : !tile.global<4 x f8E4M3FN>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x f8E4M3FN>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index

    %ends:5 = scf.while (%row_at = %start, %first_box_at = %start, %q_at = %start, %first_k_at = %start,
                         %first_v_at = %start)
        : (!cursor, !cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor, !cursor) {
      %row_note = tile.ring_wait %row_ring[%row_at] : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %first_row = arith.index_cast %first_row_i32 : i32 to index
      %kv_head = arith.divui %head, %heads_per_kv : index
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32

      %q_slot, %q_note = tile.ring_acquire %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      tile.store_note (%steps_i32, %batch_i32, %head_i32, %first_row_i32), %q_note : !row_note
      scf.if %more {
        tile.ring_commit %q_ring[%q_at] loads(%q_slot : !q_slot) : !q_ring
        tile.load_async %q_map[%batch, %head, %first_row] into %q_slot : !tile.tensor_map<4, !q_slot>, !q_slot
      } else {
        tile.ring_commit %q_ring[%q_at] : !q_ring
      }
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor

      %box_after, %k_after, %v_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %k_at = %first_k_at, %v_at = %first_v_at)
          -> (!cursor, !cursor, !cursor) {
        %box_note, %flag_note = tile.ring_wait %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        %boxes_here = tile.load_shared %box_note : !box_note -> !box_rows
        %flags = tile.load_note %flag_note : !flag_note -> i32
        tile.ring_release %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor

        %k_slot, %k_boxes, %k_flags = tile.ring_acquire %k_ring[%k_at]
            : !k_ring -> !k_slot, !box_note, !flag_note
        tile.store_shared %boxes_here, %k_boxes : !box_rows, !box_note
        tile.store_note (%flags), %k_flags : !flag_note
        tile.ring_commit %k_ring[%k_at] loads(%k_slot : !k_slot) : !k_ring
        tile.gather_async %k_map[%batch, %kv_head] rows %boxes_here into %k_slot
            : !tile.tensor_map<4, !k_box>, !box_rows, !k_slot
        %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor

        %v_slot = tile.ring_acquire %v_ring[%v_at] : !v_ring -> !v_slot
        tile.ring_commit %v_ring[%v_at] loads(%v_slot : !v_slot) : !v_ring
        tile.gather_panels %v_map[%batch, %kv_head] columns %boxes_here into %v_slot
            : !tile.tensor_map<4, !v_box>, !box_rows, !v_slot
        %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
        scf.yield %box_next, %k_next, %v_next : !cursor, !cursor, !cursor
      }
      scf.condition(%more) %row_next, %box_after, %q_next, %k_after, %v_after
          : !cursor, !cursor, !cursor, !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %box_at: !cursor, %q_at: !cursor, %k_at: !cursor, %v_at: !cursor):
      scf.yield %row_at, %box_at, %q_at, %k_at, %v_at : !cursor, !cursor, !cursor, !cursor, !cursor
    }
  }

  // ---- storer: o ------------------------------------------------------------------
  tile.role "storer" warps 1 registers producer_registers {
    %ends:2 = scf.while (%row_at = %start, %o_at = %start) : (!cursor, !cursor) -> (!cursor, !cursor) {
      %note = tile.ring_wait %row_ring[%row_at] station 2 : !row_ring -> !row_note
      %steps, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 2 : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %more = arith.cmpi sge, %steps, %c0_i32 : i32
      scf.if %more {
        %empty = tile.ring_acquire %o_ring[%o_at] : !o_ring -> !o_slot
        tile.ring_commit %o_ring[%o_at] : !o_ring
        %o_slot = tile.ring_wait %o_ring[%o_at] station 2 : !o_ring -> !o_slot
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %first_row = arith.index_cast %first_row_i32 : i32 to index
        tile.store_async %o_slot, %o_map[%batch, %head, %first_row] : !o_slot, !tile.tensor_map<4, !o_slot>
        tile.store_wait
        tile.ring_release %o_ring[%o_at] station 2 : !o_ring
      }
      %o_next = tile.ring_next %o_ring[%o_at] : !o_ring -> !cursor
      scf.condition(%more) %row_next, %o_next : !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %o_at: !cursor):
      scf.yield %row_at, %o_at : !cursor, !cursor
    }
  }

  // ---- consumers -----------------------------------------------------------------
  tile.role "consumers" warps consumer_warps registers consumer_registers {
    %f0 = arith.constant 0.0 : f32
    %f1 = arith.constant 1.0 : f32
    %minus_inf = arith.constant 0xFF800000 : f32
    %eighth = arith.constant 0.125 : f32
    %ln_2 = arith.constant 0.693147181 : f32
    %zero_rows = tile.splat %f0 : f32 -> !rows
    %one_rows = tile.splat %f1 : f32 -> !rows
    %no_output = tile.splat %f0 : f32 -> !output
    %eighths = tile.splat %eighth : f32 -> !rows
    %ln_2s = tile.splat %ln_2 : f32 -> !rows
    %least = arith.constant -4096.0 : f32
    %no_reference = tile.splat %least : f32 -> !rows
    %minus_infs = tile.splat %minus_inf : f32 -> !rows
    %hidden_rows = tile.convert %minus_infs : !rows -> !score_rows
    %hidden = tile.expand %hidden_rows axis 1 : !score_rows -> !scores

    // The exponent of a weight is s / 8 + 8 - reference; its bits, as a float16
    // subnormal, (s + 120 - 8 reference) 2^-24.
    %unit = arith.constant 5.9604644775390625e-08 : f32
    %slope = arith.select %fast, %unit, %eighth : f32
    %slope_rows = tile.splat %slope : f32 -> !rows
    %half_slope_rows = tile.convert %slope_rows : !rows -> !half_rows
    %half_slopes = tile.expand %half_slope_rows axis 1 : !half_rows -> !half_scores
    %slopes = tile.splat %slope : f32 -> !float_scores
    %bits_start = arith.constant 7.152557373046875e-06 : f32
    %exponent_start = arith.constant 8.0 : f32
    %start_value = arith.select %fast, %bits_start, %exponent_start : f32
    %starts = tile.splat %start_value : f32 -> !rows
    %minus_octave_bits = arith.constant -4.76837158203125e-07 : f32
    %minus_octave = arith.constant -1.0 : f32
    %per_octave_value = arith.select %fast, %minus_octave_bits, %minus_octave : f32
    %per_octaves = tile.splat %per_octave_value : f32 -> !rows
    // log2 of the weights' sum: 8 too much, and with a linear mantissa the mean of
    // (1 + f) / 2^f over f from 0 to 1, 1.0407, too much.
    %exact_excess = arith.constant -8.0 : f32
    %linear_excess = arith.constant -8.0575 : f32
    %excess = arith.select %fast, %linear_excess, %exact_excess : f32
    %excesses = tile.splat %excess : f32 -> !rows

    %q_heads = tile.dim %q, 1 : !tile.global<4 x f8E4M3FN>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x f8E4M3FN>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
    %kv_len_i32 = arith.index_cast %kv_len : index to i32
    %shift_i32 = arith.index_cast %shift : index to i32

    %ends:4 = scf.while (%q_at = %start, %first_k_at = %start, %first_v_at = %start, %o_at = %start)
        : (!cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor) {
      %q_slot, %q_note = tile.ring_wait %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %q_note : !row_note -> i32, i32, i32, i32
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor
      %k_end, %v_end, %o_end = scf.if %more -> (!cursor, !cursor, !cursor) {
        %steps = arith.index_cast %steps_i32 : i32 to index
        // Row i sees the keys before row_ends[i].
        %first_limit = arith.addi %first_row_i32, %shift_i32 : i32
        %first_end = arith.addi %first_limit, %c1_i32 : i32
        %first_ends = tile.splat %first_end : i32 -> !row_numbers
        %kv_ends = tile.splat %kv_len_i32 : i32 -> !row_numbers
        %row_numbers = tile.iota : !row_numbers
        %causal_ends = arith.addi %first_ends, %row_numbers : !row_numbers
        %clipped_ends = arith.minsi %causal_ends, %kv_ends : !row_numbers
        %row_ends = arith.select %causal, %clipped_ends, %kv_ends : !row_numbers

        // The first tile's scores and weights.
        %k_slot_0, %k_boxes_0, %k_flags_0 = tile.ring_wait %k_ring[%first_k_at]
            : !k_ring -> !k_slot, !box_note, !flag_note
        %products_0 = tile.dot_async %q_slot, %k_slot_0 transposed : !q_slot, !k_slot -> !tile.pending<!scores>
        %s_0 = tile.dot_wait 0 (%products_0 : !tile.pending<!scores>) -> !scores
        %flags_0 = tile.load_note %k_flags_0 : !flag_note -> i32
        %masked_i32_0 = arith.andi %flags_0, %masked_bit : i32
        %masked_0 = arith.cmpi ne, %masked_i32_0, %c0_i32 : i32
        %visible_0 = scf.if %masked_0 -> (!scores) {
          %keys_0 = tile.shared_positions %k_boxes_0 : !box_note -> !key_numbers
          %key_numbers_0 = tile.expand %keys_0 axis 0 : !key_numbers -> !positions
          %ends_0 = tile.expand %row_ends axis 1 : !row_numbers -> !positions
          %sees_0 = arith.cmpi slt, %key_numbers_0, %ends_0 : !positions
          %kept_0 = arith.select %sees_0, %s_0, %hidden : !score_mask, !scores
          scf.yield %kept_0 : !scores
        } else {
          scf.yield %s_0 : !scores
        }
        %max_score_0 = tile.reduce max %visible_0 : !scores -> !score_rows
        %max_0 = tile.convert %max_score_0 : !score_rows -> !rows
        %octaves_0 = arith.mulf %max_0, %eighths : !rows
        %whole_octaves_0 = math.ceil %octaves_0 : !rows
        %reference_0 = arith.maxnumf %no_reference, %whole_octaves_0 : !rows
        %offset_0 = math.fma %reference_0, %per_octaves, %starts : !rows
        %p_0 = scf.if %half -> (!scores) {
          %halves_0 = tile.convert %visible_0 : !scores -> !half_scores
          %half_offset_0 = tile.convert %offset_0 : !rows -> !half_rows
          %half_offsets_0 = tile.expand %half_offset_0 axis 1 : !half_rows -> !half_scores
          %half_weights_0 = scf.if %fast -> (!half_scores) {
            %bits_0 = tile.fma_relu %halves_0, %half_slopes, %half_offsets_0 : !half_scores
            scf.yield %bits_0 : !half_scores
          } else {
            %half_exponents_0 = math.fma %halves_0, %half_slopes, %half_offsets_0 : !half_scores
            %half_powers_0 = math.exp2 %half_exponents_0 : !half_scores
            scf.yield %half_powers_0 : !half_scores
          }
          %narrow_0 = tile.convert %half_weights_0 : !half_scores -> !scores
          scf.yield %narrow_0 : !scores
        } else {
          %floats_0 = tile.convert %visible_0 : !scores -> !float_scores
          %offsets_0 = tile.expand %offset_0 axis 1 : !rows -> !float_scores
          %exponents_0 = math.fma %floats_0, %slopes, %offsets_0 : !float_scores
          %powers_0 = math.exp2 %exponents_0 : !float_scores
          %wide_0 = tile.convert %powers_0 : !float_scores -> !scores
          scf.yield %wide_0 : !scores
        }
        tile.ring_release %k_ring[%first_k_at] : !k_ring
        %k_at_0 = tile.ring_next %k_ring[%first_k_at] : !k_ring -> !cursor
        %weights_0 = scf.if %fast -> (!weights) {
          %bytes = tile.low_bits %p_0 : !scores -> !weights
          scf.yield %bytes : !weights
        } else {
          %bytes = tile.convert %p_0 : !scores -> !weights
          scf.yield %bytes : !weights
        }

        // Each further step issues its scores' dot, then the product of the last
        // weights with their values; the softmax runs under both. The weights are
        // packed after the product: ptxas takes them for the registers that it
        // reads.
        %reference, %shrink, %output, %weights, %k_after, %v_last = scf.for %step = %c1 to %steps step %c1
            iter_args(%old_reference = %reference_0, %old_shrink = %one_rows, %old_output = %no_output,
                      %old_weights = %weights_0, %k_at = %k_at_0, %v_at = %first_v_at)
            -> (!rows, !rows, !output, !weights, !cursor, !cursor) {
          %k_slot, %k_boxes, %k_flags = tile.ring_wait %k_ring[%k_at] : !k_ring -> !k_slot, !box_note, !flag_note
          %products = tile.dot_async %q_slot, %k_slot transposed : !q_slot, !k_slot -> !tile.pending<!scores>
          %v_slot = tile.ring_wait %v_ring[%v_at] : !v_ring -> !v_slot
          %adding = tile.dot_async %old_weights, %v_slot transposed : !weights, !v_slot -> !tile.pending<!output>
          %s = tile.dot_wait 1 (%products : !tile.pending<!scores>) -> !scores
          %flags = tile.load_note %k_flags : !flag_note -> i32
          %masked_i32 = arith.andi %flags, %masked_bit : i32
          %masked = arith.cmpi ne, %masked_i32, %c0_i32 : i32
          %visible = scf.if %masked -> (!scores) {
            %keys = tile.shared_positions %k_boxes : !box_note -> !key_numbers
            %key_numbers = tile.expand %keys axis 0 : !key_numbers -> !positions
            %ends = tile.expand %row_ends axis 1 : !row_numbers -> !positions
            %sees = arith.cmpi slt, %key_numbers, %ends : !positions
            %kept = arith.select %sees, %s, %hidden : !score_mask, !scores
            scf.yield %kept : !scores
          } else {
            scf.yield %s : !scores
          }
          %max_score = tile.reduce max %visible : !scores -> !score_rows
          %max = tile.convert %max_score : !score_rows -> !rows
          %octaves = arith.mulf %max, %eighths : !rows
          %whole_octaves = math.ceil %octaves : !rows
          %new_reference = arith.maxnumf %old_reference, %whole_octaves : !rows
          %offset = math.fma %new_reference, %per_octaves, %starts : !rows
          %p = scf.if %half -> (!scores) {
            %halves = tile.convert %visible : !scores -> !half_scores
            %half_offset = tile.convert %offset : !rows -> !half_rows
            %half_offsets = tile.expand %half_offset axis 1 : !half_rows -> !half_scores
            %half_weights = scf.if %fast -> (!half_scores) {
              %bits = tile.fma_relu %halves, %half_slopes, %half_offsets : !half_scores
              scf.yield %bits : !half_scores
            } else {
              %half_exponents = math.fma %halves, %half_slopes, %half_offsets : !half_scores
              %half_powers = math.exp2 %half_exponents : !half_scores
              scf.yield %half_powers : !half_scores
            }
            %narrow = tile.convert %half_weights : !half_scores -> !scores
            scf.yield %narrow : !scores
          } else {
            %floats = tile.convert %visible : !scores -> !float_scores
            %offsets = tile.expand %offset axis 1 : !rows -> !float_scores
            %exponents = math.fma %floats, %slopes, %offsets : !float_scores
            %powers = math.exp2 %exponents : !float_scores
            %wide = tile.convert %powers : !float_scores -> !scores
            scf.yield %wide : !scores
          }
          tile.ring_release %k_ring[%k_at] : !k_ring
          %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor
          %distance = arith.subf %old_reference, %new_reference : !rows
          %new_shrink = math.exp2 %distance : !rows
          %product, %p_held = tile.dot_wait 0 (%adding, %p : !tile.pending<!output>, !scores) -> !output, !scores
          tile.ring_release %v_ring[%v_at] : !v_ring
          %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
          %shrinks = tile.expand %old_shrink axis 1 : !rows -> !output
          %new_output = math.fma %old_output, %shrinks, %product : !output
          %new_weights = scf.if %fast -> (!weights) {
            %bytes = tile.low_bits %p_held : !scores -> !weights
            scf.yield %bytes : !weights
          } else {
            %bytes = tile.convert %p_held : !scores -> !weights
            scf.yield %bytes : !weights
          }
          scf.yield %new_reference, %new_shrink, %new_output, %new_weights, %k_next, %v_next
              : !rows, !rows, !output, !weights, !cursor, !cursor
        }
        tile.ring_release %q_ring[%q_at] : !q_ring

        // The last product.
        %v_slot_n = tile.ring_wait %v_ring[%v_last] : !v_ring -> !v_slot
        %adding_n = tile.dot_async %weights, %v_slot_n transposed : !weights, !v_slot -> !tile.pending<!output>
        %product_n = tile.dot_wait 0 (%adding_n : !tile.pending<!output>) -> !output
        tile.ring_release %v_ring[%v_last] : !v_ring
        %v_after = tile.ring_next %v_ring[%v_last] : !v_ring -> !cursor
        %last_shrinks = tile.expand %shrink axis 1 : !rows -> !output
        %whole = math.fma %output, %last_shrinks, %product_n : !output

        // o = output / sum (0 for a row without keys), each channel in its scale.
        %sums = tile.columns %whole from head_dim : !output -> !sums
        %total = tile.reduce max %sums : !sums -> !rows
        %empty = arith.cmpf oeq, %total, %zero_rows : !rows
        %reciprocal = arith.divf %one_rows, %total : !rows
        %factor = arith.select %empty, %zero_rows, %reciprocal : !row_mask, !rows
        %values = tile.columns %whole from 0 : !output -> !values
        %factors = tile.expand %factor axis 1 : !rows -> !values
        %normalised = arith.mulf %values, %factors : !values
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %kv_head = arith.divui %head, %heads_per_kv : index
        %scale_view = tile.slice %v_scale[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %scales = tile.load_columns %scale_view[%c0] : !tile.view<1 x f32> -> !channels
        %channel_scales = tile.expand %scales axis 0 : !channels -> !values
        %scaled = arith.mulf %normalised, %channel_scales : !values
        %o_values = tile.convert %scaled : !values -> !o_tile
        %o_slot = tile.ring_wait %o_ring[%o_at] : !o_ring -> !o_slot
        tile.store_shared %o_values, %o_slot {tile.late_addresses} : !o_tile, !o_slot
        tile.ring_release %o_ring[%o_at] : !o_ring
        %o_after = tile.ring_next %o_ring[%o_at] : !o_ring -> !cursor
        scf.if %wants_lse {
          %first_row = arith.index_cast %first_row_i32 : i32 to index
          %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
          %log_sum = math.log2 %total : !rows
          %less = arith.addf %log_sum, %excesses : !rows
          %lse_log2 = arith.addf %reference, %less : !rows
          %lse_rows = arith.mulf %lse_log2, %ln_2s : !rows
          tile.store %lse_rows, %lse_view[%first_row] : !rows, !tile.view<1 x f32>
        }
        scf.yield %k_after, %v_after, %o_after : !cursor, !cursor, !cursor
      } else {
        tile.ring_release %q_ring[%q_at] : !q_ring
        scf.yield %first_k_at, %first_v_at, %o_at : !cursor, !cursor, !cursor
      }
      scf.condition(%more) %q_next, %k_end, %v_end, %o_end : !cursor, !cursor, !cursor, !cursor
    } do {
    ^row(%q_at: !cursor, %k_at: !cursor, %v_at: !cursor, %o_at: !cursor):
      scf.yield %q_at, %k_at, %v_at, %o_at : !cursor, !cursor, !cursor, !cursor
    }
  }
}

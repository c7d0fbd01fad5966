// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd_fp8 for Hopper: block-sparse attention of 8-bit q, k and v, with
// an online softmax.
//
//   o[i]   = v_scale sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = 2^(s[i, j] / 8)
//   lse[i] = ln sum_j p[i, j],                             s = q kᵀ
//
// q holds 8 log2(e) softmax_scale q 2^n and k k 2^-n for some n of the head (all scales
// that there are are in q, so that s needs none), v is divided by v_scale, one a channel;
// all are f8E4M3FN. v is an image: a matrix of value_dim + 8 rows and a column for each
// key, the last eight rows 1, as its core matrices (see tile.gather_panels), with the
// keys of every sixteen in the order that a dot with 8-bit weights in registers wants
// (see tile.dot_async). Keys that fill the image up are 0, in the last eight rows too, so
// that column value_dim of the output is the sum of the weights as they are rounded.
// value_dim is head_dim, or a part of it: where all channels of v do not fit into the
// registers (head_dim > 128), a launch computes some of them. lse_shift, where present,
// times softmax_scale is added to lse: q · mean of k, where that was taken off k.
//
// (FlashAttention-3, arXiv 2407.08608; SageAttention2, arXiv 2411.10958, which
// found that the tensor core sums 8-bit products in few bits: so each key tile's
// product starts from 0 and is added to the output in f32.)
//
// score = float32 sums scores in float32 ("exact"), float16 in half the registers
// and instructions: scores are then rounded to 11 bits, and must stay below 65504
// / 8 octaves.
//
// Weights come without any exp2: n = s + 120 - 8 reference, rounded and clamped at 0, are
// the bits of 2^((s - 8 reference) / 8 + 8) as f8E4M3FN, but for a mantissa that grows
// linearly (up to 6 % too large, 4 % in the mean, which o does not see and lse is
// corrected for). They are the bits of the float16 subnormal n 2^-24 as well, so that one
// fma makes two of them. So it is done with `fast`. Else s is bent first: 3/16 of its
// distance to the nearest multiple of 8, where the logarithm is right, is taken off; n is
// then at most 0.18 off where rounding makes 0.5, and the relative error of a weight
// 2.69e-2 (root mean square over an octave) where exp2 gives 2.65e-2 and `fast` 3.14e-2,
// for five instructions on pairs; exp2 would keep the special function unit as busy as
// the tensor core. All of it in float16: scores in float32 become float16 less the
// reference so far.
//
// Weights are taken relative to a reference, the row's maximum so far rounded up
// to a whole octave, at most 2^8, and 0 below 2^-7; rows whose scores are all
// below -4096 octaves give 0.
//
// CTAs, rows, gathered key tiles and masks are as in attention_fwd.mlir. Roles:
//
//   scout         reads counts and lists, several key tiles ahead of the loads
//   key loader    starts the copies of q and k
//   value loader  starts the copies of v (apart: neighbours wait for fifteen instructions a box)
//   storer        reads v_scale, starts the copies of o, writes lse
//   consumers     compute; 64 query rows a warpgroup
//
// With `cuts`, the boxes that a list's last tile lacks are cut off its scores sixteen
// columns at a time, and positions of keys are looked at only where causality or the
// end of k hides some; else they are among what positions hide.
//
// Rings (stations in brackets; slots in shared memory):
//
//   rows   scout [0] -> key loader [1] -> value loader [2] -> storer [3]: what a row
//          is: steps (-1: no more rows), batch, head, first query row
//   boxes  scout [0] -> loaders [1, 2]: first key rows of a tile's boxes, and flags
//   q      key loader [0] -> consumers [1]: q of a row, and what the row is
//   k      key loader [0] -> consumers [1]: a key tile, its boxes and flags
//   v      value loader [0] -> consumers [1]: a value tile
//   o      storer [0] -> consumers [1] -> storer [2]: an empty slot and the channels'
//          scales, then o and lse in octaves
//
// Step by step the tensor core does the scores of a key tile and the product of the tile
// before, also over the end of a row: values come one step later than keys, and the first
// value tile of all is nothing; so one cursor is in both rings, which have equally many
// slots. The last step of all is a drain, without keys. Flags: 1: some scores must be
// masked; 2: the drain; from 4 on the number of boxes that hold keys.
//
// Parameters that follow from others: value_rows = value_dim + 8; key_box = gcd(tile_kv,
// mask_block_kv), the rows that one copy moves (tile_kv without lists); boxes = tile_kv /
// key_box; consumer_warps = tile_q / 16; half: score is float16; fast: half, too.

!elem = !tile.element<"elem">
!score = !tile.element<"score">
!q_slot = !tile.shared<tile_q x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!k_slot = !tile.shared<tile_kv x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!k_box = !tile.shared<key_box x head_dim x f8E4M3FN, swizzle swizzle_bytes>
!v_slot = !tile.shared<value_rows x tile_kv x f8E4M3FN, swizzle 16>
!v_box = !tile.shared<value_rows x key_box x f8E4M3FN, swizzle 16>
!o_slot = !tile.shared<tile_q x value_dim x !elem, swizzle 128>
!row_note = !tile.shared<4 x i32>
!scale_note = !tile.shared<value_dim x f32>
!lse_note = !tile.shared<tile_q x f32>
!box_note = !tile.shared<boxes x i32>
!flag_note = !tile.shared<1 x i32>

!row_ring = !tile.ring<!row_note>
!box_ring = !tile.ring<!box_note, !flag_note>
!q_ring = !tile.ring<!q_slot, !row_note>
!k_ring = !tile.ring<!k_slot, !box_note, !flag_note>
!v_ring = !tile.ring<!v_slot>
!o_ring = !tile.ring<!o_slot, !scale_note, !lse_note>
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
!values = tensor<?x?xf32, #tile.sizes<tile_q, value_dim>>
!o_tile = tensor<?x?x!elem, #tile.sizes<tile_q, value_dim>>
!channels = tensor<?xf32, #tile.sizes<value_dim>>
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
                               %lse_shift: !tile.global<3 x f32>,
                               %tickets: !tile.global<1 x i32>, %softmax_scale: f32)
    parameters [elem, score, head_dim, value_dim, value_rows, mask_block_q, mask_block_kv, causal, has_lists, half, fast,
                cuts, tile_q, tile_kv, key_box, boxes, swizzle_bytes, q_stages, kv_stages,
                consumer_warps, producer_registers, consumer_registers]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %nowhere = arith.constant 1073741824 : index
  %masked_bit = arith.constant 1 : i32
  %drains_bit = arith.constant 2 : i32
  %count_unit = arith.constant 4 : i32
  %count_shift = arith.constant 2 : i32
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
  %cuts = tile.parameter "cuts" : i1

  %q_len = tile.dim %q, 2 : !tile.global<4 x f8E4M3FN>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x f8E4M3FN>
  %q_heads = tile.dim %q, 1 : !tile.global<4 x f8E4M3FN>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x f8E4M3FN>
  // Query row i sees the keys up to i + shift.
  %shift = arith.subi %kv_len, %q_len : index

  // What the TMA copies, in which boxes.
  %q_map = tile.tensor_map %q : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !q_slot>
  %k_map = tile.tensor_map %k : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !k_box>
  %v_map = tile.tensor_map %v : !tile.global<4 x f8E4M3FN> -> !tile.tensor_map<4, !v_box>
  %o_map = tile.tensor_map %o : !tile.global<4 x !elem> -> !tile.tensor_map<4, !o_slot>

  // Each ring's barriers: a slot is full when station 0 has arrived (one thread,
  // with the bytes of its copies), and passed on when the warps named have.
  %row_ring = tile.ring stages 4 passed_by [1, 1, 1] : !row_ring
  %box_ring = tile.ring stages 8 passed_by [1, 1] : !box_ring
  %q_ring = tile.ring stages q_stages passed_by [consumer_warps] : !q_ring
  %k_ring = tile.ring stages kv_stages passed_by [consumer_warps] : !k_ring
  %v_ring = tile.ring stages kv_stages passed_by [consumer_warps] : !v_ring
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
      %count, %key_boxes, %key_steps = scf.if %has_lists -> (index, index, index) {
        %row_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
        %count_i32 = tile.load_scalar %row_counts[%mask_row] : !tile.view<1 x i32> -> i32
        // No count reaches beyond the list's memory, whatever it says.
        %not_negative = arith.maxsi %count_i32, %c0_i32 : i32
        %wanted = arith.index_cast %not_negative : i32 to index
        %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
        %listed = arith.minsi %wanted, %capacity : index
        %listed_boxes = arith.muli %listed, %blocks_per_tile_row : index
        %list_steps = arith.ceildivui %listed_boxes, %boxes : index
        scf.yield %listed, %listed_boxes, %list_steps : index, index, index
      } else {
        %reached = arith.maxsi %last_end, %c0 : index
        %dense_steps = arith.ceildivui %reached, %tile_kv : index
        %dense_boxes = arith.muli %dense_steps, %boxes : index
        scf.yield %c0, %dense_boxes, %dense_steps : index, index, index
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
        // Boxes that the list has no more of need no look at their keys.
        %boxes_before = arith.muli %s, %boxes : index
        %boxes_left = arith.subi %key_boxes, %boxes_before : index
        %boxes_here = arith.minsi %boxes_left, %boxes : index
        %boxes_here_i32 = arith.index_cast %boxes_here : index to i32
        %ends_here = scf.if %cuts -> (!box_rows) {
          %numbers_here = tile.splat %boxes_here_i32 : i32 -> !box_rows
          %box_numbers = tile.iota : !box_rows
          %is_here = arith.cmpi slt, %box_numbers, %numbers_here : !box_rows
          %counted_ends = arith.select %is_here, %box_ends, %first_ends : !box_mask, !box_rows
          scf.yield %counted_ends : !box_rows
        } else {
          scf.yield %box_ends : !box_rows
        }
        %beyond = arith.cmpi sgt, %ends_here, %first_ends : !box_rows
        %masked = tile.any %beyond : !box_mask
        %mask_flag = arith.select %masked, %masked_bit, %c0_i32 : i32
        %count_flags = arith.muli %boxes_here_i32, %count_unit : i32
        %flags = arith.ori %mask_flag, %count_flags : i32
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

  // ---- key loader: q of a row, k of each step -----------------------------------
  tile.role "key loader" warps 1 registers producer_registers {
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %end_flags = arith.constant 3 : i32
    %nowhere_i32 = arith.index_cast %nowhere : index to i32
    %no_boxes = tile.splat %nowhere_i32 : i32 -> !box_rows

    %ends:4 = scf.while (%row_at = %start, %first_box_at = %start, %q_at = %start, %first_k_at = %start)
        : (!cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor) {
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
      %is_end = arith.cmpi slt, %steps_i32, %c0_i32 : i32

      // A drain at the end of all.
      scf.if %is_end {
        %k_slot, %k_boxes, %k_flags = tile.ring_acquire %k_ring[%first_k_at] : !k_ring -> !k_slot, !box_note, !flag_note
        tile.store_shared %no_boxes, %k_boxes : !box_rows, !box_note
        tile.store_note (%end_flags), %k_flags : !flag_note
        tile.ring_commit %k_ring[%first_k_at] : !k_ring
      }

      scf.if %more {
        %q_slot, %q_note = tile.ring_acquire %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
        tile.store_note (%steps_i32, %batch_i32, %head_i32, %first_row_i32), %q_note : !row_note
        tile.ring_commit %q_ring[%q_at] loads(%q_slot : !q_slot) : !q_ring
        tile.load_async %q_map[%batch, %head, %first_row] into %q_slot : !tile.tensor_map<4, !q_slot>, !q_slot
      }
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor

      %box_after, %k_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %k_at = %first_k_at) -> (!cursor, !cursor) {
        %box_note, %flag_note = tile.ring_wait %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        %boxes_here = tile.load_shared %box_note : !box_note -> !box_rows
        %flags = tile.load_note %flag_note : !flag_note -> i32
        tile.ring_release %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
        %k_slot, %k_boxes, %k_flags = tile.ring_acquire %k_ring[%k_at] : !k_ring -> !k_slot, !box_note, !flag_note
        tile.store_shared %boxes_here, %k_boxes : !box_rows, !box_note
        tile.store_note (%flags), %k_flags : !flag_note
        tile.ring_commit %k_ring[%k_at] loads(%k_slot : !k_slot) : !k_ring
        tile.gather_async %k_map[%batch, %kv_head] rows %boxes_here into %k_slot {tile.loop_boxes = 8}
            : !tile.tensor_map<4, !k_box>, !box_rows, !k_slot
        %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor
        scf.yield %box_next, %k_next : !cursor, !cursor
      }
      scf.condition(%more) %row_next, %box_after, %q_next, %k_after : !cursor, !cursor, !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %box_at: !cursor, %q_at: !cursor, %k_at: !cursor):
      scf.yield %row_at, %box_at, %q_at, %k_at : !cursor, !cursor, !cursor, !cursor
    }
  }

  // ---- value loader: v of each step ------------------------------------------------
  tile.role "value loader" warps 1 registers producer_registers {
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    // The consumers' first product is of no row: its slot stays as it is.
    %no_values = tile.ring_acquire %v_ring[%start] : !v_ring -> !v_slot
    tile.ring_commit %v_ring[%start] : !v_ring
    %second = tile.ring_next %v_ring[%start] : !v_ring -> !cursor

    %ends:3 = scf.while (%row_at = %start, %first_box_at = %start, %first_v_at = %second)
        : (!cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor) {
      %row_note = tile.ring_wait %row_ring[%row_at] station 2 : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 2 : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %kv_head = arith.divui %head, %heads_per_kv : index
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %box_after, %v_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %v_at = %first_v_at) -> (!cursor, !cursor) {
        %box_note, %flag_note = tile.ring_wait %box_ring[%box_at] station 2 : !box_ring -> !box_note, !flag_note
        %boxes_here = tile.load_shared %box_note : !box_note -> !box_rows
        tile.ring_release %box_ring[%box_at] station 2 : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
        %v_slot = tile.ring_acquire %v_ring[%v_at] : !v_ring -> !v_slot
        tile.ring_commit %v_ring[%v_at] loads(%v_slot : !v_slot) : !v_ring
        tile.gather_panels %v_map[%batch, %kv_head] columns %boxes_here into %v_slot {tile.loop_boxes = 8}
            : !tile.tensor_map<4, !v_box>, !box_rows, !v_slot
        %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
        scf.yield %box_next, %v_next : !cursor, !cursor
      }
      scf.condition(%more) %row_next, %box_after, %v_after : !cursor, !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %box_at: !cursor, %v_at: !cursor):
      scf.yield %row_at, %box_at, %v_at : !cursor, !cursor, !cursor
    }
  }

  // ---- storer: o ------------------------------------------------------------------
  tile.role "storer" warps 1 registers producer_registers {
    %f0 = arith.constant 0.0 : f32
    %ln_2 = arith.constant 0.693147181 : f32
    %true = arith.constant true
    %zero_rows = tile.splat %f0 : f32 -> !rows
    %ln_2s = tile.splat %ln_2 : f32 -> !rows
    %softmax_scales = tile.splat %softmax_scale : f32 -> !rows
    %all_rows = tile.splat %true : i1 -> !row_mask
    %numbers = tile.iota : !row_numbers
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
    %shifts_lse = tile.is_present %lse_shift : !tile.global<3 x f32>
    %ends:2 = scf.while (%row_at = %start, %o_at = %start) : (!cursor, !cursor) -> (!cursor, !cursor) {
      %note = tile.ring_wait %row_ring[%row_at] station 3 : !row_ring -> !row_note
      %steps, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 3 : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %more = arith.cmpi sge, %steps, %c0_i32 : i32
      scf.if %more {
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %kv_head = arith.divui %head, %heads_per_kv : index
        %scale_view = tile.slice %v_scale[%batch, %kv_head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %scales = tile.load_values %scale_view[%c0] otherwise %f0 : !tile.view<1 x f32>, f32 -> !channels
        %empty, %scale_note, %no_lse = tile.ring_acquire %o_ring[%o_at] : !o_ring -> !o_slot, !scale_note, !lse_note
        tile.store_shared %scales, %scale_note : !channels, !scale_note
        tile.ring_commit %o_ring[%o_at] : !o_ring
        %o_slot, %same_scales, %lse_note = tile.ring_wait %o_ring[%o_at] station 2 : !o_ring -> !o_slot, !scale_note, !lse_note
        %first_row = arith.index_cast %first_row_i32 : i32 to index
        tile.store_async %o_slot, %o_map[%batch, %head, %first_row] : !o_slot, !tile.tensor_map<4, !o_slot>
        scf.if %wants_lse {
          %lse_log2 = tile.load_shared %lse_note : !lse_note -> !rows
          %shift_view = tile.slice %lse_shift[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
          %shifts = scf.if %shifts_lse -> (!rows) {
            %shifts_here = tile.load_values %shift_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
            scf.yield %shifts_here : !rows
          } else {
            scf.yield %zero_rows : !rows
          }
          %scaled_shifts = arith.mulf %shifts, %softmax_scales : !rows
          %lse_rows = math.fma %lse_log2, %ln_2s, %scaled_shifts : !rows
          %firsts = tile.splat %first_row_i32 : i32 -> !row_numbers
          %places = arith.addi %firsts, %numbers : !row_numbers
          %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
          tile.scatter %lse_rows at %places where %all_rows into %lse_view
              : !rows, !row_numbers, !row_mask, !tile.view<1 x f32>
        }
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
    %eighth = arith.constant 0.125 : f32
    %minus_eight = arith.constant -8.0 : f32
    %zero_rows = tile.splat %f0 : f32 -> !rows
    %one_rows = tile.splat %f1 : f32 -> !rows
    %no_output = tile.splat %f0 : f32 -> !output
    %no_score_values = tile.splat %f0 : f32 -> !float_scores
    %no_weights = tile.convert %no_score_values : !float_scores -> !weights
    %eighths = tile.splat %eighth : f32 -> !rows
    %minus_eights = tile.splat %minus_eight : f32 -> !rows
    %false = arith.constant false
    %least = arith.constant -4096.0 : f32
    %no_reference = tile.splat %least : f32 -> !rows
    // Below eight times that, and finite, since its distance to a multiple of 8 is
    // taken; less the reference it still is a float16.
    %lowest = arith.constant -4.0e+04 : f32
    %lowest_scores = tile.splat %lowest : f32 -> !float_scores
    %hidden = tile.convert %lowest_scores : !float_scores -> !scores

    // Bits of weights, as float16 subnormals: (s + 120 - 8 reference) 2^-24.
    %unit = arith.constant 5.9604644775390625e-08 : f32
    %units_f32 = tile.splat %unit : f32 -> !float_scores
    %units = tile.convert %units_f32 : !float_scores -> !half_scores
    %start_value = arith.constant 7.152557373046875e-06 : f32
    %starts = tile.splat %start_value : f32 -> !rows
    %per_octave_value = arith.constant -4.76837158203125e-07 : f32
    %per_octaves = tile.splat %per_octave_value : f32 -> !rows
    // Numbers from 8192 to 16384 are multiples of 8: (s + 12288) - 12288 is s,
    // rounded. Both, times 3/16.
    %round_value = arith.constant 12288.0 : f32
    %rounders_f32 = tile.splat %round_value : f32 -> !float_scores
    %rounders = tile.convert %rounders_f32 : !float_scores -> !half_scores
    %bent_round_value = arith.constant 2304.0 : f32
    %bent_rounders_f32 = tile.splat %bent_round_value : f32 -> !float_scores
    %bent_rounders = tile.convert %bent_rounders_f32 : !float_scores -> !half_scores
    %bend_value = arith.constant 0.1875 : f32
    %bends_f32 = tile.splat %bend_value : f32 -> !float_scores
    %bends = tile.convert %bends_f32 : !float_scores -> !half_scores
    %minus_bend_value = arith.constant -0.1875 : f32
    %minus_bends_f32 = tile.splat %minus_bend_value : f32 -> !float_scores
    %minus_bends = tile.convert %minus_bends_f32 : !float_scores -> !half_scores
    // log2 of the weights' sum: 8 too much, and the mean of what a weight is over
    // what it should be, over all fractions of an octave: with a linear mantissa
    // that of (1 + f) / 2^f, 1.0407, and bent 1.0068.
    %linear_excess = arith.constant -8.0575 : f32
    %bent_excess = arith.constant -8.0098 : f32
    %excess = arith.select %fast, %linear_excess, %bent_excess : f32
    %excesses = tile.splat %excess : f32 -> !rows

    %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
    %kv_len_i32 = arith.index_cast %kv_len : index to i32
    %shift_i32 = arith.index_cast %shift : index to i32
    %end_shift = arith.addi %shift_i32, %c1_i32 : i32

    // A turn of this loop is a row. Its first step does the last product of the
    // row before, so that the tensor core has no pause between rows, with the keys
    // of the row's last tile. Warpgroups take turns. (Neither where registers lack.)
    %shortens = arith.cmpi ugt, %cuts, %causal : i1
    %ends:10 = scf.while (%old_q_at = %start, %next_q_at = %start, %first_at = %start, %o_at = %start, %is_open = %false,
                          %row_reference = %no_reference, %row_shrink = %one_rows, %row_output = %no_output,
                          %row_weights = %no_weights, %row_key_end = %tile_kv)
        : (!cursor, !cursor, !cursor, !cursor, i1, !rows, !rows, !output, !weights, index)
        -> (!cursor, !cursor, !cursor, !cursor, i1, !rows, !rows, !output, !weights, index) {
      // Issue: the row's first scores, and the last product of the row before.
      %k_slot_0, %k_boxes_0, %k_flags_0 = tile.ring_wait %k_ring[%first_at] : !k_ring -> !k_slot, !box_note, !flag_note
      %flags_0 = tile.load_note %k_flags_0 : !flag_note -> i32
      %drains_i32 = arith.andi %flags_0, %drains_bit : i32
      %opens = arith.cmpi eq, %drains_i32, %c0_i32 : i32
      %after_next_q = tile.ring_next %q_ring[%next_q_at] : !q_ring -> !cursor
      %q_at, %q_after = scf.if %opens -> (!cursor, !cursor) {
        scf.yield %next_q_at, %after_next_q : !cursor, !cursor
      } else {
        scf.yield %old_q_at, %next_q_at : !cursor, !cursor
      }
      %q_slot, %q_note = tile.ring_wait %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      %v_slot_0 = tile.ring_wait %v_ring[%first_at] : !v_ring -> !v_slot
      scf.if %shortens {
        tile.take_turn
      }
      %products_0 = tile.dot_async %q_slot, %k_slot_0 transposed : !q_slot, !k_slot -> !tile.pending<!scores>
      %adding_0 = tile.dot_async %row_weights, %v_slot_0 transposed within %row_key_end : !weights, !v_slot -> !tile.pending<!output>
      scf.if %shortens {
        tile.pass_turn
      }

      // Row i sees the keys before row_ends[i].
      %row_steps, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %q_note : !row_note -> i32, i32, i32, i32
      %steps_i32 = arith.select %opens, %row_steps, %c1_i32 : i32
      %steps = arith.index_cast %steps_i32 : i32 to index
      %first_end = arith.addi %first_row_i32, %end_shift : i32
      %first_ends = tile.splat %first_end : i32 -> !row_numbers
      %kv_ends = tile.splat %kv_len_i32 : i32 -> !row_numbers
      %row_numbers = tile.iota : !row_numbers
      %causal_ends = arith.addi %first_ends, %row_numbers : !row_numbers
      %clipped_ends = arith.minsi %causal_ends, %kv_ends : !row_numbers
      %row_ends = arith.select %causal, %clipped_ends, %kv_ends : !row_numbers

      %s_0 = tile.dot_wait 1 (%products_0 : !tile.pending<!scores>) -> !scores
      %masked_i32_0 = arith.andi %flags_0, %masked_bit : i32
      %masked_0 = arith.cmpi ne, %masked_i32_0, %c0_i32 : i32
      %boxes_i32_0 = arith.shrui %flags_0, %count_shift : i32
      %boxes_there_0 = arith.index_cast %boxes_i32_0 : i32 to index
      %key_end_0 = arith.muli %boxes_there_0, %key_box : index
      %lacks_0 = arith.cmpi slt, %key_end_0, %tile_kv : index
      %is_short_0 = arith.andi %lacks_0, %cuts : i1
      %visible_0 = scf.if %masked_0 -> (!scores) {
        %keys_0 = tile.shared_positions %k_boxes_0 {tile.late_addresses} : !box_note -> !key_numbers
        %key_numbers_0 = tile.expand %keys_0 axis 0 : !key_numbers -> !positions
        %ends_0 = tile.expand %row_ends axis 1 : !row_numbers -> !positions
        %sees_0 = arith.cmpi slt, %key_numbers_0, %ends_0 : !positions
        %kept_0 = arith.select %sees_0, %s_0, %hidden : !score_mask, !scores
        scf.yield %kept_0 : !scores
      } else {
        %cut_0 = scf.if %is_short_0 -> (!scores) {
          %first_scores_0 = tile.first_columns %s_0 to %key_end_0 otherwise %hidden : !scores
          scf.yield %first_scores_0 : !scores
        } else {
          scf.yield %s_0 : !scores
        }
        scf.yield %cut_0 : !scores
      }
      %max_score_0 = tile.reduce max %visible_0 : !scores -> !score_rows
      %max_0 = tile.convert %max_score_0 : !score_rows -> !rows
      %octaves_0 = arith.mulf %max_0, %eighths : !rows
      %whole_octaves_0 = math.ceil %octaves_0 : !rows
      %reference_0 = arith.maxnumf %no_reference, %whole_octaves_0 : !rows
      // Scores in float32 become float16 relative to a reference.
      %base_0 = arith.select %half, %zero_rows, %reference_0 : !rows
      %halves_0 = scf.if %half -> (!half_scores) {
        %same_0 = tile.convert %visible_0 : !scores -> !half_scores
        scf.yield %same_0 : !half_scores
      } else {
        %floats_0 = tile.convert %visible_0 : !scores -> !float_scores
        %shift_0 = arith.mulf %base_0, %minus_eights : !rows
        %shifts_0 = tile.expand %shift_0 axis 1 : !rows -> !float_scores
        %shifted_0 = arith.addf %floats_0, %shifts_0 : !float_scores
        %narrow_0 = tile.convert %shifted_0 : !float_scores -> !half_scores
        scf.yield %narrow_0 : !half_scores
      }
      %above_base_0 = arith.subf %reference_0, %base_0 : !rows
      %offset_0 = math.fma %above_base_0, %per_octaves, %starts : !rows
      %half_offset_0 = tile.convert %offset_0 : !rows -> !half_rows
      %half_offsets_0 = tile.expand %half_offset_0 axis 1 : !half_rows -> !half_scores
      %p_0 = scf.if %fast -> (!half_scores) {
        %bits_0 = tile.fma_relu %halves_0, %units, %half_offsets_0 : !half_scores
        scf.yield %bits_0 : !half_scores
      } else {
        %beyond_8192_0 = arith.addf %halves_0, %rounders : !half_scores
        %minus_nearest_0 = math.fma %beyond_8192_0, %minus_bends, %bent_rounders : !half_scores
        %bend_0 = math.fma %halves_0, %bends, %minus_nearest_0 : !half_scores
        %bend_size_0 = math.absf %bend_0 : !half_scores
        %bent_0 = arith.subf %halves_0, %bend_size_0 : !half_scores
        %bent_bits_0 = tile.fma_relu %bent_0, %units, %half_offsets_0 : !half_scores
        scf.yield %bent_bits_0 : !half_scores
      }
      tile.ring_release %k_ring[%first_at] : !k_ring
      %at_0 = tile.ring_next %k_ring[%first_at] : !k_ring -> !cursor
      %row_product, %p_held_0 = tile.dot_wait 0 (%adding_0, %p_0 : !tile.pending<!output>, !half_scores) -> !output, !half_scores
      tile.ring_release %v_ring[%first_at] : !v_ring
      %weights_0 = tile.low_bits %p_held_0 : !half_scores -> !weights

      // The row before is complete: o = output / sum (0 for a row without keys),
      // each channel in its scale.
      %o_after = scf.if %is_open -> (!cursor) {
        tile.ring_release %q_ring[%old_q_at] : !q_ring
        %last_shrinks = tile.expand %row_shrink axis 1 : !rows -> !output
        %whole = math.fma %row_output, %last_shrinks, %row_product : !output
        %sums = tile.columns %whole from value_dim : !output -> !sums
        %total = tile.reduce max %sums : !sums -> !rows
        %empty = arith.cmpf oeq, %total, %zero_rows : !rows
        %reciprocal = arith.divf %one_rows, %total : !rows
        %factor = arith.select %empty, %zero_rows, %reciprocal : !row_mask, !rows
        %values = tile.columns %whole from 0 : !output -> !values
        %factors = tile.expand %factor axis 1 : !rows -> !values
        %normalised = arith.mulf %values, %factors : !values
        %o_slot, %scale_note, %lse_note = tile.ring_wait %o_ring[%o_at] : !o_ring -> !o_slot, !scale_note, !lse_note
        // The storer makes lse of it.
        scf.if %wants_lse {
          %log_sum = math.log2 %total : !rows
          %less = arith.addf %log_sum, %excesses : !rows
          %lse_log2 = arith.addf %row_reference, %less : !rows
          tile.store_shared %lse_log2, %lse_note {tile.late_addresses} : !rows, !lse_note
        }
        // Here: before it, scales in float32 leave them no registers.
        %scales = tile.load_shared %scale_note {tile.late_addresses} : !scale_note -> !channels
        %channel_scales = tile.expand %scales axis 0 : !channels -> !values
        %scaled = arith.mulf %normalised, %channel_scales : !values
        %o_values = tile.convert %scaled : !values -> !o_tile
        tile.store_shared %o_values, %o_slot {tile.late_addresses} : !o_tile, !o_slot
        tile.ring_release %o_ring[%o_at] : !o_ring
        %o_next = tile.ring_next %o_ring[%o_at] : !o_ring -> !cursor
        scf.yield %o_next : !cursor
      } else {
        scf.yield %o_at : !cursor
      }

      // Each further step issues its scores' dot, then the product of the last
      // weights with their values. ptxas moves the wait for the product ahead of the
      // softmax, which then runs beside the other warpgroup's dots; kept behind it
      // (`after`), the wait made no kind of scores faster. The weights are packed
      // after it: ptxas takes them for the registers that the product reads.
      %product_end_0 = arith.select %shortens, %key_end_0, %tile_kv : index
      %reference, %shrink, %output, %weights, %last_key_end, %after = scf.for %step = %c1 to %steps step %c1
          iter_args(%old_reference = %reference_0, %old_shrink = %one_rows, %old_output = %no_output,
                    %old_weights = %weights_0, %old_key_end = %product_end_0, %at = %at_0)
          -> (!rows, !rows, !output, !weights, index, !cursor) {
        %k_slot, %k_boxes, %k_flags = tile.ring_wait %k_ring[%at] : !k_ring -> !k_slot, !box_note, !flag_note
        %products = tile.dot_async %q_slot, %k_slot transposed : !q_slot, !k_slot -> !tile.pending<!scores>
        %v_slot = tile.ring_wait %v_ring[%at] : !v_ring -> !v_slot
        %adding = tile.dot_async %old_weights, %v_slot transposed : !weights, !v_slot -> !tile.pending<!output>
        %s = tile.dot_wait 1 (%products : !tile.pending<!scores>) -> !scores
        %flags = tile.load_note %k_flags : !flag_note -> i32
        %masked_i32 = arith.andi %flags, %masked_bit : i32
        %masked = arith.cmpi ne, %masked_i32, %c0_i32 : i32
        %boxes_i32 = arith.shrui %flags, %count_shift : i32
        %boxes_there = arith.index_cast %boxes_i32 : i32 to index
        %key_end = arith.muli %boxes_there, %key_box : index
        %lacks = arith.cmpi slt, %key_end, %tile_kv : index
        %is_short = arith.andi %lacks, %cuts : i1
        %visible = scf.if %masked -> (!scores) {
          %keys = tile.shared_positions %k_boxes {tile.late_addresses} : !box_note -> !key_numbers
          %key_numbers = tile.expand %keys axis 0 : !key_numbers -> !positions
          %same_steps, %same_batch, %same_head, %same_row = tile.load_note %q_note : !row_note -> i32, i32, i32, i32
          %end = arith.addi %same_row, %end_shift : i32
          %ends_from = tile.splat %end : i32 -> !row_numbers
          %causal_row_ends = arith.addi %ends_from, %row_numbers : !row_numbers
          %clipped_row_ends = arith.minsi %causal_row_ends, %kv_ends : !row_numbers
          %row_ends_here = arith.select %causal, %clipped_row_ends, %kv_ends : !row_numbers
          %ends = tile.expand %row_ends_here axis 1 : !row_numbers -> !positions
          %sees = arith.cmpi slt, %key_numbers, %ends : !positions
          %kept = arith.select %sees, %s, %hidden : !score_mask, !scores
          scf.yield %kept : !scores
        } else {
          %cut = scf.if %is_short -> (!scores) {
            %first_scores = tile.first_columns %s to %key_end otherwise %hidden : !scores
            scf.yield %first_scores : !scores
          } else {
            scf.yield %s : !scores
          }
          scf.yield %cut : !scores
        }
        %unseen = arith.cmpf oeq, %old_reference, %no_reference : !rows
        %seen_base = arith.select %unseen, %zero_rows, %old_reference : !row_mask, !rows
        %base = arith.select %half, %zero_rows, %seen_base : !rows
        %halves = scf.if %half -> (!half_scores) {
          %same = tile.convert %visible : !scores -> !half_scores
          scf.yield %same : !half_scores
        } else {
          %floats = tile.convert %visible : !scores -> !float_scores
          %shift_of = arith.mulf %base, %minus_eights : !rows
          %shifts = tile.expand %shift_of axis 1 : !rows -> !float_scores
          %shifted = arith.addf %floats, %shifts : !float_scores
          %narrow = tile.convert %shifted : !float_scores -> !half_scores
          scf.yield %narrow : !half_scores
        }
        %max_score = tile.reduce max %halves : !half_scores -> !half_rows
        %max = tile.convert %max_score : !half_rows -> !rows
        %octaves = arith.mulf %max, %eighths : !rows
        %whole_octaves = math.ceil %octaves : !rows
        %octaves_here = arith.addf %whole_octaves, %base : !rows
        %new_reference = arith.maxnumf %old_reference, %octaves_here : !rows
        %above_base = arith.subf %new_reference, %base : !rows
        %offset = math.fma %above_base, %per_octaves, %starts : !rows
        %half_offset = tile.convert %offset : !rows -> !half_rows
        %half_offsets = tile.expand %half_offset axis 1 : !half_rows -> !half_scores
        %p = scf.if %fast -> (!half_scores) {
          %bits = tile.fma_relu %halves, %units, %half_offsets : !half_scores
          scf.yield %bits : !half_scores
        } else {
          %beyond_8192 = arith.addf %halves, %rounders : !half_scores
          %minus_nearest = math.fma %beyond_8192, %minus_bends, %bent_rounders : !half_scores
          %bend = math.fma %halves, %bends, %minus_nearest : !half_scores
          %bend_size = math.absf %bend : !half_scores
          %bent = arith.subf %halves, %bend_size : !half_scores
          %bent_bits = tile.fma_relu %bent, %units, %half_offsets : !half_scores
          scf.yield %bent_bits : !half_scores
        }
        tile.ring_release %k_ring[%at] : !k_ring
        %next = tile.ring_next %k_ring[%at] : !k_ring -> !cursor
        %distance = arith.subf %old_reference, %new_reference : !rows
        %new_shrink = math.exp2 %distance : !rows
        %product, %p_held = tile.dot_wait 0 (%adding, %p : !tile.pending<!output>, !half_scores) -> !output, !half_scores
        tile.ring_release %v_ring[%at] : !v_ring
        %shrinks = tile.expand %old_shrink axis 1 : !rows -> !output
        %new_output = math.fma %old_output, %shrinks, %product : !output
        %new_weights = tile.low_bits %p_held : !half_scores -> !weights
        %product_end = arith.select %shortens, %key_end, %tile_kv : index
        scf.yield %new_reference, %new_shrink, %new_output, %new_weights, %product_end, %next
            : !rows, !rows, !output, !weights, index, !cursor
      }
      scf.condition(%opens) %q_at, %q_after, %after, %o_after, %opens, %reference, %shrink, %output, %weights, %last_key_end
          : !cursor, !cursor, !cursor, !cursor, i1, !rows, !rows, !output, !weights, index
    } do {
    ^row(%old_q_at: !cursor, %next_q_at: !cursor, %at: !cursor, %o_at: !cursor, %is_open: i1, %row_reference: !rows,
         %row_shrink: !rows, %row_output: !output, %row_weights: !weights, %row_key_end: index):
      scf.yield %old_q_at, %next_q_at, %at, %o_at, %is_open, %row_reference, %row_shrink, %row_output, %row_weights, %row_key_end
          : !cursor, !cursor, !cursor, !cursor, i1, !rows, !rows, !output, !weights, index
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd for Hopper: block-sparse attention with an online softmax, the
// same function as kernels/portable/attention_fwd.mlir, hand-scheduled.
//
//   o[i]   = sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = exp(s[i, j] - max)
//   lse[i] = ln sum_j exp(s[i, j]),               s = softmax_scale q kᵀ
//
// (FlashAttention-3, arXiv 2407.08608; SpargeAttention2, arXiv 2602.13515.)
// softmax_scale must be positive: the maximum is taken before scaling. Scores are
// taken relative to a reference, at first the maximum of the row's first key tile.
// No further maximum is taken while the weights' sums stay below 2^14 (float16
// weights, and the f32 sums, have room for that): where they do not, a warp does
// the tile over with a new reference, slowly, and seldom. FlashAttention-4 skips
// rescaling by a like rule; here the sums, needed anyway, also replace the maxima.
// o and lse do not depend on the reference.
//
// A CTA is persistent: it works on one tile of query rows ("row" below) after the
// other, and takes the next one when it is done with its list, so that CTAs share
// rows of any length evenly; what a row gives does not depend on who does it. A
// key tile is gathered: its boxes are pieces of listed mask blocks, in any order;
// boxes without keys are zeros (TMA, beyond the tensor's end) and masked. A row
// without keys has one tile of such boxes. Roles, which meet only in the rings:
//
//   scout      reads counts and lists, several key tiles ahead of the loads
//   loader     starts the copies of q, k and v
//   consumers  compute; 64 query rows a warpgroup
//   storer     starts the copies of o
//
// Rings (stations in brackets; slots in shared memory):
//
//   rows   scout [0] -> loader [1]: what a row is: steps (-1: no more rows), batch,
//          head, first query row
//   boxes  scout [0] -> loader [1]: first key rows of a tile's boxes, and flags
//   q      loader [0] -> consumers [1] -> storer [2]: q of a row, overwritten by its
//          o, and what the row is
//   k, v   loader [0] -> consumers [1]: a key tile (k with its boxes and flags), a
//          value tile
//
// Step by step the tensor core does the scores of a key tile and the product of
// the tile before, also over the end of a row: values come one step later than
// keys. A drain is a step without keys that lets the last product be done. Flags:
// 1: some scores must be masked; 2: a drain; 4: the last step of all; from 8 on the
// number of boxes that hold keys.
//
// Shared memory at head_dim = 128, 16-bit elements: q 2 x 32 KiB, k 3 x 32 KiB,
// v 2 x 32 KiB.
//
// Parameters that follow from others: key_box = gcd(tile_kv, mask_block_kv), the
// rows that one copy moves (tile_kv without lists); boxes = tile_kv / key_box;
// consumer_warps = tile_q / 16.
//
// The assembler's level 1 is as fast within 0.5 % on an H200 and ready a tenth of a
// second sooner (bench/results/2026-11-30-h200-calls-against-cudnn.md).

!elem = !tile.element<"elem">
!q_slot = !tile.shared<tile_q x head_dim x !elem, swizzle swizzle_bytes>
!kv_slot = !tile.shared<tile_kv x head_dim x !elem, swizzle swizzle_bytes>
!kv_box = !tile.shared<key_box x head_dim x !elem, swizzle swizzle_bytes>
!row_note = !tile.shared<4 x i32>
!box_note = !tile.shared<boxes x i32>
!flag_note = !tile.shared<1 x i32>

!row_ring = !tile.ring<!row_note>
!box_ring = !tile.ring<!box_note, !flag_note>
!q_ring = !tile.ring<!q_slot, !row_note>
!k_ring = !tile.ring<!kv_slot, !box_note, !flag_note>
!v_ring = !tile.ring<!kv_slot>
!cursor = !tile.cursor

!box_rows = tensor<?xi32, #tile.sizes<boxes>>
!box_mask = tensor<?xi1, #tile.sizes<boxes>>
!scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
!weights = tensor<?x?x!elem, #tile.sizes<tile_q, tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<tile_q, tile_kv>>
!output = tensor<?x?xf32, #tile.sizes<tile_q, head_dim>>
!output_elem = tensor<?x?x!elem, #tile.sizes<tile_q, head_dim>>
!rows = tensor<?xf32, #tile.sizes<tile_q>>
!part_mask = tensor<?x?xi1, #tile.sizes<tile_q, 4>>
!row_mask = tensor<?xi1, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!score_mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>
!row_parts = tensor<?x?xf32, #tile.sizes<tile_q, 4>>

tile.kernel @attention_fwd(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                           %v: !tile.global<4 x !elem>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %o: !tile.global<4 x !elem>, %lse: !tile.global<3 x f32>,
                           %tickets: !tile.global<1 x i32>, %selected: !tile.global<1 x i32>,
                           %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, tile_q, tile_kv,
                key_box, boxes, swizzle_bytes, q_stages, k_stages, v_stages,
                consumer_warps, producer_registers, consumer_registers]
    grid %q by tile_q attributes {assembler_level = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %nowhere = arith.constant 1073741824 : index
  %masked_bit = arith.constant 1 : i32
  %drains_bit = arith.constant 2 : i32
  %last_bit = arith.constant 4 : i32
  %count_unit = arith.constant 8 : i32
  %log2_e = arith.constant 1.44269504 : f32
  %ln_2 = arith.constant 0.693147181 : f32
  %tile_q = tile.parameter "tile_q" : index
  %tile_kv = tile.parameter "tile_kv" : index
  %key_box = tile.parameter "key_box" : index
  %boxes = tile.parameter "boxes" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1

  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  // Query row i sees the keys up to i + shift.
  %shift = arith.subi %kv_len, %q_len : index

  // What the TMA copies, in which boxes.
  %q_map = tile.tensor_map %q : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>
  %k_map = tile.tensor_map %k : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_box>
  %v_map = tile.tensor_map %v : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_box>
  %o_map = tile.tensor_map %o : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>

  // Each ring's barriers: a slot is full when station 0 has arrived (one thread,
  // with the bytes of its copies), and passed on when the warps named have.
  %row_ring = tile.ring stages 4 passed_by [1] : !row_ring
  %box_ring = tile.ring stages 8 passed_by [1] : !box_ring
  %q_ring = tile.ring stages q_stages passed_by [consumer_warps, 1] : !q_ring
  %k_ring = tile.ring stages k_stages passed_by [consumer_warps] : !k_ring
  %v_ring = tile.ring stages v_stages passed_by [consumer_warps] : !v_ring
  %start = tile.ring_start : !cursor

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers producer_registers {
    %first, %end, %step = tile.programs : index, index, index
    %blocks_per_tile_row = arith.divui %mask_block_kv, %key_box : index
    %box_i32 = arith.index_cast %key_box : index to i32
    %box_sizes = tile.splat %box_i32 : i32 -> !box_rows

    // What the launch before writes: all, or each head's lists, from the last head
    // to the first, as soon as they are selected.
    %awaits = tile.is_present %selected : !tile.global<1 x i32>
    %true = arith.constant true
    %awaits_end = arith.xori %awaits, %true : i1
    scf.if %awaits_end {
      tile.launch_wait
    }
    %batches = tile.dim %q, 0 : !tile.global<4 x !elem>
    %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
    %mask_rows = tile.dim %counts, 2 : !tile.global<3 x i32>
    %head_tiles = arith.ceildivui %q_len, %tile_q : index
    %is_each = arith.cmpi eq, %tile_q, %mask_block_q : index
    %lists_each = arith.andi %has_lists, %is_each : i1

    %last:3 = scf.while (%program = %first, %row_at = %start, %first_box_at = %start)
        : (index, !cursor, !cursor) -> (index, !cursor, !cursor) {
      %is_program = arith.cmpi slt, %program, %end : index
      scf.condition(%is_program) %program, %row_at, %first_box_at : index, !cursor, !cursor
    } do {
    ^row(%program: index, %row_at: !cursor, %first_box_at: !cursor):
      %batch_number, %head_number, %tile_number = tile.program_place %program : index, index, index
      %batches_after = arith.addi %batch_number, %c1 : index
      %batch_from_end = arith.subi %batches, %batches_after : index
      %batch = arith.select %awaits, %batch_from_end, %batch_number : index
      %heads_after = arith.addi %head_number, %c1 : index
      %head_from_end = arith.subi %q_heads, %heads_after : index
      %head = arith.select %awaits, %head_from_end, %head_number : index
      scf.if %awaits {
        %heads_before = arith.muli %batch, %q_heads : index
        %counter = arith.addi %heads_before, %head : index
        tile.await %selected[%counter] until %mask_rows by %head_tiles : !tile.global<1 x i32>
      }
      // The rows of the last head come with longer lists first, so that the CTAs end
      // at about the same time.
      %rows_left = arith.subi %end, %program : index
      %is_last_head = arith.cmpi sle, %rows_left, %head_tiles : index
      %sorts = arith.andi %is_last_head, %lists_each : i1
      %tile = scf.if %sorts -> (index) {
        %head_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
        %nth = tile.nth_largest %head_counts[%tile_number] of %head_tiles : !tile.view<1 x i32> -> index
        scf.yield %nth : index
      } else {
        scf.yield %tile_number : index
      }
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
        scf.yield %c0, %dense_steps, %dense_steps : index, index, index
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
        %mask_flag = arith.select %masked, %masked_bit, %c0_i32 : i32
        %boxes_before = arith.muli %s, %boxes : index
        %boxes_left = arith.subi %key_boxes, %boxes_before : index
        %boxes_here = arith.minsi %boxes_left, %boxes : index
        %boxes_here_i32 = arith.index_cast %boxes_here : index to i32
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
    // What comes after this launch comes after the one before, too.
    tile.launch_wait
  }

  // ---- loader: q and k of each step, v of the step before ----------------------
  tile.role "loader" warps 1 registers producer_registers {
    %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %q_stages = tile.parameter "q_stages" : index
    // With one q slot, a row's o must leave before the next row's q can come.
    %drains_each = arith.cmpi eq, %q_stages, %c1 : index
    %false = arith.constant false
    %nowhere_i32 = arith.index_cast %nowhere : index to i32
    %no_boxes = tile.splat %nowhere_i32 : i32 -> !box_rows

    // held: there is a step whose v is still to be loaded; its boxes and head.
    %ends:9 = scf.while (%row_at = %start, %first_box_at = %start, %q_at = %start, %first_k_at = %start,
                         %first_v_at = %start, %first_held = %false, %first_held_boxes = %no_boxes,
                         %first_held_batch = %c0, %first_held_head = %c0)
        : (!cursor, !cursor, !cursor, !cursor, !cursor, i1, !box_rows, index, index)
        -> (!cursor, !cursor, !cursor, !cursor, !cursor, i1, !box_rows, index, index) {
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
      %ends = arith.cmpi slt, %steps_i32, %c0_i32 : i32

      // Drain: a step without keys, so that the consumers finish the row before.
      %may_drain = arith.ori %ends, %drains_each : i1
      %drains = arith.andi %may_drain, %first_held : i1
      %k_from, %v_from, %row_held = scf.if %drains -> (!cursor, !cursor, i1) {
        %end_bits = arith.select %ends, %last_bit, %c0_i32 : i32
        %drain_bits = arith.ori %drains_bit, %masked_bit : i32
        %flags = arith.ori %drain_bits, %end_bits : i32
        %k_slot, %k_boxes, %k_flags = tile.ring_acquire %k_ring[%first_k_at]
            : !k_ring -> !kv_slot, !box_note, !flag_note
        tile.store_shared %no_boxes, %k_boxes : !box_rows, !box_note
        tile.store_note (%flags), %k_flags : !flag_note
        tile.ring_commit %k_ring[%first_k_at] : !k_ring
        %v_slot = tile.ring_acquire %v_ring[%first_v_at] : !v_ring -> !kv_slot
        tile.ring_commit %v_ring[%first_v_at] loads(%v_slot : !kv_slot) : !v_ring
        tile.gather_async %v_map[%first_held_batch, %first_held_head] rows %first_held_boxes into %v_slot
            : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot
        %k_drained = tile.ring_next %k_ring[%first_k_at] : !k_ring -> !cursor
        %v_drained = tile.ring_next %v_ring[%first_v_at] : !v_ring -> !cursor
        scf.yield %k_drained, %v_drained, %false : !cursor, !cursor, i1
      } else {
        scf.yield %first_k_at, %first_v_at, %first_held : !cursor, !cursor, i1
      }

      %q_slot, %q_note = tile.ring_acquire %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      tile.store_note (%steps_i32, %batch_i32, %head_i32, %first_row_i32), %q_note : !row_note
      scf.if %more {
        tile.ring_commit %q_ring[%q_at] loads(%q_slot : !q_slot) : !q_ring
        tile.load_async %q_map[%batch, %head, %first_row] into %q_slot : !tile.tensor_map<4, !q_slot>, !q_slot
      } else {
        tile.ring_commit %q_ring[%q_at] : !q_ring
      }
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor

      %box_after, %k_after, %v_after, %held_after, %held_boxes_after, %held_batch_after, %held_head_after =
          scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %k_at = %k_from, %v_at = %v_from, %held = %row_held,
                    %held_boxes = %first_held_boxes, %held_batch = %first_held_batch, %held_head = %first_held_head)
          -> (!cursor, !cursor, !cursor, i1, !box_rows, index, index) {
        %box_note, %flag_note = tile.ring_wait %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        %boxes_here = tile.load_shared %box_note : !box_note -> !box_rows
        %flags = tile.load_note %flag_note : !flag_note -> i32
        tile.ring_release %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor

        %k_slot, %k_boxes, %k_flags = tile.ring_acquire %k_ring[%k_at]
            : !k_ring -> !kv_slot, !box_note, !flag_note
        tile.store_shared %boxes_here, %k_boxes : !box_rows, !box_note
        tile.store_note (%flags), %k_flags : !flag_note
        tile.ring_commit %k_ring[%k_at] loads(%k_slot : !kv_slot) : !k_ring
        tile.gather_async %k_map[%batch, %kv_head] rows %boxes_here into %k_slot
            : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot
        %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor

        %v_slot = tile.ring_acquire %v_ring[%v_at] : !v_ring -> !kv_slot
        scf.if %held {
          tile.ring_commit %v_ring[%v_at] loads(%v_slot : !kv_slot) : !v_ring
          tile.gather_async %v_map[%held_batch, %held_head] rows %held_boxes into %v_slot
              : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot
        } else {
          tile.ring_commit %v_ring[%v_at] : !v_ring
        }
        %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
        %true = arith.constant true
        scf.yield %box_next, %k_next, %v_next, %true, %boxes_here, %batch, %kv_head
            : !cursor, !cursor, !cursor, i1, !box_rows, index, index
      }
      scf.condition(%more) %row_next, %box_after, %q_next, %k_after, %v_after, %held_after, %held_boxes_after,
                           %held_batch_after, %held_head_after
          : !cursor, !cursor, !cursor, !cursor, !cursor, i1, !box_rows, index, index
    } do {
    ^row(%row_at: !cursor, %box_at: !cursor, %q_at: !cursor, %k_at: !cursor, %v_at: !cursor, %held: i1,
         %held_boxes: !box_rows, %held_batch: index, %held_head: index):
      scf.yield %row_at, %box_at, %q_at, %k_at, %v_at, %held, %held_boxes, %held_batch, %held_head
          : !cursor, !cursor, !cursor, !cursor, !cursor, i1, !box_rows, index, index
    }
  }

  // ---- storer: o ------------------------------------------------------------------
  tile.role "storer" warps 1 registers producer_registers {
    %q_end = scf.while (%q_at = %start) : (!cursor) -> (!cursor) {
      %o_slot, %note = tile.ring_wait %q_ring[%q_at] station 2 : !q_ring -> !q_slot, !row_note
      %steps, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %note : !row_note -> i32, i32, i32, i32
      %more = arith.cmpi sge, %steps, %c0_i32 : i32
      scf.if %more {
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %first_row = arith.index_cast %first_row_i32 : i32 to index
        tile.store_async %o_slot, %o_map[%batch, %head, %first_row] : !q_slot, !tile.tensor_map<4, !q_slot>
        tile.store_wait
      }
      tile.ring_release %q_ring[%q_at] station 2 : !q_ring
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor
      scf.condition(%more) %q_next : !cursor
    } do {
    ^row(%q_at: !cursor):
      scf.yield %q_at : !cursor
    }
  }

  // ---- consumers -----------------------------------------------------------------
  tile.role "consumers" warps consumer_warps registers consumer_registers {
    // The softmax runs in base 2: p = 2^(scale s - scale max).
    %scale = arith.mulf %softmax_scale, %log2_e : f32
    %minus_scale = arith.negf %scale : f32
    %scales = tile.splat %scale : f32 -> !scores
    %row_scales = tile.splat %scale : f32 -> !rows
    %minus_scales = tile.splat %minus_scale : f32 -> !rows
    %hidden = tile.splat %minus_inf : f32 -> !scores
    %no_max = tile.splat %minus_inf : f32 -> !rows
    %zero_rows = tile.splat %f0 : f32 -> !rows
    %most_sum = arith.constant 16384.0 : f32
    %most = tile.splat %most_sum : f32 -> !row_parts
    %no_parts = tile.splat %minus_inf : f32 -> !row_parts
    %one_rows = tile.splat %f1 : f32 -> !rows
    %no_sum = tile.splat %f0 : f32 -> !row_parts
    %no_output = tile.splat %f0 : f32 -> !output
    %no_scores = tile.splat %f0 : f32 -> !scores
    %no_weights = tile.convert %no_scores : !scores -> !weights
    %wants_lse = tile.is_present %lse : !tile.global<3 x f32>
    %kv_len_i32 = arith.index_cast %kv_len : index to i32
    %shift_i32 = arith.index_cast %shift : index to i32

    %false = arith.constant false
    // A turn of this loop is a row. Its first step does the last product of the
    // row before, of as many keys as the row's last tile has, so that the tensor
    // core has no pause between rows. At the end comes a row without keys, a drain.
    %ends:10 = scf.while (%old_q_at = %start, %next_q_at = %start, %first_k_at = %start, %first_v_at = %start,
                          %is_open = %false, %row_reference = %no_max, %row_sum = %no_sum,
                          %row_output = %no_output, %row_weights = %no_weights, %row_boxes = %c0_i32)
        : (!cursor, !cursor, !cursor, !cursor, i1, !rows, !row_parts, !output, !weights, i32)
        -> (!cursor, !cursor, !cursor, !cursor, i1, !rows, !row_parts, !output, !weights, i32) {
      // Issue: the row's first scores, and the last product of the row before.
      %k_slot_0, %k_boxes_0, %k_flags_0 = tile.ring_wait %k_ring[%first_k_at]
          : !k_ring -> !kv_slot, !box_note, !flag_note
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
      %products_0 = tile.dot_async %q_slot, %k_slot_0 transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
      %v_slot_0 = tile.ring_wait %v_ring[%first_v_at] : !v_ring -> !kv_slot
      %last_boxes = arith.index_cast %row_boxes : i32 to index
      %listed_key_end = arith.muli %last_boxes, %key_box : index
      %last_key_end = arith.select %has_lists, %listed_key_end, %tile_kv : index
      %adding_0 = tile.dot_async %row_weights, %v_slot_0 within %last_key_end onto %row_output : !output
          : !weights, !kv_slot -> !tile.pending<!output>

      // Row i sees the keys before row_ends[i].
      %row_steps, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %q_note : !row_note -> i32, i32, i32, i32
      %steps_i32 = arith.select %opens, %row_steps, %c1_i32 : i32
      %steps = arith.index_cast %steps_i32 : i32 to index
      %first_limit = arith.addi %first_row_i32, %shift_i32 : i32
      %first_end = arith.addi %first_limit, %c1_i32 : i32
      %first_ends = tile.splat %first_end : i32 -> !row_numbers
      %kv_ends = tile.splat %kv_len_i32 : i32 -> !row_numbers
      %row_numbers = tile.iota : !row_numbers
      %causal_ends = arith.addi %first_ends, %row_numbers : !row_numbers
      %clipped_ends = arith.minsi %causal_ends, %kv_ends : !row_numbers
      %row_ends = arith.select %causal, %clipped_ends, %kv_ends : !row_numbers

      // Scores: mask, and give the key tile back.
      %s_0 = tile.dot_wait 1 (%products_0 : !tile.pending<!scores>) -> !scores
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
      tile.ring_release %k_ring[%first_k_at] : !k_ring
      %k_at_0 = tile.ring_next %k_ring[%first_k_at] : !k_ring -> !cursor

      // Softmax. A query that has seen no key has max = -inf; scaling by 0
      // instead keeps its p at 0 rather than NaN.
      %max_0 = tile.reduce max %visible_0 : !scores -> !rows
      %unseen_0 = arith.cmpf oeq, %max_0, %no_max : !rows
      %reference_0 = arith.select %unseen_0, %zero_rows, %max_0 : !row_mask, !rows
      %offset_0 = arith.mulf %reference_0, %minus_scales : !rows
      %offsets_0 = tile.expand %offset_0 axis 1 : !rows -> !scores
      %exponents_0 = math.fma %visible_0, %scales, %offsets_0 : !scores
      %p_0 = math.exp2 %exponents_0 : !scores
      %sum_0 = tile.reduce_partial sum %p_0 : !scores -> !row_parts

      // The product lands after the softmax, which runs beside it. The weights
      // are converted after that wait: ptxas before 13.3 may reuse registers that
      // a running product still reads.
      %row_product, %p_held_0 = tile.dot_wait 0 (%adding_0, %p_0 : !tile.pending<!output>, !scores)
          after %sum_0 : !row_parts -> !output, !scores
      tile.ring_release %v_ring[%first_v_at] : !v_ring
      %v_at_0 = tile.ring_next %v_ring[%first_v_at] : !v_ring -> !cursor
      %weights_0 = tile.convert %p_held_0 : !scores -> !weights

      // The row before is complete: o = output / sum (0 for a row without keys),
      // over its q; the storer takes it from there.
      scf.if %is_open {
        %o_slot, %o_note = tile.ring_wait %q_ring[%old_q_at] : !q_ring -> !q_slot, !row_note
        %total = tile.reduce sum %row_sum : !row_parts -> !rows
        %empty = arith.cmpf oeq, %total, %zero_rows : !rows
        %reciprocal = arith.divf %one_rows, %total : !rows
        %factor = arith.select %empty, %zero_rows, %reciprocal : !row_mask, !rows
        %factors = tile.expand %factor axis 1 : !rows -> !output
        %normalised = arith.mulf %row_product, %factors : !output
        %o_tile = tile.convert %normalised : !output -> !output_elem
        tile.store_shared %o_tile, %o_slot : !output_elem, !q_slot
        %o_steps, %o_batch, %o_head, %o_row = tile.load_note %o_note : !row_note -> i32, i32, i32, i32
        tile.ring_release %q_ring[%old_q_at] : !q_ring
        scf.if %wants_lse {
          %batch = arith.index_cast %o_batch : i32 to index
          %head = arith.index_cast %o_head : i32 to index
          %first_row = arith.index_cast %o_row : i32 to index
          %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
          %log_sum = math.log2 %total : !rows
          %lse_log2 = math.fma %row_reference, %row_scales, %log_sum : !rows
          %ln_2s = tile.splat %ln_2 : f32 -> !rows
          %lse_rows = arith.mulf %lse_log2, %ln_2s : !rows
          tile.store %lse_rows, %lse_view[%first_row] : !rows, !tile.view<1 x f32>
        }
      }

      // Each further step issues the next scores' dot, then the last weights'
      // product with their values; the softmax runs under both.
      %new_reference, %new_sum, %new_output, %last_weights, %last_flags, %k_after, %v_after =
          scf.for %step = %c1 to %steps step %c1
          iter_args(%old_reference = %max_0, %old_sum = %sum_0, %old_output = %no_output, %old_weights = %weights_0,
                    %old_flags = %flags_0, %k_at = %k_at_0, %v_at = %v_at_0)
          -> (!rows, !row_parts, !output, !weights, i32, !cursor, !cursor) {
        // Issue: scores of this tile, output of the one before.
        %k_slot, %k_boxes, %k_flags = tile.ring_wait %k_ring[%k_at] : !k_ring -> !kv_slot, !box_note, !flag_note
        %products = tile.dot_async %q_slot, %k_slot transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
        %v_slot = tile.ring_wait %v_ring[%v_at] : !v_ring -> !kv_slot
        %adding = tile.dot_async %old_weights, %v_slot onto %old_output : !output
            : !weights, !kv_slot -> !tile.pending<!output>

        // Scores: mask. Flags are at hand when the scores are; with lists that is no faster.
        %flags_before = tile.load_note %k_flags : !flag_note -> i32
        %s = tile.dot_wait 1 (%products : !tile.pending<!scores>) -> !scores
        %flags_after = tile.load_note %k_flags : !flag_note -> i32
        %flags = arith.select %has_lists, %flags_after, %flags_before : i32
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

        // Softmax, against the reference as it is.
        %unseen = arith.cmpf oeq, %old_reference, %no_max : !rows
        %base = arith.select %unseen, %zero_rows, %old_reference : !row_mask, !rows
        %offset = arith.mulf %base, %minus_scales : !rows
        %offsets = tile.expand %offset axis 1 : !rows -> !scores
        %exponents = math.fma %visible, %scales, %offsets : !scores
        %p = math.exp2 %exponents : !scores
        %tile_sum = tile.reduce_partial sum %p : !scores -> !row_parts

        // Has a row outgrown its reference, or seen no key that gave it one? Then
        // the reference is moved to the maximum, of scores computed once more.
        %reference_parts = tile.expand %old_reference axis 1 : !rows -> !row_parts
        %unseen_parts = arith.cmpf oeq, %reference_parts, %no_parts : !row_parts
        %outgrown_parts = arith.cmpf ogt, %tile_sum, %most : !row_parts
        %moving_parts = arith.ori %unseen_parts, %outgrown_parts : !part_mask
        %moves = tile.warp_any %moving_parts : !part_mask
        // The product lands beside all this; the output is rescaled with the move.
        %reference, %sum, %output, %p_held = scf.if %moves -> (!rows, !row_parts, !output, !scores) {
          %s_again = tile.warp_dot %q_slot, %k_slot : !q_slot, !kv_slot -> !scores
          %keys_again = tile.shared_positions %k_boxes : !box_note -> !key_numbers
          %key_numbers_again = tile.expand %keys_again axis 0 : !key_numbers -> !positions
          %ends_again = tile.expand %row_ends axis 1 : !row_numbers -> !positions
          %sees_again = arith.cmpi slt, %key_numbers_again, %ends_again : !positions
          %visible_again = arith.select %sees_again, %s_again, %hidden : !score_mask, !scores
          tile.ring_release %k_ring[%k_at] : !k_ring
          %tile_max = tile.reduce max %visible_again : !scores -> !rows
          %moved = arith.maximumf %old_reference, %tile_max : !rows
          %unseen_again = arith.cmpf oeq, %moved, %no_max : !rows
          %base_again = arith.select %unseen_again, %zero_rows, %moved : !row_mask, !rows
          %offset_again = arith.mulf %base_again, %minus_scales : !rows
          %offsets_again = tile.expand %offset_again axis 1 : !rows -> !scores
          %exponents_again = math.fma %visible_again, %scales, %offsets_again : !scores
          %p_again = math.exp2 %exponents_again : !scores
          %sum_again = tile.reduce_partial sum %p_again : !scores -> !row_parts
          %landed, %p_landed = tile.dot_wait 0 (%adding, %p_again : !tile.pending<!output>, !scores)
              after %sum_again : !row_parts -> !output, !scores
          %distance = arith.subf %old_reference, %moved : !rows
          %distance_log2 = arith.mulf %distance, %row_scales : !rows
          %factor = math.exp2 %distance_log2 : !rows
          %stays = arith.cmpf oeq, %old_reference, %moved : !rows
          %shrink = arith.select %stays, %one_rows, %factor : !row_mask, !rows
          %part_shrink = tile.expand %shrink axis 1 : !rows -> !row_parts
          %output_shrink = tile.expand %shrink axis 1 : !rows -> !output
          %new_sum = math.fma %old_sum, %part_shrink, %sum_again : !row_parts
          %shrunk = arith.mulf %landed, %output_shrink : !output
          scf.yield %moved, %new_sum, %shrunk, %p_landed : !rows, !row_parts, !output, !scores
        } else {
          tile.ring_release %k_ring[%k_at] : !k_ring
          %landed, %p_landed = tile.dot_wait 0 (%adding, %p : !tile.pending<!output>, !scores)
              after %tile_sum : !row_parts -> !output, !scores
          %new_sum = arith.addf %old_sum, %tile_sum : !row_parts
          scf.yield %old_reference, %new_sum, %landed, %p_landed : !rows, !row_parts, !output, !scores
        }
        tile.ring_release %v_ring[%v_at] : !v_ring
        %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor
        %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
        %weights = tile.convert %p_held : !scores -> !weights
        scf.yield %reference, %sum, %output, %weights, %flags, %k_next, %v_next
            : !rows, !row_parts, !output, !weights, i32, !cursor, !cursor
      }
      %last_i32 = arith.andi %flags_0, %last_bit : i32
      %more = arith.cmpi eq, %last_i32, %c0_i32 : i32
      %count_shift = arith.constant 3 : i32
      %new_boxes = arith.shrui %last_flags, %count_shift : i32
      scf.condition(%more) %q_at, %q_after, %k_after, %v_after, %opens, %new_reference, %new_sum, %new_output, %last_weights,
                           %new_boxes
          : !cursor, !cursor, !cursor, !cursor, i1, !rows, !row_parts, !output, !weights, i32
    } do {
    ^row(%old_q_at: !cursor, %next_q_at: !cursor, %k_at: !cursor, %v_at: !cursor, %is_open: i1, %row_reference: !rows,
         %row_sum: !row_parts, %row_output: !output, %row_weights: !weights, %row_boxes: i32):
      scf.yield %old_q_at, %next_q_at, %k_at, %v_at, %is_open, %row_reference, %row_sum, %row_output, %row_weights, %row_boxes
          : !cursor, !cursor, !cursor, !cursor, i1, !rows, !row_parts, !output, !weights, i32
    }

    // The end goes on to the storer.
    %end_slot, %end_note = tile.ring_wait %q_ring[%ends#1] : !q_ring -> !q_slot, !row_note
    tile.ring_release %q_ring[%ends#1] : !q_ring
  }
}

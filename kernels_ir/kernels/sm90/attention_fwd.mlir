// SPDX-License-Identifier: Apache-2.0
//
// attention_fwd for Hopper: block-sparse attention with an online softmax, the
// same function as kernels/portable/attention_fwd.mlir, hand-scheduled.
//
//   o[i]   = sum_j p[i, j] v[j] / sum_j p[i, j],  p[i, j] = exp(s[i, j] - max)
//   lse[i] = ln sum_j exp(s[i, j]),               s = softmax_scale q kᵀ
//
// (FlashAttention-3, arXiv 2407.08608; SpargeAttention2, arXiv 2602.13515.)
// softmax_scale must be positive: the maximum is taken before scaling.
//
// A CTA is persistent: it works on one tile of query rows ("row" below) after the
// other. A key tile is gathered: its boxes are pieces of listed mask blocks, in
// any order; boxes without keys are zeros (TMA, beyond the tensor's end) and
// masked. Roles, which meet only in the rings:
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
//   boxes  scout [0] -> loader [1]: first key rows of a tile's boxes, and whether
//          some of its scores must be masked
//   q      loader [0] -> consumers [1] -> storer [2]: q of a row, overwritten by its
//          o, and what the row is
//   k, v   loader [0] -> consumers [1]: a key tile (k with its boxes), a value tile
//
// Shared memory at head_dim = 128, 16-bit elements, two stages each: q 2 x 32 KiB,
// k 2 x 32 KiB, v 2 x 32 KiB.
//
// Parameters that follow from others: key_box = gcd(tile_kv, mask_block_kv), the
// rows that one copy moves (tile_kv without lists); boxes = tile_kv / key_box;
// consumer_warps = tile_q / 16.

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
!row_mask = tensor<?xi1, #tile.sizes<tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_q>>
!score_mask = tensor<?x?xi1, #tile.sizes<tile_q, tile_kv>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_kv>>
!row_parts = tensor<?x?xf32, #tile.sizes<tile_q, 4>>

tile.kernel @attention_fwd(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                           %v: !tile.global<4 x !elem>,
                           %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                           %o: !tile.global<4 x !elem>, %lse: !tile.global<3 x f32>,
                           %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, tile_q, tile_kv,
                key_box, boxes, swizzle_bytes, q_stages, kv_stages, consumer_warps,
                producer_registers, consumer_registers]
    grid %q by tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
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
  %k_ring = tile.ring stages kv_stages passed_by [consumer_warps] : !k_ring
  %v_ring = tile.ring stages kv_stages passed_by [consumer_warps] : !v_ring
  %start = tile.ring_start : !cursor

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers producer_registers {
    %first, %end, %step = tile.programs : index, index, index
    %blocks_per_tile_row = arith.divui %mask_block_kv, %key_box : index
    %box_i32 = arith.index_cast %key_box : index to i32
    %box_sizes = tile.splat %box_i32 : i32 -> !box_rows

    %rows_end, %boxes_end = scf.for %program = %first to %end step %step
        iter_args(%row_at = %start, %first_box_at = %start) -> (!cursor, !cursor) {
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
      %count, %steps = scf.if %has_lists -> (index, index) {
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
          %first_key = arith.muli %s, %tile_kv : index
          %first_key_i32 = arith.index_cast %first_key : index to i32
          %dense_rows = tile.splat %first_key_i32 : i32 -> !box_rows
          scf.yield %dense_rows : !box_rows
        }
        %box_ends = arith.addi %box_rows, %box_sizes : !box_rows
        %beyond = arith.cmpi sgt, %box_ends, %first_ends : !box_rows
        %masked = tile.any %beyond : !box_mask
        %masked_i32 = arith.extui %masked : i1 to i32
        %box_note, %flag_note = tile.ring_acquire %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        tile.store_shared %box_rows, %box_note : !box_rows, !box_note
        tile.store_note (%masked_i32), %flag_note : !flag_note
        tile.ring_commit %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
        scf.yield %box_next : !cursor
      }
      scf.yield %row_after, %box_after : !cursor, !cursor
    }

    // No more rows.
    %minus_one = arith.constant -1 : i32
    %end_note = tile.ring_acquire %row_ring[%rows_end] : !row_ring -> !row_note
    tile.store_note (%minus_one, %c0_i32, %c0_i32, %c0_i32), %end_note : !row_note
    tile.ring_commit %row_ring[%rows_end] : !row_ring
  }

  // ---- loader: q, then k and v of each step ------------------------------------
  tile.role "loader" warps 1 registers producer_registers {
    %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index

    %ends:7 = scf.while (%row_at = %start, %first_box_at = %start, %q_at = %start, %first_kv_at = %start)
        : (!cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor, i32, i32, i32) {
      %row_note = tile.ring_wait %row_ring[%row_at] : !row_ring -> !row_note
      %steps, %batch, %head, %first_row = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor

      // The consumers learn of every row; only one with keys has a q.
      %q_slot, %q_note = tile.ring_acquire %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      tile.store_note (%steps, %batch, %head, %first_row), %q_note : !row_note
      %has_keys = arith.cmpi sgt, %steps, %c0_i32 : i32
      scf.if %has_keys {
        %batch_index = arith.index_cast %batch : i32 to index
        %head_index = arith.index_cast %head : i32 to index
        %row_index = arith.index_cast %first_row : i32 to index
        tile.ring_commit %q_ring[%q_at] loads(%q_slot : !q_slot) : !q_ring
        tile.load_async %q_map[%batch_index, %head_index, %row_index] into %q_slot
            : !tile.tensor_map<4, !q_slot>, !q_slot
      } else {
        tile.ring_commit %q_ring[%q_at] : !q_ring
      }
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor
      %more = arith.cmpi sge, %steps, %c0_i32 : i32
      scf.condition(%more) %row_next, %first_box_at, %q_next, %first_kv_at, %steps, %batch, %head
          : !cursor, !cursor, !cursor, !cursor, i32, i32, i32
    } do {
    ^row(%row_at: !cursor, %first_box_at: !cursor, %q_at: !cursor, %first_kv_at: !cursor,
         %steps_i32: i32, %batch_i32: i32, %head_i32: i32):
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %kv_head = arith.divui %head, %heads_per_kv : index
      // The k and v rings have equally many stages, so one cursor serves both.
      %box_after, %kv_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %kv_at = %first_kv_at) -> (!cursor, !cursor) {
        %box_note, %flag_note = tile.ring_wait %box_ring[%box_at] : !box_ring -> !box_note, !flag_note
        %box_rows = tile.load_shared %box_note : !box_note -> !box_rows
        %masked = tile.load_note %flag_note : !flag_note -> i32
        tile.ring_release %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor

        %k_slot, %k_boxes, %k_flag = tile.ring_acquire %k_ring[%kv_at]
            : !k_ring -> !kv_slot, !box_note, !flag_note
        tile.store_shared %box_rows, %k_boxes : !box_rows, !box_note
        tile.store_note (%masked), %k_flag : !flag_note
        tile.ring_commit %k_ring[%kv_at] loads(%k_slot : !kv_slot) : !k_ring
        tile.gather_async %k_map[%batch, %kv_head] rows %box_rows into %k_slot
            : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot

        %v_slot = tile.ring_acquire %v_ring[%kv_at] : !v_ring -> !kv_slot
        tile.ring_commit %v_ring[%kv_at] loads(%v_slot : !kv_slot) : !v_ring
        tile.gather_async %v_map[%batch, %kv_head] rows %box_rows into %v_slot
            : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot
        %kv_next = tile.ring_next %k_ring[%kv_at] : !k_ring -> !cursor
        scf.yield %box_next, %kv_next : !cursor, !cursor
      }
      scf.yield %row_at, %box_after, %q_at, %kv_after : !cursor, !cursor, !cursor, !cursor
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
    %one_rows = tile.splat %f1 : f32 -> !rows
    %no_output = tile.splat %f0 : f32 -> !output
    %wants_lse = tile.is_present %lse : !tile.global<3 x f32>

    %ends:7 = scf.while (%q_at = %start, %k_at = %start, %v_at = %start)
        : (!cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, i32, i32, i32, i32) {
      %q_slot, %note = tile.ring_wait %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      %steps, %batch, %head, %first_row = tile.load_note %note : !row_note -> i32, i32, i32, i32
      %more = arith.cmpi sge, %steps, %c0_i32 : i32
      scf.condition(%more) %q_at, %k_at, %v_at, %steps, %batch, %head, %first_row
          : !cursor, !cursor, !cursor, i32, i32, i32, i32
    } do {
    ^row(%q_at: !cursor, %first_k_at: !cursor, %first_v_at: !cursor,
         %steps_i32: i32, %batch_i32: i32, %head_i32: i32, %first_row_i32: i32):
      %steps = arith.index_cast %steps_i32 : i32 to index
      %first_row = arith.index_cast %first_row_i32 : i32 to index
      %q_slot, %q_note = tile.ring_wait %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      %has_keys = arith.cmpi sgt, %steps_i32, %c0_i32 : i32

      // Row i sees the keys before row_ends[i].
      %kv_len_i32 = arith.index_cast %kv_len : index to i32
      %shift_i32 = arith.index_cast %shift : index to i32
      %first_limit = arith.addi %first_row_i32, %shift_i32 : i32
      %first_end = arith.addi %first_limit, %c1_i32 : i32
      %first_ends = tile.splat %first_end : i32 -> !row_numbers
      %kv_ends = tile.splat %kv_len_i32 : i32 -> !row_numbers
      %row_numbers = tile.iota : !row_numbers
      %causal_ends = arith.addi %first_ends, %row_numbers : !row_numbers
      %clipped_ends = arith.minsi %causal_ends, %kv_ends : !row_numbers
      %row_ends = arith.select %causal, %clipped_ends, %kv_ends : !row_numbers

      %row_max, %row_sum, %sums, %k_end, %v_end = scf.if %has_keys -> (!rows, !rows, !output, !cursor, !cursor) {
        // First key tile: its scores alone.
        %k_slot_0, %k_boxes_0, %k_flag_0 = tile.ring_wait %k_ring[%first_k_at]
            : !k_ring -> !kv_slot, !box_note, !flag_note
        %products_0 = tile.dot_async %q_slot, %k_slot_0 transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
        %s_0 = tile.dot_wait 0 (%products_0 : !tile.pending<!scores>) -> !scores
        %flag_0 = tile.load_note %k_flag_0 : !flag_note -> i32
        %masked_0 = arith.cmpi ne, %flag_0, %c0_i32 : i32
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

        // Its softmax. A row that has seen no key has max = -inf; scaling by 0
        // instead keeps its p at 0 rather than NaN.
        %max_0 = tile.reduce max %visible_0 : !scores -> !rows
        %unseen_0 = arith.cmpf oeq, %max_0, %no_max : !rows
        %reference_0 = arith.select %unseen_0, %zero_rows, %max_0 : !row_mask, !rows
        %offset_0 = arith.mulf %reference_0, %minus_scales : !rows
        %offsets_0 = tile.expand %offset_0 axis 1 : !rows -> !scores
        %exponents_0 = math.fma %visible_0, %scales, %offsets_0 : !scores
        %p_0 = math.exp2 %exponents_0 : !scores
        %sum_0 = tile.reduce_partial sum %p_0 : !scores -> !row_parts
        %weights_0 = tile.convert %p_0 : !scores -> !weights

        // Each step issues the next scores' dot, then the last weights' product
        // with their values; the softmax runs under both.
        %new_max, %new_sum, %new_output, %last_weights, %k_after, %v_last = scf.for %step = %c1 to %steps step %c1
            iter_args(%old_max = %max_0, %old_sum = %sum_0, %old_output = %no_output, %old_weights = %weights_0,
                      %k_at = %k_at_0, %v_at = %first_v_at)
            -> (!rows, !row_parts, !output, !weights, !cursor, !cursor) {
          // Issue: scores of this tile, output of the one before.
          %k_slot, %k_boxes, %k_flag = tile.ring_wait %k_ring[%k_at] : !k_ring -> !kv_slot, !box_note, !flag_note
          %products = tile.dot_async %q_slot, %k_slot transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
          %v_slot = tile.ring_wait %v_ring[%v_at] : !v_ring -> !kv_slot
          %adding = tile.dot_async %old_weights, %v_slot onto %old_output : !output
              : !weights, !kv_slot -> !tile.pending<!output>

          // Scores: mask, and give the key tile back.
          %s = tile.dot_wait 1 (%products : !tile.pending<!scores>) -> !scores
          %flag = tile.load_note %k_flag : !flag_note -> i32
          %masked = arith.cmpi ne, %flag, %c0_i32 : i32
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
          tile.ring_release %k_ring[%k_at] : !k_ring
          %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor

          // Softmax.
          %tile_max = tile.reduce max %visible : !scores -> !rows
          %max = arith.maxnumf %old_max, %tile_max : !rows
          %unseen = arith.cmpf oeq, %max, %no_max : !rows
          %reference = arith.select %unseen, %zero_rows, %max : !row_mask, !rows
          %offset = arith.mulf %reference, %minus_scales : !rows
          // Of the offsets as rounded, so that an unchanged maximum gives exactly 1.
          %old_offset = arith.mulf %old_max, %minus_scales : !rows
          %shrink_exponent = arith.subf %offset, %old_offset : !rows
          %shrink = math.exp2 %shrink_exponent : !rows
          %offsets = tile.expand %offset axis 1 : !rows -> !scores
          %exponents = math.fma %visible, %scales, %offsets : !scores
          %p = math.exp2 %exponents : !scores
          %tile_sum = tile.reduce_partial sum %p : !scores -> !row_parts
          %part_shrink = tile.expand %shrink axis 1 : !rows -> !row_parts
          %sum = math.fma %old_sum, %part_shrink, %tile_sum : !row_parts

          // Output: rescale it once the product has landed; not before the softmax
          // is done, which runs beside it. The weights are converted after that
          // wait: ptxas before 13.3 may reuse registers that a running product
          // still reads.
          %added, %p_held = tile.dot_wait 0 (%adding, %p : !tile.pending<!output>, !scores)
              after %sum : !row_parts -> !output, !scores
          tile.ring_release %v_ring[%v_at] : !v_ring
          %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
          %output_shrink = tile.expand %shrink axis 1 : !rows -> !output
          %output = arith.mulf %added, %output_shrink : !output
          %weights = tile.convert %p_held : !scores -> !weights
          scf.yield %max, %sum, %output, %weights, %k_next, %v_next
              : !rows, !row_parts, !output, !weights, !cursor, !cursor
        }

        // Last value tile.
        %last_v_slot = tile.ring_wait %v_ring[%v_last] : !v_ring -> !kv_slot
        %last_adding = tile.dot_async %last_weights, %last_v_slot onto %new_output : !output
            : !weights, !kv_slot -> !tile.pending<!output>
        %total = tile.reduce sum %new_sum : !row_parts -> !rows
        %last_output = tile.dot_wait 0 (%last_adding : !tile.pending<!output>) -> !output
        tile.ring_release %v_ring[%v_last] : !v_ring
        %v_after = tile.ring_next %v_ring[%v_last] : !v_ring -> !cursor
        scf.yield %new_max, %total, %last_output, %k_after, %v_after : !rows, !rows, !output, !cursor, !cursor
      } else {
        // No keys: nothing was loaded.
        scf.yield %no_max, %zero_rows, %no_output, %first_k_at, %first_v_at : !rows, !rows, !output, !cursor, !cursor
      }

      // o = output / sum (0 for a row without keys), over q in its slot; the
      // storer takes it from there.
      %empty = arith.cmpf oeq, %row_sum, %zero_rows : !rows
      %reciprocal = arith.divf %one_rows, %row_sum : !rows
      %factor = arith.select %empty, %zero_rows, %reciprocal : !row_mask, !rows
      %factors = tile.expand %factor axis 1 : !rows -> !output
      %normalised = arith.mulf %sums, %factors : !output
      %o_tile = tile.convert %normalised : !output -> !output_elem
      tile.store_shared %o_tile, %q_slot : !output_elem, !q_slot
      tile.ring_release %q_ring[%q_at] : !q_ring
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor

      scf.if %wants_lse {
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %log_sum = math.log2 %row_sum : !rows
        %lse_log2 = math.fma %row_max, %row_scales, %log_sum : !rows
        %ln_2s = tile.splat %ln_2 : f32 -> !rows
        %lse_rows = arith.mulf %lse_log2, %ln_2s : !rows
        tile.store %lse_rows, %lse_view[%first_row] : !rows, !tile.view<1 x f32>
      }
      scf.yield %q_next, %k_end, %v_end : !cursor, !cursor, !cursor
    }

    // The end goes on to the storer.
    tile.ring_release %q_ring[%ends#0] : !q_ring
  }
}

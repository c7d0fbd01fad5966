// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_q_kept for Hopper: the gradient of block-sparse attention in q,
// from what attention_bwd_kv.mlir has kept.
//
//   dq[i] = softmax_scale sum_j ds[i, j] k[j]
//
// over the keys j of the blocks that row i's list names. One product for three of
// attention_bwd_q.mlir: no exponential, nothing of q, v and do. 2 bytes a visited
// pair come from memory, which is what bounds it.
//
// Kept blocks: the p-th entry of row block r's list is block row_places[b, h, r] + p
// of the kept blocks of its head, kept[b heads + h, …], a stack (TileStacks.td) of
// mask_block_q columns (ds transposed). invert_blocks.mlir hands out the places; a
// row block without one (-1) is left for attention_bwd_q.mlir; a list with entries
// that are no key blocks has none.
//
// A CTA works on one row block after the other. Roles:
//
//   scout      reads counts, places and lists, several key tiles ahead of the loads
//   loader     starts the copies of ds and k
//   consumers  compute; 64 query rows a warpgroup
//
// Rings (stations in brackets; slots in shared memory):
//
//   rows   scout [0] -> loader [1] -> consumers [2]: what a row block is: steps (-1:
//          no more), batch, head, first query row, first kept block
//   boxes  scout [0] -> loader [1]: first key rows of a tile's boxes, and where
//          their ds begins
//   tiles  loader [0] -> consumers [1]: a tile's ds and keys
//
// Boxes behind a list's end have keys of 0, and the ds of its last box: numbers of
// the same query rows, and finite where those are.
//
// Shared memory at head_dim = 128, 16-bit elements, tiles of 64 keys: 6 slots of 16
// KiB of ds (128 query rows) and 16 KiB of k: what memory brings while a row block's
// gradients are stored.
//
// Parameters that follow from others: dqk_key_box = gcd(dqk_tile_kv, mask_block_kv),
// the keys that one copy moves; dqk_boxes = dqk_tile_kv / dqk_key_box; dqk_warps =
// mask_block_q / 16; dqk_stack_columns = mask_block_q dqk_tile_kv / 16.

!elem = !tile.element<"elem">
!stack_slot = !tile.shared<16 x dqk_stack_columns x !elem, swizzle 16>
!k_slot = !tile.shared<dqk_tile_kv x head_dim x !elem, swizzle swizzle_bytes>
!k_box = !tile.shared<dqk_key_box x head_dim x !elem, swizzle swizzle_bytes>
!row_note = !tile.shared<5 x i32>
!box_note = !tile.shared<dqk_boxes x i32>

!row_ring = !tile.ring<!row_note>
!box_ring = !tile.ring<!box_note, !box_note>
!tile_ring = !tile.ring<!stack_slot, !k_slot>
!cursor = !tile.cursor

!boxes = tensor<?xi32, #tile.sizes<dqk_boxes>>
!output = tensor<?x?xf32, #tile.sizes<mask_block_q, head_dim>>
!output_elem = tensor<?x?x!elem, #tile.sizes<mask_block_q, head_dim>>

tile.kernel @attention_bwd_q_kept(%k: !tile.global<4 x !elem>,
                                  %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                                  %row_places: !tile.global<3 x i32>, %kept: !tile.global<3 x !elem>,
                                  %d_q: !tile.global<4 x !elem>,
                                  %tickets: !tile.global<1 x i32>, %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, dqk_tile_kv, dqk_key_box, dqk_boxes, dqk_stack_columns,
                swizzle_bytes, dqk_stages, dqk_warps, dqk_producer_registers, dqk_consumer_registers]
    grid %d_q by mask_block_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %key_box = tile.parameter "dqk_key_box" : index
  %boxes = tile.parameter "dqk_boxes" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>

  %k_map = tile.tensor_map %k : !tile.global<4 x !elem> -> !tile.tensor_map<4, !k_box>

  %row_ring = tile.ring stages 4 passed_by [1, dqk_warps] : !row_ring
  %box_ring = tile.ring stages 8 passed_by [1] : !box_ring
  %tile_ring = tile.ring stages dqk_stages passed_by [dqk_warps] : !tile_ring
  %start = tile.ring_start : !cursor

  // The lists and places are what launches have written that the one before this
  // has waited for; what that one keeps is waited for where it is read.
  tile.launch_next

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers dqk_producer_registers {
    %first, %end, %step = tile.programs : index, index, index
    %heads = tile.dim %d_q, 1 : !tile.global<4 x !elem>
    %kept_blocks = tile.dim %kept, 1 : !tile.global<3 x !elem>
    %boxes_per_block = arith.divui %mask_block_kv, %key_box : index
    %box_elements = arith.muli %key_box, %mask_block_q : index
    %box_elements_i32 = arith.index_cast %box_elements : index to i32
    %elements = tile.splat %box_elements_i32 : i32 -> !boxes
    %numbers = tile.iota : !boxes

    %last:3 = scf.while (%program = %first, %row_at = %start, %first_box_at = %start)
        : (index, !cursor, !cursor) -> (index, !cursor, !cursor) {
      %is_program = arith.cmpi slt, %program, %end : index
      scf.condition(%is_program) %program, %row_at, %first_box_at : index, !cursor, !cursor
    } do {
    ^row(%program: index, %row_at: !cursor, %first_box_at: !cursor):
      %batch, %head, %tile = tile.program_place %program : index, index, index
      %row_counts = tile.slice %counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
      %rows_first = tile.slice %row_places[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
      %count_i32 = tile.load_scalar %row_counts[%tile] : !tile.view<1 x i32> -> i32
      %first_i32 = tile.load_scalar %rows_first[%tile] : !tile.view<1 x i32> -> i32
      %is_kept = arith.cmpi sge, %first_i32, %c0_i32 : i32
      %row_after, %box_after = scf.if %is_kept -> (!cursor, !cursor) {
        %list = tile.slice %indices[%batch, %head, %tile] : !tile.global<4 x i32> -> !tile.view<1 x i32>
        // No count reaches beyond the list's memory, whatever it says.
        %not_negative = arith.maxsi %count_i32, %c0_i32 : i32
        %wanted = arith.index_cast %not_negative : i32 to index
        %capacity = tile.dim %indices, 3 : !tile.global<4 x i32>
        %count = arith.minsi %wanted, %capacity : index
        %all_boxes = arith.muli %count, %boxes_per_block : index
        %steps = arith.ceildivui %all_boxes, %boxes : index

        %first_row = arith.muli %tile, %mask_block_q : index
        %heads_before = arith.muli %batch, %heads : index
        %kept_head = arith.addi %heads_before, %head : index
        %blocks_before = arith.muli %kept_head, %kept_blocks : index
        %in_head = arith.index_cast %first_i32 : i32 to index
        %kept_block = arith.addi %blocks_before, %in_head : index
        %row_note = tile.ring_acquire %row_ring[%row_at] : !row_ring -> !row_note
        %steps_i32 = arith.index_cast %steps : index to i32
        %batch_i32 = arith.index_cast %batch : index to i32
        %head_i32 = arith.index_cast %head : index to i32
        %first_row_i32 = arith.index_cast %first_row : index to i32
        %kept_block_i32 = arith.index_cast %kept_block : index to i32
        tile.store_note (%steps_i32, %batch_i32, %head_i32, %first_row_i32, %kept_block_i32), %row_note : !row_note
        tile.ring_commit %row_ring[%row_at] : !row_ring
        %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor

        %last_box = arith.subi %all_boxes, %c1 : index
        %last_box_i32 = arith.index_cast %last_box : index to i32
        %last_boxes = tile.splat %last_box_i32 : i32 -> !boxes
        %last_at = scf.for %s = %c0 to %steps step %c1 iter_args(%box_at = %first_box_at) -> (!cursor) {
          %first_box = arith.muli %s, %boxes : index
          %rows = tile.list_boxes %list[%first_box] count %count block %mask_block_kv box %key_box limit %kv_len
              : !tile.view<1 x i32> -> !boxes
          %first_box_i32 = arith.index_cast %first_box : index to i32
          %first_boxes = tile.splat %first_box_i32 : i32 -> !boxes
          %wanted_boxes = arith.addi %first_boxes, %numbers : !boxes
          %there = arith.minsi %wanted_boxes, %last_boxes : !boxes
          %places = arith.muli %there, %elements : !boxes
          %box_rows, %box_places = tile.ring_acquire %box_ring[%box_at] : !box_ring -> !box_note, !box_note
          tile.store_shared %rows, %box_rows : !boxes, !box_note
          tile.store_shared %places, %box_places : !boxes, !box_note
          tile.ring_commit %box_ring[%box_at] : !box_ring
          %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
          scf.yield %box_next : !cursor
        }
        scf.yield %row_next, %last_at : !cursor, !cursor
      } else {
        scf.yield %row_at, %first_box_at : !cursor, !cursor
      }
      // Rows have unequal lists, so whoever is done takes the next.
      %next = tile.next_program %program counted by %tickets : !tile.global<1 x i32> -> index
      scf.yield %next, %row_after, %box_after : index, !cursor, !cursor
    }

    // No more rows.
    %minus_one = arith.constant -1 : i32
    %end_note = tile.ring_acquire %row_ring[%last#1] : !row_ring -> !row_note
    tile.store_note (%minus_one, %c0_i32, %c0_i32, %c0_i32, %c0_i32), %end_note : !row_note
    tile.ring_commit %row_ring[%last#1] : !row_ring
  }

  // ---- loader ------------------------------------------------------------------
  tile.role "loader" warps 1 registers dqk_producer_registers {
    %q_heads = tile.dim %d_q, 1 : !tile.global<4 x !elem>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    tile.launch_wait
    %ends:3 = scf.while (%row_at = %start, %first_box_at = %start, %first_tile_at = %start)
        : (!cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor) {
      %row_note = tile.ring_wait %row_ring[%row_at] : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32, %kept_block_i32 = tile.load_note %row_note
          : !row_note -> i32, i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %kept_block = arith.index_cast %kept_block_i32 : i32 to index
      %kv_head = arith.divui %head, %heads_per_kv : index
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %kept_row = tile.slice %kept[%c0, %kept_block] : !tile.global<3 x !elem> -> !tile.view<1 x !elem>
      %box_after, %tile_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %tile_at = %first_tile_at) -> (!cursor, !cursor) {
        %box_rows, %box_places = tile.ring_wait %box_ring[%box_at] : !box_ring -> !box_note, !box_note
        %rows = tile.load_shared %box_rows : !box_note -> !boxes
        %places = tile.load_shared %box_places : !box_note -> !boxes
        tile.ring_release %box_ring[%box_at] : !box_ring
        %box_next = tile.ring_next %box_ring[%box_at] : !box_ring -> !cursor
        %stack_slot, %k_slot = tile.ring_acquire %tile_ring[%tile_at] : !tile_ring -> !stack_slot, !k_slot
        tile.ring_commit %tile_ring[%tile_at] loads(%stack_slot, %k_slot : !stack_slot, !k_slot) : !tile_ring
        tile.gather_runs %kept_row from %places into %stack_slot : !tile.view<1 x !elem>, !boxes, !stack_slot
        tile.gather_async %k_map[%batch, %kv_head] rows %rows into %k_slot
            : !tile.tensor_map<4, !k_box>, !boxes, !k_slot
        %tile_next = tile.ring_next %tile_ring[%tile_at] : !tile_ring -> !cursor
        scf.yield %box_next, %tile_next : !cursor, !cursor
      }
      scf.condition(%more) %row_next, %box_after, %tile_after : !cursor, !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %box_at: !cursor, %tile_at: !cursor):
      scf.yield %row_at, %box_at, %tile_at : !cursor, !cursor, !cursor
    }
  }

  // ---- consumers -----------------------------------------------------------------
  tile.role "consumers" warps dqk_warps registers dqk_consumer_registers {
    %output_scales = tile.splat %softmax_scale : f32 -> !output
    %no_output = tile.splat %f0 : f32 -> !output

    %ends:2 = scf.while (%row_at = %start, %first_tile_at = %start) : (!cursor, !cursor) -> (!cursor, !cursor) {
      %end_note = tile.ring_wait %row_ring[%row_at] station 2 : !row_ring -> !row_note
      %end_steps, %end_batch, %end_head, %end_row, %end_block = tile.load_note %end_note
          : !row_note -> i32, i32, i32, i32, i32
      %more = arith.cmpi sge, %end_steps, %c0_i32 : i32
      scf.condition(%more) %row_at, %first_tile_at : !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %first_tile_at: !cursor):
      %row_note = tile.ring_pieces %row_ring[%row_at] : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32, %kept_block_i32 = tile.load_note %row_note
          : !row_note -> i32, i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 2 : !row_ring
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %first_row = arith.index_cast %first_row_i32 : i32 to index
      // The other warpgroup has products where this one waits, and memory is slower.
      %sum, %tile_after = scf.for %step = %c0 to %steps step %c1
          iter_args(%old = %no_output, %tile_at = %first_tile_at) -> (!output, !cursor) {
        %stack_slot, %k_slot = tile.ring_wait %tile_ring[%tile_at] : !tile_ring -> !stack_slot, !k_slot
        %adding = tile.dot_async %stack_slot stacked, %k_slot onto %old : !output
            : !stack_slot, !k_slot -> !tile.pending<!output>
        %added = tile.dot_wait 0 (%adding : !tile.pending<!output>) -> !output
        tile.ring_release %tile_ring[%tile_at] : !tile_ring
        %tile_next = tile.ring_next %tile_ring[%tile_at] : !tile_ring -> !cursor
        scf.yield %added, %tile_next : !output, !cursor
      }
      %scaled = arith.mulf %sum, %output_scales : !output
      %dq_tile = tile.convert %scaled : !output -> !output_elem
      %dq_view = tile.slice %d_q[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
      tile.store %dq_tile, %dq_view[%first_row, %c0] : !output_elem, !tile.view<2 x !elem>
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      scf.yield %row_next, %tile_after : !cursor, !cursor
    }
  }
}

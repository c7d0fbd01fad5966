// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_q for Hopper: the gradient of block-sparse attention in q.
//
//   dq[i] = softmax_scale sum_j ds[i, j] k[j]
//   ds[i, j] = p[i, j] (dp[i, j] - delta[i]),  dp = do vᵀ
//   p[i, j] = exp(s[i, j] - lse[i]),           s = softmax_scale q kᵀ
//
// over the keys j that query i sees (FlashAttention-2, arXiv 2307.08691, section
// 2.3.2). A row without keys (lse = -inf) gives 0. delta[i] = sum_d o[i, d] do[i, d] -
// dlse[i] is what attention_bwd_delta.mlir has written; with forms_delta it is formed
// here, for attention_bwd_kv.mlir too, in the time that products leave.
//
// CTAs, key tiles and their flags are those of attention_fwd.mlir: a CTA works on
// one tile of query rows ("row" below) after the other, a key tile is gathered
// from listed mask blocks. Roles:
//
//   scout      reads counts and lists, several key tiles ahead of the loads
//   sums, more sums
//              form delta of the rows to come and write it, half of a tile each
//   loader     starts the copies of q, do, k and v
//   consumers  compute; 64 query rows a warpgroup
//
// Rings (stations in brackets; slots in shared memory):
//
//   rows   scout [0] -> sums [1] -> more sums [2] -> loader [3]: what a row is: steps (-1: no more
//          rows), batch, head, first query row
//   deltas sums [0] -> more sums [1] -> consumers [2]: that a row's delta has been written
//   boxes  scout [0] -> loader [1]: first key rows of a tile's boxes, and flags
//   q, do  loader [0] -> consumers [1]: a row's tiles (q with what the row is)
//   k      loader [0] -> consumers [1]: a key tile with its boxes and flags
//   v      loader [0] -> consumers [1]: a value tile
//   out    the consumers' own: with dq_out_apart, dq on its way to memory
//
// A key tile is used twice, for the scores and one step later, when its ds is
// there, for dq: ds(i - 1) k(i - 1) and q k(i)ᵀ are issued together, also over the
// end of a row, whose dq is stored while the next row's first scores run.
// Warpgroups take turns in issuing, so that one's dots run under the other's
// exponentials; where products are short, not in a row's first step.
//
// Whoever reads delta of this launch may run beside its last rows: progress[0] counts
// the query rows whose delta is there.
//
// With has_places only row blocks without a place are worked on (row_places below 0);
// the others' dq is what attention_bwd_q_kept.mlir has written.
//
// Flag: 1: some scores must be masked.
//
// Shared memory at head_dim = 128, 16-bit elements: q 32 KiB, do 32 KiB, k 3 x 32
// KiB, v 2 x 32 KiB.
//
// Parameters that follow from others: dq_key_box = gcd(dq_tile_kv, mask_block_kv),
// the rows that one copy moves (dq_tile_kv without lists); dq_boxes = dq_tile_kv /
// dq_key_box; dq_warps = dq_tile_q / 16; dq_out_apart where the rings leave dq a slot of
// its own.

!elem = !tile.element<"elem">
!q_slot = !tile.shared<dq_tile_q x head_dim x !elem, swizzle swizzle_bytes>
!kv_slot = !tile.shared<dq_tile_kv x head_dim x !elem, swizzle swizzle_bytes>
!kv_box = !tile.shared<dq_key_box x head_dim x !elem, swizzle swizzle_bytes>
!out_box = !tile.shared<16 x head_dim x !elem, swizzle swizzle_bytes>
!row_note = !tile.shared<4 x i32>
!box_note = !tile.shared<dq_boxes x i32>
!flag_note = !tile.shared<1 x i32>

!row_ring = !tile.ring<!row_note>
!delta_ring = !tile.ring<!flag_note>
!box_ring = !tile.ring<!box_note, !flag_note>
!q_ring = !tile.ring<!q_slot, !row_note>
!do_ring = !tile.ring<!q_slot>
!out_ring = !tile.ring<!q_slot>
!k_ring = !tile.ring<!kv_slot, !box_note, !flag_note>
!v_ring = !tile.ring<!kv_slot>
!cursor = !tile.cursor

!box_rows = tensor<?xi32, #tile.sizes<dq_boxes>>
!box_mask = tensor<?xi1, #tile.sizes<dq_boxes>>
!scores = tensor<?x?xf32, #tile.sizes<dq_tile_q, dq_tile_kv>>
!weights = tensor<?x?x!elem, #tile.sizes<dq_tile_q, dq_tile_kv>>
!positions = tensor<?x?xi32, #tile.sizes<dq_tile_q, dq_tile_kv>>
!output = tensor<?x?xf32, #tile.sizes<dq_tile_q, head_dim>>
!output_elem = tensor<?x?x!elem, #tile.sizes<dq_tile_q, head_dim>>
!rows = tensor<?xf32, #tile.sizes<dq_tile_q>>
!row_mask = tensor<?xi1, #tile.sizes<dq_tile_q>>
!row_numbers = tensor<?xi32, #tile.sizes<dq_tile_q>>
!score_mask = tensor<?x?xi1, #tile.sizes<dq_tile_q, dq_tile_kv>>
!key_numbers = tensor<?xi32, #tile.sizes<dq_tile_kv>>

tile.kernel @attention_bwd_q(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                             %v: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                             %indices: !tile.global<4 x i32>, %counts: !tile.global<3 x i32>,
                             %lse: !tile.global<3 x f32>, %o: !tile.global<4 x !elem>,
                             %d_lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>,
                             %d_q: !tile.global<4 x !elem>,
                             %row_places: !tile.global<3 x i32>, %unkept: !tile.global<3 x i32>,
                             %tickets: !tile.global<1 x i32>, %progress: !tile.global<1 x i32>,
                             %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, has_places, forms_delta, dq_tile_q,
                dq_tile_kv, dq_key_box, dq_boxes, swizzle_bytes, dq_q_stages, dq_k_stages, dq_v_stages,
                dq_out_apart, dq_warps, dq_producer_registers, dq_consumer_registers]
    grid %q by dq_tile_q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %f0 = arith.constant 0.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %nowhere = arith.constant 1073741824 : index
  %masked_bit = arith.constant 1 : i32
  %log2_e = arith.constant 1.44269504 : f32
  %tile_q = tile.parameter "dq_tile_q" : index
  %tile_kv = tile.parameter "dq_tile_kv" : index
  %key_box = tile.parameter "dq_key_box" : index
  %boxes = tile.parameter "dq_boxes" : index
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1
  %is_rest = tile.parameter "has_places" : i1
  %forms_delta = tile.parameter "forms_delta" : i1
  %apart = tile.parameter "dq_out_apart" : i1
  %true_always = arith.constant true
  %has_delta = arith.xori %forms_delta, %true_always : i1
  %head_dim = tile.parameter "head_dim" : index
  %c64 = arith.constant 64 : index
  %is_long = arith.cmpi ugt, %head_dim, %c64 : index

  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  // Query row i sees the keys up to i + shift.
  %shift = arith.subi %kv_len, %q_len : index

  // What the TMA copies, in which boxes.
  %q_map = tile.tensor_map %q : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>
  %k_map = tile.tensor_map %k : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_box>
  %v_map = tile.tensor_map %v : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_box>
  %do_map = tile.tensor_map %d_o : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>
  %dq_map = tile.tensor_map %d_q : !tile.global<4 x !elem> -> !tile.tensor_map<4, !out_box>

  // Each ring's barriers: a slot is full when station 0 has arrived (one thread,
  // with the bytes of its copies), and passed on when the warps named have.
  %row_ring = tile.ring stages 4 passed_by [1, 1, 1] : !row_ring
  // As many as of q, whose place serves for it.
  %delta_ring = tile.ring stages dq_q_stages passed_by [1, dq_warps] : !delta_ring
  %box_ring = tile.ring stages 8 passed_by [1] : !box_ring
  %q_ring = tile.ring stages dq_q_stages passed_by [dq_warps] : !q_ring
  %do_ring = tile.ring stages dq_q_stages passed_by [dq_warps] : !do_ring
  %k_ring = tile.ring stages dq_k_stages passed_by [dq_warps] : !k_ring
  %v_ring = tile.ring stages dq_v_stages passed_by [dq_warps] : !v_ring
  %out_ring = tile.ring stages 1 passed_by [dq_warps] : !out_ring
  %start = tile.ring_start : !cursor

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers dq_producer_registers {
    // delta, or what is kept, is what a launch before this one computes. What comes
    // next reads that and nothing of this one, and takes over multiprocessors that
    // have no row left.
    scf.if %has_delta {
      tile.launch_wait
      tile.launch_next
    }
    %first_program, %end, %step = tile.programs : index, index, index
    // Most often there is no rest.
    %first = scf.if %is_rest -> (index) {
      %q_batches = tile.dim %q, 0 : !tile.global<4 x !elem>
      %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
      %c32 = arith.constant 32 : index
      %zeros = tile.splat %c0_i32 : i32 -> tensor<32xi32>
      %none = arith.constant false
      %has_rest = scf.for %b = %c0 to %q_batches step %c1 iter_args(%before_batch = %none) -> (i1) {
        %unkept_heads = tile.slice %unkept[%b, %c0] : !tile.global<3 x i32> -> !tile.view<1 x i32>
        %after_batch = scf.for %h = %c0 to %q_heads step %c32 iter_args(%before_heads = %before_batch) -> (i1) {
          %rows_of_heads = tile.load_values %unkept_heads[%h] otherwise %c0_i32
              : !tile.view<1 x i32>, i32 -> tensor<32xi32>
          %is_unkept = arith.cmpi sgt, %rows_of_heads, %zeros : tensor<32xi32>
          %any_unkept = tile.any %is_unkept : tensor<32xi1>
          %after_heads = arith.ori %before_heads, %any_unkept : i1
          scf.yield %after_heads : i1
        }
        scf.yield %after_batch : i1
      }
      %first_of_rest = arith.select %has_rest, %first_program, %end : index
      scf.yield %first_of_rest : index
    } else {
      scf.yield %first_program : index
    }
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
      %mask_row = arith.divui %first_row, %mask_block_q : index
      %is_own = scf.if %is_rest -> (i1) {
        %rows_first = tile.slice %row_places[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
        %row_first_i32 = tile.load_scalar %rows_first[%mask_row] : !tile.view<1 x i32> -> i32
        %has_no_place = arith.cmpi slt, %row_first_i32, %c0_i32 : i32
        scf.yield %has_no_place : i1
      } else {
        %true = arith.constant true
        scf.yield %true : i1
      }
      %row_after, %box_after = scf.if %is_own -> (!cursor, !cursor) {
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
        %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor

        // Boxes that reach beyond what the first query sees hold scores to mask.
        %first_end_i32 = arith.index_cast %first_end : index to i32
        %first_ends = tile.splat %first_end_i32 : i32 -> !box_rows
        %boxes_after = scf.for %s = %c0 to %steps step %c1 iter_args(%box_at = %first_box_at) -> (!cursor) {
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
        scf.yield %row_next, %boxes_after : !cursor, !cursor
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
    tile.store_note (%minus_one, %c0_i32, %c0_i32, %c0_i32), %end_note : !row_note
    tile.ring_commit %row_ring[%last#1] : !row_ring
  }

  // ---- sums ----------------------------------------------------------------------
  tile.role "sums" warps 1 registers dq_producer_registers {
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %half = arith.divui %tile_q, %c2 : index
    %numbers = tile.iota : tensor<32xi32>
    %all = tile.splat %true_always : i1 -> tensor<32xi1>
    %has_d_lse = tile.is_present %d_lse : !tile.global<3 x f32>
    %ends:2 = scf.while (%row_at = %start, %delta_at = %start) : (!cursor, !cursor) -> (!cursor, !cursor) {
      %row_note = tile.ring_wait %row_ring[%row_at] : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %forms = arith.andi %more, %forms_delta : i1
      scf.if %forms {
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %first_row = arith.index_cast %first_row_i32 : i32 to index
        %end_row = arith.addi %first_row, %half : index
        %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
        %do_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
        %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        // One after the other, in few registers, reads would wait for memory.
        tile.prefetch_rows %o_view[%first_row] rows dq_tile_q columns head_dim : !tile.view<2 x !elem>
        scf.for %first = %first_row to %end_row step %c32 {
          %products = tile.row_dots %o_view, %do_view[%first] columns head_dim
              : !tile.view<2 x !elem>, !tile.view<2 x !elem> -> tensor<32xf32>
          %value = scf.if %has_d_lse -> (tensor<32xf32>) {
            %d_lse_view = tile.slice %d_lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
            %d_lse_rows = tile.load_values %d_lse_view[%first] otherwise %f0
                : !tile.view<1 x f32>, f32 -> tensor<32xf32>
            %difference = arith.subf %products, %d_lse_rows : tensor<32xf32>
            scf.yield %difference : tensor<32xf32>
          } else {
            scf.yield %products : tensor<32xf32>
          }
          %first_i32 = arith.index_cast %first : index to i32
          %firsts = tile.splat %first_i32 : i32 -> tensor<32xi32>
          %places = arith.addi %firsts, %numbers : tensor<32xi32>
          tile.scatter %value at %places where %all into %delta_view
              : tensor<32xf32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x f32>
        }
        %delta_note = tile.ring_acquire %delta_ring[%delta_at] : !delta_ring -> !flag_note
        tile.store_note (%c0_i32), %delta_note : !flag_note
        tile.ring_commit %delta_ring[%delta_at] : !delta_ring
        %last_row = arith.minsi %end_row, %q_len : index
        %last_after = arith.maxsi %last_row, %first_row : index
        %rows_done = arith.subi %last_after, %first_row : index
        tile.signal %progress[%c0] by %rows_done : !tile.global<1 x i32>
      }
      %delta_next = tile.ring_next %delta_ring[%delta_at] : !delta_ring -> !cursor
      scf.condition(%more) %row_next, %delta_next : !cursor, !cursor
    } do {
    ^row(%row_at: !cursor, %delta_at: !cursor):
      scf.yield %row_at, %delta_at : !cursor, !cursor
    }
  }

  // ---- more sums: of a tile's other rows --------------------------------------------
  tile.role "more_sums" warps 1 registers dq_producer_registers {
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %half = arith.divui %tile_q, %c2 : index
    %numbers = tile.iota : tensor<32xi32>
    %all = tile.splat %true_always : i1 -> tensor<32xi1>
    %has_d_lse = tile.is_present %d_lse : !tile.global<3 x f32>
    %ends:3 = scf.while (%row_at = %start, %delta_at = %start, %is_first = %true_always)
        : (!cursor, !cursor, i1) -> (!cursor, !cursor, i1) {
      %row_note = tile.ring_wait %row_ring[%row_at] station 2 : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 2 : !row_ring
      %row_next = tile.ring_next %row_ring[%row_at] : !row_ring -> !cursor
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %forms = arith.andi %more, %forms_delta : i1
      scf.if %forms {
        %batch = arith.index_cast %batch_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %tile_row = arith.index_cast %first_row_i32 : i32 to index
        %first_row = arith.addi %tile_row, %half : index
        %end_row = arith.addi %first_row, %half : index
        %o_view = tile.slice %o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
        %do_view = tile.slice %d_o[%batch, %head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
        %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        tile.prefetch_rows %do_view[%tile_row] rows dq_tile_q columns head_dim : !tile.view<2 x !elem>
        scf.for %first = %first_row to %end_row step %c32 {
          %products = tile.row_dots %o_view, %do_view[%first] columns head_dim
              : !tile.view<2 x !elem>, !tile.view<2 x !elem> -> tensor<32xf32>
          %value = scf.if %has_d_lse -> (tensor<32xf32>) {
            %d_lse_view = tile.slice %d_lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
            %d_lse_rows = tile.load_values %d_lse_view[%first] otherwise %f0
                : !tile.view<1 x f32>, f32 -> tensor<32xf32>
            %difference = arith.subf %products, %d_lse_rows : tensor<32xf32>
            scf.yield %difference : tensor<32xf32>
          } else {
            scf.yield %products : tensor<32xf32>
          }
          %first_i32 = arith.index_cast %first : index to i32
          %firsts = tile.splat %first_i32 : i32 -> tensor<32xi32>
          %places = arith.addi %firsts, %numbers : tensor<32xi32>
          tile.scatter %value at %places where %all into %delta_view
              : tensor<32xf32>, tensor<32xi32>, tensor<32xi1>, !tile.view<1 x f32>
        }
        %delta_note = tile.ring_wait %delta_ring[%delta_at] : !delta_ring -> !flag_note
        tile.ring_release %delta_ring[%delta_at] : !delta_ring
        %last_row = arith.minsi %end_row, %q_len : index
        %last_after = arith.maxsi %last_row, %first_row : index
        %rows_done = arith.subi %last_after, %first_row : index
        tile.signal %progress[%c0] by %rows_done : !tile.global<1 x i32>
      }
      // With forms_delta nothing here is what the launch before makes, which inverts
      // lists for the next one. That waits for delta by itself.
      %lets_next = arith.andi %is_first, %forms_delta : i1
      scf.if %lets_next {
        tile.launch_wait
        tile.launch_next
      }
      %delta_next = tile.ring_next %delta_ring[%delta_at] : !delta_ring -> !cursor
      %false = arith.constant false
      scf.condition(%more) %row_next, %delta_next, %false : !cursor, !cursor, i1
    } do {
    ^row(%row_at: !cursor, %delta_at: !cursor, %is_first: i1):
      scf.yield %row_at, %delta_at, %is_first : !cursor, !cursor, i1
    }
  }

  // ---- loader ------------------------------------------------------------------
  tile.role "loader" warps 1 registers dq_producer_registers {
    %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
    %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
    %heads_per_kv = arith.divui %q_heads, %kv_heads : index
    %ends:5 = scf.while (%row_at = %start, %first_box_at = %start, %q_at = %start, %first_k_at = %start,
                         %first_v_at = %start)
        : (!cursor, !cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor, !cursor) {
      %row_note = tile.ring_wait %row_ring[%row_at] station 3 : !row_ring -> !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %row_note : !row_note -> i32, i32, i32, i32
      tile.ring_release %row_ring[%row_at] station 3 : !row_ring
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

      // k comes before do, which the first scores do not need.
      %box_after, %k_after, %v_after = scf.for %s = %c0 to %steps step %c1
          iter_args(%box_at = %first_box_at, %k_at = %first_k_at, %v_at = %first_v_at)
          -> (!cursor, !cursor, !cursor) {
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

        %is_first = arith.cmpi eq, %s, %c0 : index
        scf.if %is_first {
          %do_slot = tile.ring_acquire %do_ring[%q_at] : !do_ring -> !q_slot
          tile.ring_commit %do_ring[%q_at] loads(%do_slot : !q_slot) : !do_ring
          tile.load_async %do_map[%batch, %head, %first_row] into %do_slot : !tile.tensor_map<4, !q_slot>, !q_slot
        }

        %v_slot = tile.ring_acquire %v_ring[%v_at] : !v_ring -> !kv_slot
        tile.ring_commit %v_ring[%v_at] loads(%v_slot : !kv_slot) : !v_ring
        tile.gather_async %v_map[%batch, %kv_head] rows %boxes_here into %v_slot
            : !tile.tensor_map<4, !kv_box>, !box_rows, !kv_slot
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

  // ---- consumers -----------------------------------------------------------------
  tile.role "consumers" warps dq_warps registers dq_consumer_registers {
    // Exponents in base 2: p = 2^(scale s - log2(e) lse).
    %scale = arith.mulf %softmax_scale, %log2_e : f32
    %minus_log2_e = arith.negf %log2_e : f32
    %scales = tile.splat %scale : f32 -> !scores
    %minus_log2_es = tile.splat %minus_log2_e : f32 -> !rows
    %output_scales = tile.splat %softmax_scale : f32 -> !output
    %hidden = tile.splat %minus_inf : f32 -> !scores
    %no_keys = tile.splat %minus_inf : f32 -> !rows
    %no_output = tile.splat %f0 : f32 -> !output
    %out_slot = tile.ring_pieces %out_ring[%start] : !out_ring -> !q_slot
    %kv_len_i32 = arith.index_cast %kv_len : index to i32
    %shift_i32 = arith.index_cast %shift : index to i32

    %no_scores = tile.splat %f0 : f32 -> !scores
    %no_ds = tile.convert %no_scores : !scores -> !weights

    // A turn of this loop is a row, whose first step issues the last product of the
    // row before ("done"), so that the tensor core has no pause between rows. Before
    // the first row, and where no row follows, products of whatever lies in the slots
    // are not used.
    %ends:9 = scf.while (%q_at = %start, %first_k_at = %start, %first_v_at = %start, %done_k_at = %start,
                         %done_batch = %c0, %done_head = %c0, %done_row = %q_len,
                         %done_output = %no_output, %done_ds = %no_ds)
        : (!cursor, !cursor, !cursor, !cursor, index, index, index, !output, !weights)
        -> (!cursor, !cursor, !cursor, !cursor, index, index, index, !output, !weights) {
      %is_open = arith.cmpi slt, %done_row, %q_len : index

      // Issue: dq of the tile before, the first scores, dp.
      %done_k_slot, %done_k_boxes, %done_k_flags = tile.ring_pieces %k_ring[%done_k_at]
          : !k_ring -> !kv_slot, !box_note, !flag_note
      scf.if %is_long {
        tile.take_turn
      }
      %adding_0 = tile.dot_async %done_ds, %done_k_slot onto %done_output : !output
          : !weights, !kv_slot -> !tile.pending<!output>
      %q_slot, %q_note = tile.ring_wait %q_ring[%q_at] : !q_ring -> !q_slot, !row_note
      %steps_i32, %batch_i32, %head_i32, %first_row_i32 = tile.load_note %q_note : !row_note -> i32, i32, i32, i32
      %more = arith.cmpi sge, %steps_i32, %c0_i32 : i32
      %steps = arith.index_cast %steps_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %head = arith.index_cast %head_i32 : i32 to index
      %first_row = arith.index_cast %first_row_i32 : i32 to index
      // Statistics, read while products run: lse here, delta when it is there.
      %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
      %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
      %row_lse = tile.load_values %lse_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
      scf.if %more {
        %k_slot_here, %k_boxes_here, %k_flags_here = tile.ring_wait %k_ring[%first_k_at]
            : !k_ring -> !kv_slot, !box_note, !flag_note
      }
      %k_slot_0, %k_boxes_0, %k_flags_0 = tile.ring_pieces %k_ring[%first_k_at]
          : !k_ring -> !kv_slot, !box_note, !flag_note
      %products_0 = tile.dot_async %q_slot, %k_slot_0 transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
      %sum, %done_ds_used = tile.dot_wait 1 (%adding_0, %done_ds : !tile.pending<!output>, !weights)
          -> !output, !weights

      // The row before is complete. It is stored before dp is issued, behind which the
      // exponentials would wait for it.
      scf.if %is_open {
        tile.ring_release %k_ring[%done_k_at] : !k_ring
        %scaled = arith.mulf %sum, %output_scales : !output
        %dq_tile = tile.convert %scaled : !output -> !output_elem
        scf.if %apart {
          tile.store_slabs %dq_tile through %out_slot, %dq_map[%done_batch, %done_head, %done_row, %c0] rows dq_tile_q
              : !output_elem, !q_slot, !tile.tensor_map<4, !out_box>
        } else {
          %dq_view = tile.slice %d_q[%done_batch, %done_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
          tile.store %dq_tile, %dq_view[%done_row, %c0] {tile.exchanged} : !output_elem, !tile.view<2 x !elem>
        }
      }
      scf.if %more {
        %do_slot_here = tile.ring_wait %do_ring[%q_at] : !do_ring -> !q_slot
        %v_slot_here = tile.ring_wait %v_ring[%first_v_at] : !v_ring -> !kv_slot
      }
      %do_slot = tile.ring_pieces %do_ring[%q_at] : !do_ring -> !q_slot
      %v_slot_0 = tile.ring_pieces %v_ring[%first_v_at] : !v_ring -> !kv_slot
      %slopes_0 = tile.dot_async %do_slot, %v_slot_0 transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
      scf.if %is_long {
        tile.pass_turn
      }

      %k_after, %v_after, %row_k_at, %row_output, %row_ds = scf.if %more
          -> (!cursor, !cursor, !cursor, !output, !weights) {
        // Row i sees the keys before row_ends[i].
        %first_limit = arith.addi %first_row_i32, %shift_i32 : i32
        %first_end = arith.addi %first_limit, %c1_i32 : i32
        %first_ends = tile.splat %first_end : i32 -> !row_numbers
        %kv_ends = tile.splat %kv_len_i32 : i32 -> !row_numbers
        %row_numbers = tile.iota : !row_numbers
        %causal_ends = arith.addi %first_ends, %row_numbers : !row_numbers
        %clipped_ends = arith.minsi %causal_ends, %kv_ends : !row_numbers
        %row_ends = arith.select %causal, %clipped_ends, %kv_ends : !row_numbers

        scf.if %forms_delta {
          %delta_note = tile.ring_wait %delta_ring[%q_at] station 2 : !delta_ring -> !flag_note
        }
        %row_delta = tile.load_values %delta_view[%first_row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
        scf.if %forms_delta {
          tile.ring_release %delta_ring[%q_at] station 2 : !delta_ring
        }
        // A row without keys has p = 2^(.. - inf) = 0; rows beyond the end are zeros
        // throughout.
        %unseen = arith.cmpf oeq, %row_lse, %no_keys : !rows
        %lse_log2 = arith.mulf %row_lse, %minus_log2_es : !rows
        %row_offset = arith.select %unseen, %no_keys, %lse_log2 : !row_mask, !rows
        %offsets = tile.expand %row_offset axis 1 : !rows -> !scores
        %deltas = tile.expand %row_delta axis 1 : !rows -> !scores

        %s_0 = tile.dot_wait 1 (%products_0 : !tile.pending<!scores>) -> !scores
        %is_only = arith.cmpi eq, %steps, %c1 : index
        scf.if %is_only {
          tile.ring_release %q_ring[%q_at] : !q_ring
        }
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
        %exponents_0 = math.fma %visible_0, %scales, %offsets : !scores
        %p_0 = math.exp2 %exponents_0 : !scores
        %dp_0, %p_held_0 = tile.dot_wait 0 (%slopes_0, %p_0 : !tile.pending<!scores>, !scores) -> !scores, !scores
        tile.ring_release %v_ring[%first_v_at] : !v_ring
        %distance_0 = arith.subf %dp_0, %deltas : !scores
        %ds_f32_0 = arith.mulf %p_held_0, %distance_0 : !scores
        %ds_0 = tile.convert %ds_f32_0 : !scores -> !weights
        %k_at_0 = tile.ring_next %k_ring[%first_k_at] : !k_ring -> !cursor
        %v_at_0 = tile.ring_next %v_ring[%first_v_at] : !v_ring -> !cursor

        %new_output, %new_ds, %new_k_at, %k_last, %v_last = scf.for %step = %c1 to %steps step %c1
            iter_args(%old_output = %no_output, %old_ds = %ds_0, %old_k_at = %first_k_at, %k_at = %k_at_0,
                      %v_at = %v_at_0) -> (!output, !weights, !cursor, !cursor, !cursor) {
          // Issue: dq of the tile before, scores of this one; dp when dq has landed,
          // which bounds the registers in use.
          %k_slot, %k_boxes, %k_flags = tile.ring_wait %k_ring[%k_at] : !k_ring -> !kv_slot, !box_note, !flag_note
          %old_k_slot, %old_k_boxes, %old_k_flags = tile.ring_pieces %k_ring[%old_k_at]
              : !k_ring -> !kv_slot, !box_note, !flag_note
          tile.take_turn
          %adding = tile.dot_async %old_ds, %old_k_slot onto %old_output : !output
              : !weights, !kv_slot -> !tile.pending<!output>
          %products = tile.dot_async %q_slot, %k_slot transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
          %added, %ds_used = tile.dot_wait 1 (%adding, %old_ds : !tile.pending<!output>, !weights) -> !output, !weights
          tile.ring_release %k_ring[%old_k_at] : !k_ring
          %v_slot = tile.ring_wait %v_ring[%v_at] : !v_ring -> !kv_slot
          %slopes = tile.dot_async %do_slot, %v_slot transposed : !q_slot, !kv_slot -> !tile.pending<!scores>
          tile.pass_turn

          %s = tile.dot_wait 1 (%products : !tile.pending<!scores>) -> !scores
          // The next row's q can come.
          %step_after = arith.addi %step, %c1 : index
          %is_last = arith.cmpi eq, %step_after, %steps : index
          scf.if %is_last {
            tile.ring_release %q_ring[%q_at] : !q_ring
          }
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
          %exponents = math.fma %visible, %scales, %offsets : !scores
          %p = math.exp2 %exponents : !scores
          // The assembler would move the exponentials behind the wait for dp; they stay
          // before a wait for a barrier, here one that has come. Short products end
          // sooner than that pays.
          scf.if %is_long {
            %v_slot_again = tile.ring_wait %v_ring[%v_at] : !v_ring -> !kv_slot
          }
          %dp, %p_held = tile.dot_wait 0 (%slopes, %p : !tile.pending<!scores>, !scores) -> !scores, !scores
          tile.ring_release %v_ring[%v_at] : !v_ring
          %distance = arith.subf %dp, %deltas : !scores
          %ds_f32 = arith.mulf %p_held, %distance : !scores
          %ds = tile.convert %ds_f32 : !scores -> !weights
          %k_next = tile.ring_next %k_ring[%k_at] : !k_ring -> !cursor
          %v_next = tile.ring_next %v_ring[%v_at] : !v_ring -> !cursor
          scf.yield %added, %ds, %k_at, %k_next, %v_next : !output, !weights, !cursor, !cursor, !cursor
        }
        // The row's own tiles have been read; the next row's can come.
        tile.ring_release %do_ring[%q_at] : !do_ring
        scf.yield %k_last, %v_last, %new_k_at, %new_output, %new_ds : !cursor, !cursor, !cursor, !output, !weights
      } else {
        %s_unused, %dp_unused = tile.dot_wait 0
            (%products_0, %slopes_0 : !tile.pending<!scores>, !tile.pending<!scores>) -> !scores, !scores
        // The end has been seen.
        tile.ring_release %q_ring[%q_at] : !q_ring
        scf.yield %first_k_at, %first_v_at, %first_k_at, %no_output, %no_ds
            : !cursor, !cursor, !cursor, !output, !weights
      }
      %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor
      scf.condition(%more) %q_next, %k_after, %v_after, %row_k_at, %batch, %head, %first_row,
                           %row_output, %row_ds
          : !cursor, !cursor, !cursor, !cursor, index, index, index, !output, !weights
    } do {
    ^row(%q_at: !cursor, %k_at: !cursor, %v_at: !cursor, %done_k_at: !cursor, %done_batch: index,
         %done_head: index, %done_row: index, %done_output: !output, %done_ds: !weights):
      scf.yield %q_at, %k_at, %v_at, %done_k_at, %done_batch, %done_head, %done_row, %done_output, %done_ds
          : !cursor, !cursor, !cursor, !cursor, index, index, index, !output, !weights
    }
    scf.if %apart {
      tile.store_stacked_wait
    }
  }
}

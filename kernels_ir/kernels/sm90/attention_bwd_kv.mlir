// SPDX-License-Identifier: Apache-2.0
//
// attention_bwd_kv for Hopper: the gradients of block-sparse attention in k and v.
//
//   dv[j] = sum_i p[i, j] do[i]
//   dk[j] = softmax_scale sum_i ds[i, j] q[i]
//   ds[i, j] = p[i, j] (dp[i, j] - delta[i]),  dp = do vᵀ
//   p[i, j] = exp(s[i, j] - lse[i]),           s = softmax_scale q kᵀ
//
// over the queries i of the kv head's group that see key j (FlashAttention-2,
// arXiv 2307.08691, section 2.3.2; delta from attention_bwd_delta.mlir). A query
// without keys (lse = -inf) adds 0; a key that nobody sees gets 0.
//
// A CTA works on one tile of keys after the other; two CTAs share a multiprocessor, so
// that one's dots run under the other's exponentials. It goes through the query heads of the
// group and the query blocks that list the key block, always in the same order,
// tile_queries query rows a step; scores are computed transposed, so that p and ds
// are left operands from registers. Where dk and dv of all columns do not fit the
// registers, it goes through the steps once for each part of the columns. Roles:
//
//   scout      reads counts and lists, ahead of the loads
//   loader     starts the copies of k, v, q and do
//   rows       reads the queries' statistics
//   consumers  compute
//
// Rings (stations in brackets; slots in shared memory):
//
//   work   scout [0] -> loader [1] -> consumers [2]: what a tile of keys is: steps (-1:
//          no more tiles), batch, head, first key
//   steps  scout [0] -> loader [1] -> rows [2] -> consumers [3]: first query row, head
//          (-1: no more steps) and batch of a step; flags, and its first kept slab
//          (-1: none)
//   offsets, deltas
//          rows [0] -> consumers [1]: per query row of a step the exponent's
//          offset, -log2(e) lse; and delta, which is needed for longer
//   k, v   loader [0] -> consumers [1]: a tile's keys and values
//   q, do  loader [0] -> consumers [1]: a step's tiles
//   stack  the consumers' own: ds on its way to where it is kept
//   out    the consumers' own: dv and dk on their way to memory; without dkv_out_apart,
//          for which there is one part, dv goes through the tile's slot of v and dk
//          from registers
//
// v do(i)ᵀ and p(i) do(i) are issued together, then, once ds(i) is there, k q(i +
// 1)ᵀ and ds(i) q(i): the exponentials of step i + 1 run under the last, ds(i) under
// p(i) do(i), and nothing is under way where the loop comes round, at the end of the
// exponentials, but what has ended by then.
//
// Flag: 1: some scores must be masked. Keys and queries beyond the end need no
// mask where nothing is kept: the former have rows of their own, which are not
// stored, and the latter p = 2^-inf.
//
// With has_places, ds is also left for attention_bwd_q_kept.mlir, which says where:
// a block of the mask is a stack (TileStacks.td) in kept[…]. Rows of keys beyond
// the end are kept too, and 0.
//
// A q slot is held for a step longer than a do slot, so that it is worth more of
// them. Shared memory at head_dim = 128, 16-bit elements, tile_keys = 64: k and v 2 x
// 16 KiB, q 3 x 16 KiB, do 2 x 16 KiB, which with one slot of row values is all that
// two CTAs can have; where ds is kept, q 2 x 16 KiB and ds 8 KiB. Where a list is for
// 128 keys (or there is none) one CTA of two warpgroups shares q and do; with dkv_turns
// these take turns in issuing dots.
//
// Parameters that follow from others: dkv_keys = min(tile_keys, mask_block_kv), the
// keys of a CTA, since they share a list (tile_keys without lists; the tile's other
// rows are computed and not stored); dkv_columns = dkv_parts * dkv_part_columns >=
// head_dim, where columns beyond head_dim are zeros; dkv_warps = tile_keys / 16;
// dkv_stack_columns = tile_queries tile_keys / 16; dkv_out_apart where the rings leave
// dv and dk a slot of their own.

!elem = !tile.element<"elem">
!q_slot = !tile.shared<tile_queries x dkv_columns x !elem, swizzle dkv_swizzle_bytes>
!q_part = !tile.shared<tile_queries x dkv_part_columns x !elem, swizzle dkv_swizzle_bytes>
!kv_slot = !tile.shared<tile_keys x dkv_columns x !elem, swizzle dkv_swizzle_bytes>
!out_slot = !tile.shared<tile_keys x dkv_part_columns x !elem, swizzle dkv_swizzle_bytes>
!out_box = !tile.shared<16 x dkv_part_columns x !elem, swizzle dkv_swizzle_bytes>
!stack_slot = !tile.shared<16 x dkv_stack_columns x !elem, swizzle 16>
!work_note = !tile.shared<4 x i32>
!place_note = !tile.shared<3 x i32>
!flag_note = !tile.shared<2 x i32>
!row_values = !tile.shared<tile_queries x f32>

!work_ring = !tile.ring<!work_note>
!step_ring = !tile.ring<!place_note, !flag_note>
!row_ring = !tile.ring<!row_values>
!stack_ring = !tile.ring<!stack_slot>
!out_ring = !tile.ring<!out_slot>
!kv_ring = !tile.ring<!kv_slot>
!q_ring = !tile.ring<!q_slot>
!cursor = !tile.cursor

!scores = tensor<?x?xf32, #tile.sizes<tile_keys, tile_queries>>
!weights = tensor<?x?x!elem, #tile.sizes<tile_keys, tile_queries>>
!positions = tensor<?x?xi32, #tile.sizes<tile_keys, tile_queries>>
!score_mask = tensor<?x?xi1, #tile.sizes<tile_keys, tile_queries>>
!output = tensor<?x?xf32, #tile.sizes<tile_keys, dkv_part_columns>>
!output_elem = tensor<?x?x!elem, #tile.sizes<tile_keys, dkv_part_columns>>
!rows = tensor<?xf32, #tile.sizes<tile_queries>>
!row_mask = tensor<?xi1, #tile.sizes<tile_queries>>
!row_numbers = tensor<?xi32, #tile.sizes<tile_queries>>
!key_numbers = tensor<?xi32, #tile.sizes<tile_keys>>
!key_mask = tensor<?xi1, #tile.sizes<tile_keys>>

tile.kernel @attention_bwd_kv(%q: !tile.global<4 x !elem>, %k: !tile.global<4 x !elem>,
                              %v: !tile.global<4 x !elem>, %d_o: !tile.global<4 x !elem>,
                              %key_indices: !tile.global<4 x i32>, %key_counts: !tile.global<3 x i32>,
                              %lse: !tile.global<3 x f32>, %delta: !tile.global<3 x f32>,
                              %d_k: !tile.global<4 x !elem>, %d_v: !tile.global<4 x !elem>,
                              %places: !tile.global<4 x i32>,
                              %kept: !tile.global<3 x !elem>, %key_tickets: !tile.global<1 x i32>,
                              %progress: !tile.global<1 x i32>, %softmax_scale: f32)
    parameters [elem, head_dim, mask_block_q, mask_block_kv, causal, has_lists, has_places, tile_queries, tile_keys,
                dkv_keys, dkv_parts, dkv_part_columns, dkv_columns, dkv_swizzle_bytes, dkv_turns,
                dkv_kv_stages, dkv_q_stages, dkv_do_stages, dkv_row_stages, dkv_out_apart, dkv_stack_columns,
                dkv_warps, dkv_producer_registers, dkv_consumer_registers]
    grid %k by dkv_keys {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i32 = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %nowhere = arith.constant 1073741824 : index
  %nowhere_i32 = arith.constant 1073741824 : i32
  %before_all = arith.constant -1073741824 : index
  %minus_one = arith.constant -1 : index
  %minus_one_i32 = arith.constant -1 : i32
  %c16 = arith.constant 16 : index
  %masked_bit = arith.constant 1 : i32
  %log2_e = arith.constant 1.44269504 : f32
  %tile_queries = tile.parameter "tile_queries" : index
  %tile_keys = tile.parameter "tile_keys" : index
  %dkv_keys = tile.parameter "dkv_keys" : index
  %parts = tile.parameter "dkv_parts" : index
  %part_columns = tile.parameter "dkv_part_columns" : index
  %turns = tile.parameter "dkv_turns" : i1
  %apart = tile.parameter "dkv_out_apart" : i1
  %mask_block_q = tile.parameter "mask_block_q" : index
  %mask_block_kv = tile.parameter "mask_block_kv" : index
  %causal = tile.parameter "causal" : i1
  %has_lists = tile.parameter "has_lists" : i1
  %keeps = tile.parameter "has_places" : i1
  %masks = arith.ori %causal, %keeps : i1
  %always = arith.constant true
  %awaits = arith.xori %keeps, %always : i1
  %head_dim = tile.parameter "head_dim" : index
  %c64 = arith.constant 64 : index
  %is_short = arith.cmpi sle, %head_dim, %c64 : index
  %is_long = arith.cmpi sgt, %head_dim, %c64 : index
  %steps_per_block = arith.divui %mask_block_q, %tile_queries : index

  %q_len = tile.dim %q, 2 : !tile.global<4 x !elem>
  %kv_len = tile.dim %k, 2 : !tile.global<4 x !elem>
  %q_heads = tile.dim %q, 1 : !tile.global<4 x !elem>
  %kv_heads = tile.dim %k, 1 : !tile.global<4 x !elem>
  %heads_per_kv = arith.divui %q_heads, %kv_heads : index
  // Query row i sees the keys up to i + shift.
  %shift = arith.subi %kv_len, %q_len : index

  %q_map = tile.tensor_map %q : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>
  %do_map = tile.tensor_map %d_o : !tile.global<4 x !elem> -> !tile.tensor_map<4, !q_slot>
  %k_map = tile.tensor_map %k : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_slot>
  %v_map = tile.tensor_map %v : !tile.global<4 x !elem> -> !tile.tensor_map<4, !kv_slot>
  %dk_map = tile.tensor_map %d_k : !tile.global<4 x !elem> -> !tile.tensor_map<4, !out_box>
  %dv_map = tile.tensor_map %d_v : !tile.global<4 x !elem> -> !tile.tensor_map<4, !out_box>

  %work_ring = tile.ring stages 2 passed_by [1, dkv_warps] : !work_ring
  %step_ring = tile.ring stages 4 passed_by [1, 1, dkv_warps] : !step_ring
  %offset_ring = tile.ring stages dkv_row_stages passed_by [dkv_warps] : !row_ring
  %delta_ring = tile.ring stages dkv_row_stages passed_by [dkv_warps] : !row_ring
  %stack_ring = tile.ring stages 1 passed_by [dkv_warps] : !stack_ring
  %out_ring = tile.ring stages 1 passed_by [dkv_warps] : !out_ring
  %k_ring = tile.ring stages dkv_kv_stages passed_by [dkv_warps] : !kv_ring
  %v_ring = tile.ring stages dkv_kv_stages passed_by [dkv_warps] : !kv_ring
  %q_ring = tile.ring stages dkv_q_stages passed_by [dkv_warps] : !q_ring
  %do_ring = tile.ring stages dkv_do_stages passed_by [dkv_warps] : !q_ring
  %start = tile.ring_start : !cursor

  // ---- scout: what to load -------------------------------------------------
  tile.role "scout" warps 1 registers dkv_producer_registers {
    // The lists, delta, and whoever reads what was kept before come first; what
    // comes next waits for the end of this.
    scf.if %keeps {
      tile.launch_wait
      tile.launch_next
    }
    %first_program, %end_program, %program_step = tile.programs : index, index, index
    %lasts:3 = scf.while (%program = %first_program, %work_at = %start, %tile_step_at = %start)
        : (index, !cursor, !cursor) -> (index, !cursor, !cursor) {
      %is_program = arith.cmpi slt, %program, %end_program : index
      scf.condition(%is_program) %program, %work_at, %tile_step_at : index, !cursor, !cursor
    } do {
    ^tile(%program: index, %work_at: !cursor, %tile_step_at: !cursor):
      %batch, %kv_head, %tile = tile.program_place %program : index, index, index
      %first_key = arith.muli %tile, %dkv_keys : index
      %key_block = arith.divui %first_key, %mask_block_kv : index
      %first_head = arith.muli %kv_head, %heads_per_kv : index
      %end_head = arith.addi %first_head, %heads_per_kv : index
      %capacity = tile.dim %key_indices, 3 : !tile.global<4 x i32>
      %q_blocks = arith.ceildivui %q_len, %mask_block_q : index
      %q_blocks_i32 = arith.index_cast %q_blocks : index to i32
      // Without lists: from the first query that sees the first key.
      %seen_from = arith.subi %first_key, %shift : index
      %seen_from_causal = arith.maxsi %seen_from, %c0 : index
      %first_seen = arith.select %causal, %seen_from_causal, %c0 : index
      %first_step = arith.divui %first_seen, %tile_queries : index
      %all_steps = arith.ceildivui %q_len, %tile_queries : index
      %seeing_steps = arith.subi %all_steps, %first_step : index
      %dense_steps = arith.maxsi %seeing_steps, %c0 : index
      %total = scf.for %head = %first_head to %end_head step %c1 iter_args(%sum = %c0) -> (index) {
        %steps = scf.if %has_lists -> (index) {
          %head_counts = tile.slice %key_counts[%batch, %head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
          %count_i32 = tile.load_scalar %head_counts[%key_block] : !tile.view<1 x i32> -> i32
          // No count reaches beyond the list's memory, whatever it says.
          %not_negative = arith.maxsi %count_i32, %c0_i32 : i32
          %wanted = arith.index_cast %not_negative : i32 to index
          %count = arith.minsi %wanted, %capacity : index
          %list_steps = arith.muli %count, %steps_per_block : index
          scf.yield %list_steps : index
        } else {
          scf.yield %dense_steps : index
        }
        %next = arith.addi %sum, %steps : index
        scf.yield %next : index
      }
      // Without queries: one step of nothing.
      %all_total = arith.maxsi %total, %c1 : index
      %is_seen = arith.cmpi sgt, %total, %c0 : index
      %total_i32 = arith.index_cast %all_total : index to i32
      %batch_i32 = arith.index_cast %batch : index to i32
      %kv_head_i32 = arith.index_cast %kv_head : index to i32
      %first_key_i32 = arith.index_cast %first_key : index to i32
      %work_note = tile.ring_acquire %work_ring[%work_at] : !work_ring -> !work_note
      tile.store_note (%total_i32, %batch_i32, %kv_head_i32, %first_key_i32), %work_note : !work_note
      tile.ring_commit %work_ring[%work_at] : !work_ring
      %work_next = tile.ring_next %work_ring[%work_at] : !work_ring -> !cursor
      %tile_last = arith.addi %first_key, %tile_keys : index
      %keys_end = arith.addi %first_key, %dkv_keys : index
      %is_ragged = arith.cmpi sgt, %keys_end, %kv_len : index
      %hides_end = arith.andi %is_ragged, %keeps : i1
      // Blocks kept are numbered on from head to head. A block's slabs have 16 keys and
      // tile_queries rows, the latter first.
      %kept_blocks = tile.dim %kept, 1 : !tile.global<3 x !elem>
      %heads_before = arith.muli %batch, %q_heads : index
      %key_slabs = arith.divui %mask_block_kv, %c16 : index
      %slabs_per_block = arith.muli %key_slabs, %steps_per_block : index
      %first_of_block = arith.muli %key_block, %mask_block_kv : index
      %key_in_block = arith.subi %first_key, %first_of_block : index
      %key_slabs_before = arith.divui %key_in_block, %c16 : index
      %slabs_before_keys = arith.muli %key_slabs_before, %steps_per_block : index
      // A step's head and number in the head's list follow from those before: the
      // next one of this head, or the first one of the next head that has any.
      %head_0 = arith.subi %first_head, %c1 : index
      %part_end = scf.for %part = %c0 to %parts step %c1 iter_args(%part_step_at = %tile_step_at) -> (!cursor) {
        %last:4 = scf.for %step = %c0 to %all_total step %c1
            iter_args(%step_at = %part_step_at, %old_head = %head_0, %old_number = %c0, %old_steps = %c0)
            -> (!cursor, index, index, index) {
          %here:3 = scf.while (%head_try = %old_head, %number_try = %old_number, %steps_try = %old_steps)
              : (index, index, index) -> (index, index, index) {
            %is_done = arith.cmpi sge, %number_try, %steps_try : index
            %goes_on = arith.andi %is_done, %is_seen : i1
            scf.condition(%goes_on) %head_try, %number_try, %steps_try : index, index, index
          } do {
          ^next_head(%head_before: index, %number_before: index, %steps_before: index):
            %next_head = arith.addi %head_before, %c1 : index
            %next_steps = scf.if %has_lists -> (index) {
              %head_counts = tile.slice %key_counts[%batch, %next_head] : !tile.global<3 x i32> -> !tile.view<1 x i32>
              %count_i32 = tile.load_scalar %head_counts[%key_block] : !tile.view<1 x i32> -> i32
              %not_negative = arith.maxsi %count_i32, %c0_i32 : i32
              %wanted = arith.index_cast %not_negative : i32 to index
              %count = arith.minsi %wanted, %capacity : index
              %list_steps = arith.muli %count, %steps_per_block : index
              scf.yield %list_steps : index
            } else {
              scf.yield %dense_steps : index
            }
            scf.yield %next_head, %c0, %next_steps : index, index, index
          }
          %head = arith.maxsi %here#0, %first_head : index
          %seen_row, %kept_slab_here = scf.if %has_lists -> (index, index) {
            %list = tile.slice %key_indices[%batch, %head, %key_block] : !tile.global<4 x i32> -> !tile.view<1 x i32>
            %place = arith.divui %here#1, %steps_per_block : index
            %kept_place_i32 = scf.if %keeps -> (i32) {
              %kept_list = tile.slice %places[%batch, %head, %key_block] : !tile.global<4 x i32> -> !tile.view<1 x i32>
              %listed_place = tile.load_scalar %kept_list[%place] : !tile.view<1 x i32> -> i32
              scf.yield %listed_place : i32
            } else {
              scf.yield %minus_one_i32 : i32
            }
            %entry = tile.load_scalar %list[%place] : !tile.view<1 x i32> -> i32
            // Unsigned, so that negative entries are too large.
            %is_block = arith.cmpi ult, %entry, %q_blocks_i32 : i32
            %entry_index = arith.index_cast %entry : i32 to index
            %block_row = arith.muli %entry_index, %mask_block_q : index
            %steps_before_place = arith.muli %place, %steps_per_block : index
            %in_block = arith.subi %here#1, %steps_before_place : index
            %in_block_row = arith.muli %in_block, %tile_queries : index
            %listed_row = arith.addi %block_row, %in_block_row : index
            %valid_row = arith.select %is_block, %listed_row, %nowhere : index
            %in_head = arith.index_cast %kept_place_i32 : i32 to index
            %heads_until = arith.addi %heads_before, %head : index
            %first_kept = arith.muli %heads_until, %kept_blocks : index
            %kept_block = arith.addi %first_kept, %in_head : index
            %kept_slab = arith.muli %kept_block, %slabs_per_block : index
            %own_slab = arith.addi %kept_slab, %slabs_before_keys : index
            %step_slab = arith.addi %own_slab, %in_block : index
            %has_place = arith.cmpi sge, %kept_place_i32, %c0_i32 : i32
            %slab_or_none = arith.select %has_place, %step_slab, %minus_one : index
            scf.yield %valid_row, %slab_or_none : index, index
          } else {
            %dense_step = arith.addi %first_step, %here#1 : index
            %dense_row = arith.muli %dense_step, %tile_queries : index
            scf.yield %dense_row, %minus_one : index, index
          }
          %row = arith.select %is_seen, %seen_row, %nowhere : index
          // Every part of the columns makes the same ds.
          %is_first_part = arith.cmpi eq, %part, %c0 : index
          %may_keep = arith.andi %is_seen, %is_first_part : i1
          %kept_or_none = arith.select %may_keep, %kept_slab_here, %minus_one : index
          %kept_i32 = arith.index_cast %kept_or_none : index to i32
          // Masked when the first query does not see the last key, or that is not kept.
          %row_end = arith.addi %row, %shift : index
          %row_limit = arith.addi %row_end, %c1 : index
          %hides = arith.cmpi slt, %row_limit, %tile_last : index
          %hides_some = arith.andi %hides, %causal : i1
          %masked = arith.ori %hides_some, %hides_end : i1
          %flags = arith.select %masked, %masked_bit, %c0_i32 : i32
          %row_i32 = arith.index_cast %row : index to i32
          %head_i32 = arith.index_cast %head : index to i32
          %place_note, %flag_note = tile.ring_acquire %step_ring[%step_at] : !step_ring -> !place_note, !flag_note
          tile.store_note (%row_i32, %head_i32, %batch_i32), %place_note : !place_note
          tile.store_note (%flags, %kept_i32), %flag_note : !flag_note
          tile.ring_commit %step_ring[%step_at] : !step_ring
          %step_next = tile.ring_next %step_ring[%step_at] : !step_ring -> !cursor
          %number_next = arith.addi %here#1, %c1 : index
          scf.yield %step_next, %here#0, %number_next, %here#2 : !cursor, index, index, index
        }
        scf.yield %last#0 : !cursor
      }
      // Lists are of unequal lengths, so whoever is done takes the next.
      %next = tile.next_program %program counted by %key_tickets : !tile.global<1 x i32> -> index
      scf.yield %next, %work_next, %part_end : index, !cursor, !cursor
    }
    // No more tiles.
    %end_note = tile.ring_acquire %work_ring[%lasts#1] : !work_ring -> !work_note
    tile.store_note (%minus_one_i32, %c0_i32, %c0_i32, %c0_i32), %end_note : !work_note
    tile.ring_commit %work_ring[%lasts#1] : !work_ring
    %end_place, %end_flags = tile.ring_acquire %step_ring[%lasts#2] : !step_ring -> !place_note, !flag_note
    tile.store_note (%c0_i32, %minus_one_i32, %c0_i32), %end_place : !place_note
    tile.ring_commit %step_ring[%lasts#2] : !step_ring
    // The launch before, of attention_bwd_q, has waited for all else that is read here,
    // and need not have ended before this one does.
    scf.if %awaits {
      tile.launch_wait
    }
  }

  // ---- loader ----------------------------------------------------------------
  tile.role "loader" warps 1 registers dkv_producer_registers {
    %ends:5 = scf.while (%work_at = %start, %kv_at = %start, %tile_step_at = %start, %tile_q_at = %start,
                         %tile_do_at = %start)
        : (!cursor, !cursor, !cursor, !cursor, !cursor) -> (!cursor, !cursor, !cursor, !cursor, !cursor) {
      %work_note = tile.ring_wait %work_ring[%work_at] : !work_ring -> !work_note
      %total_i32, %batch_i32, %kv_head_i32, %first_key_i32 = tile.load_note %work_note : !work_note -> i32, i32, i32, i32
      tile.ring_release %work_ring[%work_at] : !work_ring
      %work_next = tile.ring_next %work_ring[%work_at] : !work_ring -> !cursor
      %batch = arith.index_cast %batch_i32 : i32 to index
      %kv_head = arith.index_cast %kv_head_i32 : i32 to index
      %first_key = arith.index_cast %first_key_i32 : i32 to index
      %total = arith.index_cast %total_i32 : i32 to index
      %more = arith.cmpi sge, %total_i32, %c0_i32 : i32
      %last:3 = scf.if %more -> (!cursor, !cursor, !cursor) {
        %k_slot = tile.ring_acquire %k_ring[%kv_at] : !kv_ring -> !kv_slot
        tile.ring_commit %k_ring[%kv_at] loads(%k_slot : !kv_slot) : !kv_ring
        tile.load_async %k_map[%batch, %kv_head, %first_key] into %k_slot : !tile.tensor_map<4, !kv_slot>, !kv_slot
        %all_steps = arith.muli %total, %parts : index
        %steps_last:3 = scf.for %step = %c0 to %all_steps step %c1
            iter_args(%step_at = %tile_step_at, %q_at = %tile_q_at, %do_at = %tile_do_at)
            -> (!cursor, !cursor, !cursor) {
          %place_note, %flag_note = tile.ring_wait %step_ring[%step_at] : !step_ring -> !place_note, !flag_note
          %row_i32, %head_i32, %batch_here = tile.load_note %place_note : !place_note -> i32, i32, i32
          tile.ring_release %step_ring[%step_at] : !step_ring
          %row = arith.index_cast %row_i32 : i32 to index
          %head = arith.index_cast %head_i32 : i32 to index
          %q_slot = tile.ring_acquire %q_ring[%q_at] : !q_ring -> !q_slot
          tile.ring_commit %q_ring[%q_at] loads(%q_slot : !q_slot) : !q_ring
          tile.load_async %q_map[%batch, %head, %row] into %q_slot : !tile.tensor_map<4, !q_slot>, !q_slot
          // The tile before needs its v for longer than its k.
          %is_first = arith.cmpi eq, %step, %c0 : index
          scf.if %is_first {
            %v_slot = tile.ring_acquire %v_ring[%kv_at] : !kv_ring -> !kv_slot
            tile.ring_commit %v_ring[%kv_at] loads(%v_slot : !kv_slot) : !kv_ring
            tile.load_async %v_map[%batch, %kv_head, %first_key] into %v_slot : !tile.tensor_map<4, !kv_slot>, !kv_slot
          }
          %do_slot = tile.ring_acquire %do_ring[%do_at] : !q_ring -> !q_slot
          tile.ring_commit %do_ring[%do_at] loads(%do_slot : !q_slot) : !q_ring
          tile.load_async %do_map[%batch, %head, %row] into %do_slot : !tile.tensor_map<4, !q_slot>, !q_slot
          %step_next = tile.ring_next %step_ring[%step_at] : !step_ring -> !cursor
          %q_next = tile.ring_next %q_ring[%q_at] : !q_ring -> !cursor
          %do_next = tile.ring_next %do_ring[%do_at] : !q_ring -> !cursor
          scf.yield %step_next, %q_next, %do_next : !cursor, !cursor, !cursor
        }
        scf.yield %steps_last#0, %steps_last#1, %steps_last#2 : !cursor, !cursor, !cursor
      } else {
        // The end of the steps, for the rows.
        %end_place, %end_flags = tile.ring_wait %step_ring[%tile_step_at] : !step_ring -> !place_note, !flag_note
        tile.ring_release %step_ring[%tile_step_at] : !step_ring
        scf.yield %tile_step_at, %tile_q_at, %tile_do_at : !cursor, !cursor, !cursor
      }
      %kv_next = tile.ring_next %k_ring[%kv_at] : !kv_ring -> !cursor
      scf.condition(%more) %work_next, %kv_next, %last#0, %last#1, %last#2
          : !cursor, !cursor, !cursor, !cursor, !cursor
    } do {
    ^tile(%work_at: !cursor, %kv_at: !cursor, %step_at: !cursor, %q_at: !cursor, %do_at: !cursor):
      scf.yield %work_at, %kv_at, %step_at, %q_at, %do_at : !cursor, !cursor, !cursor, !cursor, !cursor
    }
  }

  // ---- rows -----------------------------------------------------------------------
  tile.role "rows" warps 1 registers dkv_producer_registers {
    %minus_log2_e = arith.negf %log2_e : f32
    %minus_log2_es = tile.splat %minus_log2_e : f32 -> !rows
    %no_keys = tile.splat %minus_inf : f32 -> !rows
    // delta of all rows: what attention_bwd_q counts, or a launch before has written.
    %first_program, %end_program, %program_step = tile.programs : index, index, index
    %batches = tile.dim %q, 0 : !tile.global<4 x !elem>
    %all_heads = arith.muli %batches, %q_heads : index
    %all_rows = arith.muli %all_heads, %q_len : index
    scf.if %awaits {
      tile.await %progress[%c0] until %all_rows by %program_step : !tile.global<1 x i32>
    }
    %ends:2 = scf.while (%step_at = %start, %row_at = %start) : (!cursor, !cursor) -> (!cursor, !cursor) {
      %place_note, %flag_note = tile.ring_wait %step_ring[%step_at] station 2
          : !step_ring -> !place_note, !flag_note
      %row_i32, %head_i32, %batch_i32 = tile.load_note %place_note : !place_note -> i32, i32, i32
      tile.ring_release %step_ring[%step_at] station 2 : !step_ring
      %step_next = tile.ring_next %step_ring[%step_at] : !step_ring -> !cursor
      %more = arith.cmpi sge, %head_i32, %c0_i32 : i32
      %row_next = scf.if %more -> (!cursor) {
        %row = arith.index_cast %row_i32 : i32 to index
        %head = arith.index_cast %head_i32 : i32 to index
        %batch = arith.index_cast %batch_i32 : i32 to index
        // A query without keys has p = 2^(.. - inf) = 0, and so one beyond the end.
        %lse_view = tile.slice %lse[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %delta_view = tile.slice %delta[%batch, %head] : !tile.global<3 x f32> -> !tile.view<1 x f32>
        %row_lse = tile.load_values %lse_view[%row] otherwise %inf : !tile.view<1 x f32>, f32 -> !rows
        %row_delta = tile.load_values %delta_view[%row] otherwise %f0 : !tile.view<1 x f32>, f32 -> !rows
        %unseen = arith.cmpf oeq, %row_lse, %no_keys : !rows
        %lse_log2 = arith.mulf %row_lse, %minus_log2_es : !rows
        %offset = arith.select %unseen, %no_keys, %lse_log2 : !row_mask, !rows
        %offset_note = tile.ring_acquire %offset_ring[%row_at] : !row_ring -> !row_values
        tile.store_shared %offset, %offset_note : !rows, !row_values
        tile.ring_commit %offset_ring[%row_at] : !row_ring
        %delta_note = tile.ring_acquire %delta_ring[%row_at] : !row_ring -> !row_values
        tile.store_shared %row_delta, %delta_note : !rows, !row_values
        tile.ring_commit %delta_ring[%row_at] : !row_ring
        %row_after = tile.ring_next %offset_ring[%row_at] : !row_ring -> !cursor
        scf.yield %row_after : !cursor
      } else {
        scf.yield %row_at : !cursor
      }
      scf.condition(%more) %step_next, %row_next : !cursor, !cursor
    } do {
    ^step(%step_at: !cursor, %row_at: !cursor):
      scf.yield %step_at, %row_at : !cursor, !cursor
    }
  }

  // ---- consumers -----------------------------------------------------------------
  tile.role "consumers" warps dkv_warps registers dkv_consumer_registers {
    // Exponents in base 2: p = 2^(scale s + offset).
    %scale = arith.mulf %softmax_scale, %log2_e : f32
    %scales = tile.splat %scale : f32 -> !scores
    %hidden = tile.splat %minus_inf : f32 -> !scores
    %no_output = tile.splat %f0 : f32 -> !output
    %stack_slot = tile.ring_pieces %stack_ring[%start] : !stack_ring -> !stack_slot
    %out_slot = tile.ring_pieces %out_ring[%start] : !out_ring -> !out_slot
    %kept_slabs = tile.slice %kept[%c0, %c0] : !tile.global<3 x !elem> -> !tile.view<1 x !elem>
    %tile_ends:7 = scf.while (%work_at = %start, %kv_at = %start, %tile_at = %start, %tile_do_at = %start,
                              %tile_step_at = %start, %tile_offset_at = %start, %tile_delta_at = %start)
        : (!cursor, !cursor, !cursor, !cursor, !cursor, !cursor, !cursor)
        -> (!cursor, !cursor, !cursor, !cursor, !cursor, !cursor, !cursor) {
      %end_note = tile.ring_wait %work_ring[%work_at] station 2 : !work_ring -> !work_note
      %end_total, %end_batch, %end_head, %end_first = tile.load_note %end_note : !work_note -> i32, i32, i32, i32
      %more = arith.cmpi sge, %end_total, %c0_i32 : i32
      scf.condition(%more) %work_at, %kv_at, %tile_at, %tile_do_at, %tile_step_at, %tile_offset_at, %tile_delta_at
          : !cursor, !cursor, !cursor, !cursor, !cursor, !cursor, !cursor
    } do {
    ^tile(%work_at: !cursor, %kv_at: !cursor, %tile_at: !cursor, %tile_do_at: !cursor, %tile_step_at: !cursor,
          %tile_offset_at: !cursor, %tile_delta_at: !cursor):
      %work_note = tile.ring_pieces %work_ring[%work_at] : !work_ring -> !work_note
      %total_i32, %batch_i32, %kv_head_i32, %first_key_i32 = tile.load_note %work_note : !work_note -> i32, i32, i32, i32
      %total = arith.index_cast %total_i32 : i32 to index
      %batch = arith.index_cast %batch_i32 : i32 to index
      %kv_head = arith.index_cast %kv_head_i32 : i32 to index
      %first_key = arith.index_cast %first_key_i32 : i32 to index
      // Key j is seen by the queries from query_starts[j].
      %seen_from_causal = arith.subi %first_key, %shift : index
      %seen_from = arith.select %causal, %seen_from_causal, %before_all : index
      %seen_from_i32 = arith.index_cast %seen_from : index to i32
      %first_starts = tile.splat %seen_from_i32 : i32 -> !key_numbers
      %key_numbers = tile.iota : !key_numbers
      %seen_starts = arith.addi %first_starts, %key_numbers : !key_numbers
      %keys_left = arith.subi %kv_len, %first_key : index
      %keys_left_i32 = arith.index_cast %keys_left : index to i32
      %key_ends = tile.splat %keys_left_i32 : i32 -> !key_numbers
      %is_key = arith.cmpi slt, %key_numbers, %key_ends : !key_numbers
      %never = tile.splat %nowhere_i32 : i32 -> !key_numbers
      %query_starts = arith.select %is_key, %seen_starts, %never : !key_mask, !key_numbers
      %k_slot = tile.ring_wait %k_ring[%kv_at] : !kv_ring -> !kv_slot
      %end_key = arith.addi %first_key, %dkv_keys : index
      %ends:5 = scf.for %part = %c0 to %parts step %c1
          iter_args(%at_0 = %tile_at, %do_at_0 = %tile_do_at, %step_at_0 = %tile_step_at, %offset_at_0 = %tile_offset_at,
                    %delta_at_0 = %tile_delta_at)
          -> (!cursor, !cursor, !cursor, !cursor, !cursor) {
        // The first step's weights.
        %first_column = arith.muli %part, %part_columns : index
        %q_slot_0 = tile.ring_wait %q_ring[%at_0] : !q_ring -> !q_slot
        %products_0 = tile.dot_async %k_slot, %q_slot_0 transposed : !kv_slot, !q_slot -> !tile.pending<!scores>
        %place_note_0, %flag_note_0 = tile.ring_wait %step_ring[%step_at_0] station 3
            : !step_ring -> !place_note, !flag_note
        %flags_0, %kept_0 = tile.load_note %flag_note_0 : !flag_note -> i32, i32
        %offset_note_0 = tile.ring_wait %offset_ring[%offset_at_0] : !row_ring -> !row_values
        %offset_0 = tile.load_shared %offset_note_0 : !row_values -> !rows
        %offsets_0 = tile.expand %offset_0 axis 0 : !rows -> !scores
        %s_0 = tile.dot_wait 0 (%products_0 : !tile.pending<!scores>) -> !scores
        %masked_i32_0 = arith.andi %flags_0, %masked_bit : i32
        %is_marked_0 = arith.cmpi ne, %masked_i32_0, %c0_i32 : i32
        %masked_0 = arith.andi %is_marked_0, %masks : i1
        %visible_0 = scf.if %masked_0 -> (!scores) {
          %row_0, %head_0, %batch_0 = tile.load_note %place_note_0 : !place_note -> i32, i32, i32
          %first_rows_0 = tile.splat %row_0 : i32 -> !row_numbers
          %numbers_0 = tile.iota : !row_numbers
          %row_numbers_0 = arith.addi %first_rows_0, %numbers_0 : !row_numbers
          %queries_0 = tile.expand %row_numbers_0 axis 0 : !row_numbers -> !positions
          %starts_0 = tile.expand %query_starts axis 1 : !key_numbers -> !positions
          %sees_0 = arith.cmpi sge, %queries_0, %starts_0 : !positions
          %unhidden_0 = arith.select %sees_0, %s_0, %hidden : !score_mask, !scores
          scf.yield %unhidden_0 : !scores
        } else {
          scf.yield %s_0 : !scores
        }
        %exponents_0 = math.fma %visible_0, %scales, %offsets_0 : !scores
        %p_f32_0 = math.exp2 %exponents_0 : !scores
        %p_0 = tile.convert %p_f32_0 : !scores -> !weights
        tile.ring_release %step_ring[%step_at_0] station 3 : !step_ring
        tile.ring_release %offset_ring[%offset_at_0] : !row_ring
        %v_slot = tile.ring_wait %v_ring[%kv_at] : !kv_ring -> !kv_slot
        %do_slot_0 = tile.ring_wait %do_ring[%do_at_0] : !q_ring -> !q_slot
        %step_at_1 = tile.ring_next %step_ring[%step_at_0] : !step_ring -> !cursor
        %offset_at_1 = tile.ring_next %offset_ring[%offset_at_0] : !row_ring -> !cursor

        %dk, %dv, %last_p, %last_kept, %last_at, %last_do_at, %end_step_at, %end_offset_at, %last_delta_at =
            scf.for %step = %c1 to %total step %c1
            iter_args(%old_dk = %no_output, %old_dv = %no_output, %old_p = %p_0, %old_kept = %kept_0, %old_at = %at_0,
                      %do_at = %do_at_0, %step_at = %step_at_1, %offset_at = %offset_at_1, %delta_at = %delta_at_0)
            -> (!output, !output, !weights, i32, !cursor, !cursor, !cursor, !cursor, !cursor) {
          // Issue: dp and dv of the step before.
          %do_slot = tile.ring_pieces %do_ring[%do_at] : !q_ring -> !q_slot
          %do_part = tile.shared_columns %do_slot[%first_column] : !q_slot -> !q_part
          scf.if %turns {
            tile.take_turn
          }
          %slopes = tile.dot_async %v_slot, %do_slot transposed : !kv_slot, !q_slot -> !tile.pending<!scores>
          %dv_adding = tile.dot_async %old_p, %do_part onto %old_dv : !output
              : !weights, !q_part -> !tile.pending<!output>
          scf.if %turns {
            tile.pass_turn
          }
          %at = tile.ring_next %q_ring[%old_at] : !q_ring -> !cursor
          %delta_note = tile.ring_wait %delta_ring[%delta_at] : !row_ring -> !row_values
          // Beside short products, delta is better read behind them.
          %distance = scf.if %is_short -> (!scores) {
            %q_slot_early = tile.ring_wait %q_ring[%at] : !q_ring -> !q_slot
            %dp = tile.dot_wait 1 (%slopes : !tile.pending<!scores>) -> !scores
            %delta_here = tile.load_shared %delta_note : !row_values -> !rows
            %deltas = tile.expand %delta_here axis 0 : !rows -> !scores
            %late_distance = arith.subf %dp, %deltas : !scores
            scf.yield %late_distance : !scores
          } else {
            %delta_here = tile.load_shared %delta_note : !row_values -> !rows
            %deltas = tile.expand %delta_here axis 0 : !rows -> !scores
            %dp = tile.dot_wait 1 (%slopes : !tile.pending<!scores>) -> !scores
            %early_distance = arith.subf %dp, %deltas : !scores
            scf.yield %early_distance : !scores
          }
          %p_back = tile.convert %old_p : !weights -> !scores
          %ds_f32 = arith.mulf %p_back, %distance : !scores
          %ds = tile.convert %ds_f32 : !scores -> !weights
          %slab = arith.index_cast %old_kept : i32 to index
          %is_kept = arith.cmpi sge, %old_kept, %c0_i32 : i32
          scf.if %keeps {
            tile.store_stacked %ds through %stack_slot, %kept_slabs[%slab] columns mask_block_q rows dkv_keys where %is_kept
                : !weights, !stack_slot, !tile.view<1 x !elem>
          }
          tile.ring_release %delta_ring[%delta_at] : !row_ring
          %q_slot_of = tile.ring_pieces %q_ring[%old_at] : !q_ring -> !q_slot
          %q_part = tile.shared_columns %q_slot_of[%first_column] : !q_slot -> !q_part

          // Issue: this step's scores, dk of the one before.
          scf.if %is_long {
            %q_slot_late = tile.ring_wait %q_ring[%at] : !q_ring -> !q_slot
          }
          %q_slot = tile.ring_pieces %q_ring[%at] : !q_ring -> !q_slot
          scf.if %turns {
            tile.take_turn
          }
          %products = tile.dot_async %k_slot, %q_slot transposed : !kv_slot, !q_slot -> !tile.pending<!scores>
          %dk_adding = tile.dot_async %ds, %q_part onto %old_dk : !output
              : !weights, !q_part -> !tile.pending<!output>
          scf.if %turns {
            tile.pass_turn
          }
          %offset_note = tile.ring_wait %offset_ring[%offset_at] : !row_ring -> !row_values
          // Whoever has the offset has the note, which was read for it.
          %place_note, %flag_note = tile.ring_pieces %step_ring[%step_at]
              : !step_ring -> !place_note, !flag_note
          %flags, %kept_here = tile.load_note %flag_note : !flag_note -> i32, i32
          %offset = tile.load_shared %offset_note : !row_values -> !rows
          %offsets = tile.expand %offset axis 0 : !rows -> !scores
          %new_dv, %s, %old_p_used = tile.dot_wait 1 (%dv_adding, %products, %old_p
              : !tile.pending<!output>, !tile.pending<!scores>, !weights) -> !output, !scores, !weights
          tile.ring_release %do_ring[%do_at] : !q_ring
          %masked_i32 = arith.andi %flags, %masked_bit : i32
          %is_marked = arith.cmpi ne, %masked_i32, %c0_i32 : i32
          %masked = arith.andi %is_marked, %masks : i1
          %visible = scf.if %masked -> (!scores) {
            %row, %head, %batch_again = tile.load_note %place_note : !place_note -> i32, i32, i32
            %first_rows = tile.splat %row : i32 -> !row_numbers
            %numbers = tile.iota : !row_numbers
            %row_numbers = arith.addi %first_rows, %numbers : !row_numbers
            %queries = tile.expand %row_numbers axis 0 : !row_numbers -> !positions
            %starts = tile.expand %query_starts axis 1 : !key_numbers -> !positions
            %sees = arith.cmpi sge, %queries, %starts : !positions
            %unhidden = arith.select %sees, %s, %hidden : !score_mask, !scores
            scf.yield %unhidden : !scores
          } else {
            scf.yield %s : !scores
          }
          %exponents = math.fma %visible, %scales, %offsets : !scores
          %p_f32 = math.exp2 %exponents : !scores
          %p = tile.convert %p_f32 : !scores -> !weights
          tile.ring_release %step_ring[%step_at] station 3 : !step_ring
          tile.ring_release %offset_ring[%offset_at] : !row_ring
          // Waiting here for what the next step needs keeps the exponentials, which the
          // assembler would move behind it, before the wait for dk.
          %do_at_after = tile.ring_next %do_ring[%do_at] : !q_ring -> !cursor
          %next_do_slot = tile.ring_wait %do_ring[%do_at_after] : !q_ring -> !q_slot
          %new_dk, %ds_used, %p_ready = tile.dot_wait 0 (%dk_adding, %ds, %p
              : !tile.pending<!output>, !weights, !weights) -> !output, !weights, !weights
          tile.ring_release %q_ring[%old_at] : !q_ring
          %step_at_after = tile.ring_next %step_ring[%step_at] : !step_ring -> !cursor
          %offset_at_after = tile.ring_next %offset_ring[%offset_at] : !row_ring -> !cursor
          %delta_at_after = tile.ring_next %delta_ring[%delta_at] : !row_ring -> !cursor
          scf.yield %new_dk, %new_dv, %p_ready, %kept_here, %at, %do_at_after, %step_at_after, %offset_at_after,
                    %delta_at_after : !output, !output, !weights, i32, !cursor, !cursor, !cursor, !cursor, !cursor
        }

        // What the last step's weights give. The next tile's k can come.
        %next_part = arith.addi %part, %c1 : index
        %is_last_part = arith.cmpi eq, %next_part, %parts : index
        scf.if %is_last_part {
          tile.ring_release %k_ring[%kv_at] : !kv_ring
        }
        %do_slot_l = tile.ring_pieces %do_ring[%last_do_at] : !q_ring -> !q_slot
        %do_part_l = tile.shared_columns %do_slot_l[%first_column] : !q_slot -> !q_part
        scf.if %turns {
          tile.take_turn
        }
        %slopes_l = tile.dot_async %v_slot, %do_slot_l transposed : !kv_slot, !q_slot -> !tile.pending<!scores>
        %dv_adding_l = tile.dot_async %last_p, %do_part_l onto %dv : !output
            : !weights, !q_part -> !tile.pending<!output>
        scf.if %turns {
          tile.pass_turn
        }
        %delta_note_l = tile.ring_wait %delta_ring[%last_delta_at] : !row_ring -> !row_values
        %delta_here_l = tile.load_shared %delta_note_l : !row_values -> !rows
        %deltas_l = tile.expand %delta_here_l axis 0 : !rows -> !scores
        %dp_l = tile.dot_wait 1 (%slopes_l : !tile.pending<!scores>) -> !scores
        %gives_v = arith.andi %is_last_part, %apart : i1
        scf.if %gives_v {
          tile.ring_release %v_ring[%kv_at] : !kv_ring
        }
        %p_back_l = tile.convert %last_p : !weights -> !scores
        %distance_l = arith.subf %dp_l, %deltas_l : !scores
        %ds_f32_l = arith.mulf %p_back_l, %distance_l : !scores
        %ds_l = tile.convert %ds_f32_l : !scores -> !weights
        %slab_l = arith.index_cast %last_kept : i32 to index
        %is_kept_l = arith.cmpi sge, %last_kept, %c0_i32 : i32
        scf.if %keeps {
          tile.store_stacked %ds_l through %stack_slot, %kept_slabs[%slab_l] columns mask_block_q rows dkv_keys where %is_kept_l
              : !weights, !stack_slot, !tile.view<1 x !elem>
        }
        tile.ring_release %delta_ring[%last_delta_at] : !row_ring
        %q_slot_of_l = tile.ring_pieces %q_ring[%last_at] : !q_ring -> !q_slot
        %q_part_l = tile.shared_columns %q_slot_of_l[%first_column] : !q_slot -> !q_part
        %last_adding = tile.dot_async %ds_l, %q_part_l onto %dk : !output
            : !weights, !q_part -> !tile.pending<!output>
        %dv_sum, %last_p_used = tile.dot_wait 1 (%dv_adding_l, %last_p : !tile.pending<!output>, !weights)
            -> !output, !weights
        tile.ring_release %do_ring[%last_do_at] : !q_ring
        %dv_tile = tile.convert %dv_sum : !output -> !output_elem
        scf.if %apart {
          tile.store_slabs %dv_tile through %out_slot, %dv_map[%batch, %kv_head, %first_key, %first_column] rows dkv_keys
              : !output_elem, !out_slot, !tile.tensor_map<4, !out_box>
        } else {
          %v_part = tile.shared_columns %v_slot[%c0] : !kv_slot -> !out_slot
          tile.store_slabs %dv_tile through %v_part, %dv_map[%batch, %kv_head, %first_key, %first_column] rows dkv_keys
              : !output_elem, !out_slot, !tile.tensor_map<4, !out_box>
        }
        %dk_sum, %last_ds_used = tile.dot_wait 0 (%last_adding, %ds_l : !tile.pending<!output>, !weights)
            -> !output, !weights
        tile.ring_release %q_ring[%last_at] : !q_ring
        %output_scales = tile.splat %softmax_scale : f32 -> !output
        %scaled = arith.mulf %dk_sum, %output_scales : !output
        %dk_tile = tile.convert %scaled : !output -> !output_elem
        scf.if %apart {
          tile.store_slabs %dk_tile through %out_slot, %dk_map[%batch, %kv_head, %first_key, %first_column] rows dkv_keys
              : !output_elem, !out_slot, !tile.tensor_map<4, !out_box>
        } else {
          %dk_view = tile.slice %d_k[%batch, %kv_head] : !tile.global<4 x !elem> -> !tile.view<2 x !elem>
          tile.store %dk_tile, %dk_view[%first_key, %first_column] below %end_key : !output_elem, !tile.view<2 x !elem>
          tile.store_stacked_wait
          tile.ring_release %v_ring[%kv_at] : !kv_ring
        }
        %end_at = tile.ring_next %q_ring[%last_at] : !q_ring -> !cursor
        %end_do_at = tile.ring_next %do_ring[%last_do_at] : !q_ring -> !cursor
        %end_delta_at = tile.ring_next %delta_ring[%last_delta_at] : !row_ring -> !cursor
        scf.yield %end_at, %end_do_at, %end_step_at, %end_offset_at, %end_delta_at
            : !cursor, !cursor, !cursor, !cursor, !cursor
      }
      tile.ring_release %work_ring[%work_at] station 2 : !work_ring
      %work_next = tile.ring_next %work_ring[%work_at] : !work_ring -> !cursor
      %kv_next = tile.ring_next %k_ring[%kv_at] : !kv_ring -> !cursor
      scf.yield %work_next, %kv_next, %ends#0, %ends#1, %ends#2, %ends#3, %ends#4
          : !cursor, !cursor, !cursor, !cursor, !cursor, !cursor, !cursor
    }
    tile.store_stacked_wait
  }
}

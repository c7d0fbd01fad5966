// SPDX-License-Identifier: Apache-2.0
//
// Copies between global and shared memory that run by themselves (TMA), and
// what roles move between shared memory and registers.
#ifndef SPARGEJIT_TILE_ASYNC_COPIES_TD
#define SPARGEJIT_TILE_ASYNC_COPIES_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_TensorMapOp : Tile_Op<"tensor_map", [Pure]> {
  let summary = "Says that a tensor argument is copied in boxes";
  let description = [{
    The host builds the map from the tensor's pointer, sizes and strides and
    passes it beside the arguments. A box in panels of 16 bytes is one of an image
    (`tile.gather_panels`).

    C1: the source is an argument of the kernel, of the map's rank.
    C2: source and box have the same element type.
  }];
  let arguments = (ins Tile_GlobalType:$source);
  let results = (outs Tile_TensorMapType:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_LoadAsyncOp : Tile_Op<"load_async"> {
  let summary = "Starts the copy of one box into a slot";
  let description = [{
    slot[r, c] = source[indices[0], …, indices[n - 1] + r, c], 0 beyond the
    tensor's end; counts towards the slot's commit.

    C1: one index for each dimension of the tensor but the last.
    C2: the slot is the map's box.
    C3: the slot comes from a `tile.ring_acquire`.
  }];
  let arguments = (ins Tile_TensorMapType:$map, Variadic<Index>:$indices, Tile_SharedType:$slot);
  let assemblyFormat = [{
    $map `[` $indices `]` `into` $slot attr-dict `:` qualified(type($map)) `,` qualified(type($slot))
  }];
  let hasVerifier = 1;
}

def Tile_GatherAsyncOp : Tile_Op<"gather_async"> {
  let summary = "Starts the copies of several boxes into one slot, below each other";
  let description = [{
    With b the box's rows: slot[i b + r, c] = source[indices…, rows[i] + r, c], 0
    beyond the tensor's end; counts towards the slot's commit. With
    `tile.loop_boxes = n` a gather of n boxes becomes a loop, others do not.

    C1: one index for each dimension of the tensor but the last two.
    C2: rows is a rank-1 tensor of i32.
    C3: the slot has the box's columns, elements and swizzle, and where sizes are
        fixed, rows(slot) = size(rows) * rows(box).
    C4: the slot comes from a `tile.ring_acquire`.
  }];
  let arguments = (ins Tile_TensorMapType:$map, Variadic<Index>:$indices, AnyRankedTensor:$rows,
                       Tile_SharedType:$slot);
  let assemblyFormat = [{
    $map `[` $indices `]` `rows` $rows `into` $slot attr-dict
    `:` qualified(type($map)) `,` type($rows) `,` qualified(type($slot))
  }];
  let hasVerifier = 1;
}

def Tile_GatherPanelsOp : Tile_Op<"gather_panels"> {
  let summary = "Starts the copies of several boxes of an image into one slot, side by side";
  let description = [{
    An image is a matrix of R rows and of columns of a byte each, as its core
    matrices one after the other: with n = R / 8, row g n + i of the map's tensor
    (128 bytes) is the core matrix of rows 8 i to 8 i + 7 and columns 16 g to 16 g
    + 15. With b the box's columns: slot[r, i b + c] = image[indices…][r,
    columns[i] + c], 0 beyond the image's end; counts towards the slot's commit.
    `tile.loop_boxes` is as for `tile.gather_async`.

    C1: one index for each dimension of the tensor but the last two.
    C2: columns is a rank-1 tensor of i32, of multiples of 16.
    C3: slot and box have the same rows, elements of a byte and panels of 16 bytes,
        and where sizes are fixed, columns(slot) = size(columns) * columns(box),
        columns(box) a multiple of 16.
    C4: the slot comes from a `tile.ring_acquire`.
  }];
  let arguments = (ins Tile_TensorMapType:$map, Variadic<Index>:$indices, AnyRankedTensor:$columns,
                       Tile_SharedType:$slot);
  let assemblyFormat = [{
    $map `[` $indices `]` `columns` $columns `into` $slot attr-dict
    `:` qualified(type($map)) `,` type($columns) `,` qualified(type($slot))
  }];
  let hasVerifier = 1;
}

def Tile_StoreAsyncOp : Tile_Op<"store_async"> {
  let summary = "Starts the copy of a slot to the tensor, clipped to its end";
  let description = [{
    source[indices[0], …, indices[n - 1] + r, c] = slot[r, c].

    C1: one index for each dimension of the tensor but the last.
    C2: the slot is the map's box.
    C3: stands in a one-warp role.
  }];
  let arguments = (ins Tile_SharedType:$slot, Tile_TensorMapType:$map, Variadic<Index>:$indices);
  let assemblyFormat = [{
    $slot `,` $map `[` $indices `]` attr-dict `:` qualified(type($slot)) `,` qualified(type($map))
  }];
  let hasVerifier = 1;
}

def Tile_StoreWaitOp : Tile_Op<"store_wait"> {
  let summary = "Waits until this role's async stores have read their slots";
  let description = [{
    C1: stands in a one-warp role.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_StoreSharedOp : Tile_Op<"store_shared"> {
  let summary = "Writes a tile from registers to shared memory";
  let description = [{
    slot[x] = value[x]; an async store or dot may read it after the next hand-over.
    A role of warpgroups writes matrices, and one 32-bit word for each of its rows.

    C1: value and slot have the same sizes and element type.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_SharedType:$slot);
  let assemblyFormat = "$value `,` $slot attr-dict `:` type($value) `,` qualified(type($slot))";
  let hasVerifier = 1;
}

def Tile_LoadSharedOp : Tile_Op<"load_shared"> {
  let summary = "Reads words of shared memory as a rank-1 tensor";
  let description = [{
    In a role of warpgroups: one value a column of the role's tiles.

    C1: the slot has rank 1.
    C2: slot and result have the same size and element type.
  }];
  let arguments = (ins Tile_SharedType:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$slot attr-dict `:` qualified(type($slot)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SharedColumnsOp : Tile_Op<"shared_columns", [Pure]> {
  let summary = "Some of the panels of a matrix in shared memory";
  let description = [{
    result[r, c] = slot[r, first + c]. Columns beyond the slot's last panel are
    whatever lies there.

    C1: slot and result are matrices of the same rows, elements and swizzle.
    C2: first is a multiple of a panel's columns.
  }];
  let arguments = (ins Tile_SharedType:$slot, Index:$first);
  let results = (outs Tile_SharedType:$result);
  let assemblyFormat = "$slot `[` $first `]` attr-dict `:` qualified(type($slot)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_SharedPositionsOp : Tile_Op<"shared_positions"> {
  let summary = "The row numbers in a gathered tile, from those of its boxes";
  let description = [{
    With b = size(result) / size(slot): result[c] = slot[c / b] + c mod b.

    C1: the slot is of rank 1 and i32.
    C2: the result is a rank-1 tensor of i32, where fixed with a multiple of eight
        elements for each of the slot's.
  }];
  let arguments = (ins Tile_SharedType:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$slot attr-dict `:` qualified(type($slot)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ListBoxesOp : Tile_Op<"list_boxes", [MemoryEffects<[MemRead]>]> {
  let summary = "The first rows of the boxes that listed blocks consist of";
  let description = [{
    A block of `block` rows is block / box boxes. For box number j = first + i,
    with the entry e = list[j / (block / box)]:
    result[i] = e * block + (j mod (block / box)) * box if j / (block / box) <
    count, e >= 0 and that row is below `limit`; else 2^30, a row beyond every
    tensor's end.

    C1: the list is a rank-1 view of i32.
    C2: the result is a rank-1 tensor of i32.
  }];
  let arguments = (ins Tile_ViewType:$list, Index:$first, Index:$count, Index:$block, Index:$box,
                       Index:$limit);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $list `[` $first `]` `count` $count `block` $block `box` $box `limit` $limit attr-dict
    `:` qualified(type($list)) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Stacks: matrices that one kernel leaves in global memory as its tensor core
// made them, and another one reads as left operands of its dots.
//
// Of a K x M matrix, a stack holds slabs of 16 of its rows one after the other, each
// a `!tile.shared<16 x M, swizzle 16>`: element (r, c) is at
//
//   (r / 16) 16 M + (c / 8) 128 + (r mod 16) 8 + c mod 8
#ifndef SPARGEJIT_TILE_STACKS_TD
#define SPARGEJIT_TILE_STACKS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_StoreStackedOp : Tile_Op<"store_stacked", [MemoryEffects<[MemWrite]>]> {
  let summary = "Starts writing the first rows of a tile as part of a stack";
  let description = [{
    Where the condition holds: the rows below `rows` of the value, N columns wide, as
    columns n to n + N - 1 of a stack of `columns` columns that begins at view[(first
    - n / N) 16 N]. So `first` counts pieces of 16 rows and N columns from the view's
    start, and n is (first mod (`columns` / N)) N where the stack is the first one.
    Whether the view ends before is not asked.

    Each warp copies its 16 rows to its part of the slot, which is the role's own,
    and starts a copy from there to the view; before, it waits until that of the op
    before has read the slot, as `tile.store_stacked_wait` does.

    C1: the view has rank 1 and the value's element type.
    C2: the value has rank 2; fixed sizes: columns of the value a multiple of 16,
        `columns` one of them, `rows` a multiple of 16.
    C3: stands in a role of warpgroups.
    C4: the slot is in panels of 16 bytes, has 16 rows, the value's element type,
        and where fixed a 16th of the value's elements in each.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_SharedType:$slot, Tile_ViewType:$view, Index:$first,
                       Tile_SizesAttr:$columns, Tile_SizesAttr:$rows, I1:$where);
  let assemblyFormat = [{
    $value `through` $slot `,` $view `[` $first `]` `columns` custom<Size>($columns) `rows` custom<Size>($rows)
    `where` $where attr-dict `:` type($value) `,` qualified(type($slot)) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_StoreSlabsOp : Tile_Op<"store_slabs"> {
  let summary = "Starts the copies of a tile's first rows to the tensor, clipped to its end";
  let description = [{
    source[indices[0], …, indices[n - 2] + r, indices[n - 1] + c] = value[r, c] for
    the rows r below `rows`.

    Each warp copies its 16 rows to its part of the slot, which is the role's own or
    one of a ring that nobody reads any more, and starts a copy from there to the
    tensor; before, it waits until that of the op before has read its slot, as
    `tile.store_stacked_wait` does.

    C1: one index for each dimension of the tensor.
    C2: value and slot have the same sizes and element type.
    C3: the map's box has 16 rows, and the slot's columns, elements and swizzle;
        fixed `rows` are a multiple of 16.
    C4: stands in a role of warpgroups.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_SharedType:$slot, Tile_TensorMapType:$map,
                       Variadic<Index>:$indices, Tile_SizesAttr:$rows);
  let assemblyFormat = [{
    $value `through` $slot `,` $map `[` $indices `]` `rows` custom<Size>($rows) attr-dict
    `:` type($value) `,` qualified(type($slot)) `,` qualified(type($map))
  }];
  let hasVerifier = 1;
}

def Tile_StoreStackedWaitOp : Tile_Op<"store_stacked_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Each warp waits until its copies of `tile.store_stacked` and `tile.store_slabs` have read their slots";
  let description = [{
    A role ends behind one of these where it has any of those.

    C1: stands in a role of warpgroups.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_GatherRunsOp : Tile_Op<"gather_runs"> {
  let summary = "Starts the copies of several runs of a view into one slot, one after the other";
  let description = [{
    With n = size(firsts) and b the n-th part of the slot's bytes: bytes i b to i b +
    b - 1 of the slot are those from view[firsts[i]] on; counts towards the slot's
    commit. Runs may reach beyond the view's end, where memory goes on. What is read
    is not expected to be read again: it is the first to leave the cache.

    C1: the view has rank 1 and the slot's element type.
    C2: firsts is a rank-1 tensor of i32.
    C3: the slot comes from a `tile.ring_acquire`.
  }];
  let arguments = (ins Tile_ViewType:$view, AnyRankedTensor:$firsts, Tile_SharedType:$slot);
  let assemblyFormat = [{
    $view `from` $firsts `into` $slot attr-dict
    `:` qualified(type($view)) `,` type($firsts) `,` qualified(type($slot))
  }];
  let hasVerifier = 1;
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Moving tiles between global memory, scratch and values.
#ifndef SPARGEJIT_TILE_MEMORY_OPS_TD
#define SPARGEJIT_TILE_MEMORY_OPS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "Window on the trailing dimensions of a global tensor";
  let description = [{
    result[x, …] = source[indices…, x, …].

    C1: rank(source) = number of indices + rank(result).
    C2: source and result have the same element type.
  }];
  let arguments = (ins Tile_GlobalType:$source, Variadic<Index>:$indices);
  let results = (outs Tile_ViewType:$result);
  let assemblyFormat = "$source `[` $indices `]` attr-dict `:` qualified(type($source)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads a tile, zeros beyond the end";
  let description = [{
    result[r, c] = view[row + r, col + c] where that lies inside the view, else 0
    (memory beyond the end is not touched). With `transposed`, result[c, r].
    Elements are converted to the result's type.

    C1: the view has rank 2.
    C2: the result has rank 2.
    C3: the result's element type is f32 where the view's differs from it.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$row, Index:$col, UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$view `[` $row `,` $col `]` (`transposed` $transposed^)? attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadScalarOp : Tile_Op<"load_scalar", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads one element of a vector view";
  let description = [{
    C1: the view has rank 1 and the result is its element type.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$index);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$view `[` $index `]` attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadValuesOp : Tile_Op<"load_values", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads neighbouring elements of a vector view";
  let description = [{
    result[i] = view[first + i] inside the view, else `otherwise` (memory beyond the
    end is not touched). In a role of warpgroups: one value a row of the role's
    tiles. Elements of 16 bits, which teams alone read, are converted.

    C1: the view has rank 1 and elements of 32 bits, bf16 or f16 (once fixed).
    C2: the result has rank 1, and like `otherwise` the view's type, or f32 for 16 bits.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first, AnyType:$otherwise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $view `[` $first `]` `otherwise` $otherwise attr-dict
    `:` qualified(type($view)) `,` type($otherwise) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Writes a tile, clipped to the view";
  let description = [{
    view[offsets… + x] = value[x] wherever that lies inside the view, and in a row
    before `below` where that is given. A vector value in a rank-2 view runs along
    the last dimension. Elements are converted to the view's type, rounding to
    nearest even. With `tile.exchanged` four lanes of a warpgroup first exchange what
    they hold, so that each stores 16 bytes at once, where rows are aligned so: in a
    quarter of the accesses, and in more instructions and registers.

    C1: as many offsets as the view has dimensions.
    C2: rank(value) <= rank(view).
    C3: with `below`, rank(value) = 2.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_ViewType:$view, Variadic<Index>:$offsets,
                       Optional<Index>:$below);
  let assemblyFormat = [{
    $value `,` $view `[` $offsets `]` (`below` $below^)? attr-dict `:` type($value) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads the rows of several listed blocks side by side";
  let description = [{
    With n = count, block b of the list entry e = list[first + r / block]:
    result[r, c] = view[e * block + r % block, c] where first + r / block < n,
    e >= 0 and the row lies inside the view; else 0.

    C1: the view has rank 2, the list is a rank-1 view of i32.
    C2: the result has rank 2.
  }];
  let arguments = (ins Tile_ViewType:$view, Tile_ViewType:$list, Index:$first, Index:$count, Index:$block);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $view `by` $list `[` $first `]` `count` $count `block` $block attr-dict
    `:` qualified(type($view)) `,` qualified(type($list)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_GatherPositionsOp : Tile_Op<"gather_positions", [MemoryEffects<[MemRead]>]> {
  let summary = "The row numbers that tile.gather reads";
  let description = [{
    result[r] = e * block + r % block for the same e as in `tile.gather`, or -1
    where that reads nothing (limit is the view's number of rows).

    C1: the list is a rank-1 view of i32.
    C2: the result is a rank-1 tensor of i32.
  }];
  let arguments = (ins Tile_ViewType:$list, Index:$first, Index:$count, Index:$block, Index:$limit);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $list `[` $first `]` `count` $count `block` $block `limit` $limit attr-dict
    `:` qualified(type($list)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_AppendIndicesOp : Tile_Op<"append_indices", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Appends the numbers of kept columns to each row's list";
  let description = [{
    For each row r of `keep` that lies inside the view, for c ascending with
    keep[r, c]: view[row + r, n] = first_column + c; n += 1, where n starts at
    counts[r]. Returns the new counts.

    C1: keep is a rank-2 tensor of i1, counts a rank-1 tensor of i32 with as many
        rows.
    C2: the view is a rank-2 view of i32.
  }];
  let arguments = (ins AnyRankedTensor:$keep, Index:$first_column, AnyRankedTensor:$counts,
                       Tile_ViewType:$view, Index:$row);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $keep `from` $first_column `counts` $counts `into` $view `[` $row `]` attr-dict
    `:` type($keep) `,` type($counts) `,` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_FillTailOp : Tile_Op<"fill_tail", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a value behind the end of each row's list";
  let description = [{
    view[row + r, n] = value for all n >= counts[r] inside the view.

    C1: counts is a rank-1 tensor of i32, the view a rank-2 view of i32.
  }];
  let arguments = (ins I32:$value, AnyRankedTensor:$counts, Tile_ViewType:$view, Index:$row);
  let assemblyFormat = "$value `after` $counts `into` $view `[` $row `]` attr-dict `:` type($counts) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_ScratchOp : Tile_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory of this program alone";
  let description = [{
    rows x roundUp(columns, multiple) elements, uninitialised, alive until the
    program ends. With a `tile.team`, each of its CTAs has its own. An i1 takes one
    bit.

    C1: `columns` is a `tile.dim` of a kernel argument or a constant, so that the
        memory can be sized before the launch.
    C2: `multiple` is a `tile.parameter` or a constant.
  }];
  let arguments = (ins Index:$columns, Index:$multiple);
  let results = (outs Tile_ScratchType:$result);
  let assemblyFormat = "$columns `multiple` $multiple attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_ScratchLoadOp : Tile_Op<"scratch_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads columns col, col + 1, … of a scratch";
  let description = [{
    C1: the result has rank 2, the scratch's rows and its element type.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$col);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$scratch `[` $col `]` attr-dict `:` qualified(type($scratch)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScratchStoreOp : Tile_Op<"scratch_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes columns col, col + 1, … of a scratch";
  let description = [{
    C1: the value has rank 2, the scratch's rows and its element type.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_ScratchType:$scratch, Index:$col);
  let assemblyFormat = "$value `,` $scratch `[` $col `]` attr-dict `:` type($value) `,` qualified(type($scratch))";
  let hasVerifier = 1;
}

#endif

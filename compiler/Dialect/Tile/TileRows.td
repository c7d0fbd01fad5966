// SPDX-License-Identifier: Apache-2.0
//
// What one warp does with rank-1 tensors: sums, ranks, and scattered stores.
#ifndef SPARGEJIT_TILE_ROWS_TD
#define SPARGEJIT_TILE_ROWS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SumRowsOp : Tile_Op<"sum_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "Sum of neighbouring rows of a view";
  let description = [{
    result[c] = sum over first <= r < end of view[r, c], in float32; 0 for none.
    The order of the sum is fixed by the sizes. A lane has `loads` loads under way,
    which does not change the order.

    C1: the view has rank 2 and bf16 or f16 elements (once those are fixed).
    C2: the result is a rank-1 tensor of f32, where fixed of a multiple of 8
        elements up to 256.
    C3: from 1 to 32 loads.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first, Index:$end, Tile_SizesAttr:$loads);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $view `[` $first `to` $end `]` `loads` custom<Size>($loads) attr-dict
    `:` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_RowDotsOp : Tile_Op<"row_dots", [MemoryEffects<[MemRead]>]> {
  let summary = "Products of the rows of two views, row by row";
  let description = [{
    result[r] = sum over c < columns of a[row + r, c] b[row + r, c], in float32; 0
    beyond the views' rows. The order of the sum is fixed by the columns.

    C1: the views have rank 2 and bf16 or f16 elements (once those are fixed), and
        the same.
    C2: the result is a rank-1 tensor of 32 f32.
    C3: the columns, where fixed, are a multiple of 8 up to 256.
  }];
  let arguments = (ins Tile_ViewType:$a, Tile_ViewType:$b, Index:$row, Tile_SizesAttr:$columns);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `[` $row `]` `columns` custom<Size>($columns) attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_PrefetchRowsOp : Tile_Op<"prefetch_rows"> {
  let summary = "Brings neighbouring rows of a view nearer";
  let description = [{
    Asks the second-level cache for columns 0 to `columns` - 1 of the rows row to row +
    count - 1, as far as the view has them. Nothing waits for it.

    C1: the view has rank 2.
    C2: the count, where fixed, is a multiple of 32, and the columns are at least 1.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$row, Tile_SizesAttr:$count, Tile_SizesAttr:$columns);
  let assemblyFormat = [{
    $view `[` $row `]` `rows` custom<Size>($count) `columns` custom<Size>($columns) attr-dict
    `:` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_LoadRunOp : Tile_Op<"load_run", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads neighbouring elements of a vector view, zeros beyond the end";
  let description = [{
    result[i] = view[first + i] where that lies inside the view, else 0 (memory
    beyond the end is not touched). Bytes are widened without a sign.

    C1: the view has rank 1 and i8 or i32 elements.
    C2: the result is a rank-1 tensor of i32.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$view `[` $first `]` attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_TotalOp : Tile_Op<"total", [Pure]> {
  let summary = "Sum or maximum of all elements";
  let description = [{
    The order of a sum is fixed by the size. `max` ignores NaN.

    C1: the source is a rank-1 tensor of i32, f32 or f64, the result one element.
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, AnyRankedTensor:$source);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AddProductsOp : Tile_Op<"add_products", [Pure]> {
  let summary = "Adds each lane's products of two tensors to its sum";
  let description = [{
    result[l] = sums[l] + sum of a[i] b[i] over the elements i of lane l, in the order
    in which it holds them (`tile.team`), each product and sum rounded once.

    C1: a and b are rank-1 tensors of f32 of one size.
    C2: sums and the result are rank-1 tensors of 32 f32.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$sums);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$a `,` $b `to` $sums attr-dict `:` type($a) `,` type($b) `,` type($sums) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_PickOp : Tile_Op<"pick", [Pure]> {
  let summary = "One element of a tensor with one element a lane";
  let description = [{
    C1: the source is a rank-1 tensor of at most 32 elements of i32 or f32, the
        result one of them.
  }];
  let arguments = (ins AnyRankedTensor:$source, Index:$index);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$source `[` $index `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RankOp : Tile_Op<"rank", [Pure]> {
  let summary = "How many elements before each one are true";
  let description = [{
    result[i] = number of j < i with source[j].

    C1: the source is a rank-1 tensor of i1, the result one of i32 of its size.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SumUpToOp : Tile_Op<"sum_up_to", [Pure]> {
  let summary = "Sums of the elements up to each one";
  let description = [{
    result[i] = sum over j <= i of source[j].

    C1: the source is a rank-1 tensor of at most 32 elements of i32, the result its
        like.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScatterOp : Tile_Op<"scatter", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes chosen elements to given places of a vector view";
  let description = [{
    view[positions[i]] = values[i] for all i with where[i] and 0 <= positions[i]
    < size(view).

    C1: the view has rank 1 and 32-bit elements, of the values' type.
    C2: values, positions (i32) and where (i1) are rank-1 tensors of one size.
  }];
  let arguments = (ins AnyRankedTensor:$values, AnyRankedTensor:$positions, AnyRankedTensor:$where,
                       Tile_ViewType:$view);
  let assemblyFormat = [{
    $values `at` $positions `where` $where `into` $view attr-dict
    `:` type($values) `,` type($positions) `,` type($where) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_ScatterAtOp : Tile_Op<"scatter_at", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes chosen elements to given places of a matrix view";
  let description = [{
    view[rows[i], columns[i]] = values[i] for all i with where[i], 0 <= rows[i] <
    rows(view) and 0 <= columns[i] < columns(view).

    C1: the view has rank 2 and 32-bit elements, of the values' type.
    C2: values, rows and columns (i32) and where (i1) are rank-1 tensors of one
        size.
  }];
  let arguments = (ins AnyRankedTensor:$values, AnyRankedTensor:$rows, AnyRankedTensor:$columns,
                       AnyRankedTensor:$where, Tile_ViewType:$view);
  let assemblyFormat = [{
    $values `at` $rows `,` $columns `where` $where `into` $view attr-dict
    `:` type($values) `,` type($rows) `,` type($columns) `,` type($where) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_RowScatterOp : Tile_Op<"row_scatter", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes chosen elements to given columns of a row of scratch";
  let description = [{
    scratch[row, positions[i]] = values[i] for all i with where[i] and 0 <=
    positions[i] < columns of the scratch; seen by the warp that stored them.

    C1: the scratch has 32-bit elements, of the values' type.
    C2: values, positions (i32) and where (i1) are rank-1 tensors of one size.
  }];
  let arguments = (ins AnyRankedTensor:$values, AnyRankedTensor:$positions, AnyRankedTensor:$where,
                       Tile_ScratchType:$scratch, Index:$row);
  let assemblyFormat = [{
    $values `at` $positions `where` $where `into` $scratch `[` $row `]` attr-dict
    `:` type($values) `,` type($positions) `,` type($where) `,` qualified(type($scratch))
  }];
  let hasVerifier = 1;
}

def Tile_RowGatherOp : Tile_Op<"row_gather", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads chosen columns of a row of this CTA's scratch";
  let description = [{
    result[i] = scratch[row, positions[i]], which all lie inside it.

    C1: the result is a rank-1 tensor of the scratch's element type, of 32 bits.
    C2: the positions are a tensor of i32 of its size.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$row, AnyRankedTensor:$positions);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $scratch `[` $row `]` `at` $positions attr-dict
    `:` qualified(type($scratch)) `,` type($positions) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_SetTrueOp : Tile_Op<"set_true", [MemoryEffects<[MemWrite]>]> {
  let summary = "Sets chosen elements of a row of scratch to true";
  let description = [{
    scratch[row, positions[i]] = true for all i with where[i], positions inside it,
    in what the warp has stored there; seen by that warp.

    C1: the scratch is of i1.
    C2: positions (i32) and where (i1) are rank-1 tensors of one size.
  }];
  let arguments = (ins AnyRankedTensor:$positions, AnyRankedTensor:$where,
                       Tile_ScratchType:$scratch, Index:$row);
  let assemblyFormat = [{
    $positions `where` $where `into` $scratch `[` $row `]` attr-dict
    `:` type($positions) `,` type($where) `,` qualified(type($scratch))
  }];
  let hasVerifier = 1;
}

def Tile_SetRunTrueOp : Tile_Op<"set_run_true", [MemoryEffects<[MemWrite]>]> {
  let summary = "Sets neighbouring elements of a row of scratch to true";
  let description = [{
    scratch[row, i] = true for first <= i < end, in what the warp has stored there;
    seen by that warp.

    C1: the scratch is of i1.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$row, Index:$first, Index:$end);
  let assemblyFormat = "$scratch `[` $row `,` $first `to` $end `]` attr-dict `:` qualified(type($scratch))";
  let hasVerifier = 1;
}

def Tile_ListTrueOp : Tile_Op<"list_true", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Lists the numbers of a row's true elements";
  let description = [{
    Writes every i < end with scratch[row, i], in order, to view[0], view[1], …, as
    far as the view goes; the result is how many there are.

    C1: the scratch is of i1.
    C2: the view has rank 1 and i32 elements.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$row, Index:$end, Tile_ViewType:$view);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $scratch `[` $row `]` `to` $end `into` $view attr-dict
    `:` qualified(type($scratch)) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_RowListTrueOp : Tile_Op<"row_list_true", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Lists the numbers of a row's true elements in scratch";
  let description = [{
    As `tile.list_true`, to target[target_row, 0], …; seen by the warp.

    C1: the scratch is of i1.
    C2: the target is of i32.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$row, Index:$end,
                       Tile_ScratchType:$target, Index:$target_row);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $scratch `[` $row `]` `to` $end `into` $target `[` $target_row `]` attr-dict
    `:` qualified(type($scratch)) `,` qualified(type($target))
  }];
  let hasVerifier = 1;
}

def Tile_FillRestOp : Tile_Op<"fill_rest", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a value to the end of a vector view";
  let description = [{
    view[n] = value for all n >= first inside the view.

    C1: the view has rank 1 and 32-bit elements, of the value's type.
  }];
  let arguments = (ins AnyType:$value, Tile_ViewType:$view, Index:$first);
  let assemblyFormat = "$value `into` $view `[` $first `]` attr-dict `:` type($value) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_StoreScalarOp : Tile_Op<"store_scalar", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes one element of a vector view";
  let description = [{
    C1: the view has rank 1 and 32-bit elements, of the value's type.
  }];
  let arguments = (ins AnyType:$value, Tile_ViewType:$view, Index:$index);
  let assemblyFormat = "$value `,` $view `[` $index `]` attr-dict `:` type($value) `,` qualified(type($view))";
  let hasVerifier = 1;
}

#endif

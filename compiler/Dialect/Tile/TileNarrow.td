// SPDX-License-Identifier: Apache-2.0
//
// Tiles of narrow elements in registers, pieces of tiles, and rows that are made
// narrow.
#ifndef SPARGEJIT_TILE_NARROW_TD
#define SPARGEJIT_TILE_NARROW_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_FmaReluOp : Tile_Op<"fma_relu", [Pure, AllTypesMatch<["a", "b", "c", "result"]>]> {
  let summary = "max(a b + c, 0), rounded once";
  let description = [{
    Subnormal results stay; NaN gives NaN.

    C1: floats; lowered for f16.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$c);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
}

def Tile_LowBitsOp : Tile_Op<"low_bits", [Pure]> {
  let summary = "The low eight bits of f16 elements, as those of f8E4M3FN";
  let description = [{
    bits(result[r, c]) = bits(source[r, c]) mod 256. The bits of the f16 subnormal
    n 2^-24 are the integer n, which as those of an f8E4M3FN, for n < 127, are
    about 2^(n / 8 - 7): the mantissa takes the place of the fraction of the
    exponent (Schraudolph, Neural Computation 11(4), 1999, for eight bits).

    C1: source and result have the same sizes and rank 2.
    C2: the result's elements are f8E4M3FN; lowered for a source of f16.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ColumnsOp : Tile_Op<"columns", [Pure]> {
  let summary = "Some neighbouring columns of a tile";
  let description = [{
    result[r, c] = source[r, first + c].

    C1: both have rank 2, the same rows and the same element type.
    C2: where fixed, first is a multiple of 8, the result's columns too, and they
        lie within the source.
  }];
  let arguments = (ins AnyRankedTensor:$source, Tile_SizesAttr:$first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `from` custom<Size>($first) attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_FirstColumnsOp : Tile_Op<"first_columns", [Pure, AllTypesMatch<["source", "otherwise", "result"]>]> {
  let summary = "A tile's first columns, and another's beyond";
  let description = [{
    result[r, c] = source[r, c] where c < end, else otherwise[r, c]. end is a multiple
    of 16: one comparison for sixteen columns, where a mask of positions takes one
    for each.

    C1: rank 2, and the columns, where fixed, are a multiple of 16.
    C2: lowered in a role of warpgroups, for elements of 16 or 32 bits.
  }];
  let arguments = (ins AnyRankedTensor:$source, Index:$end, AnyRankedTensor:$otherwise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `to` $end `otherwise` $otherwise attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadColumnsOp : Tile_Op<"load_columns", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads one value for each column of a role's tiles";
  let description = [{
    result[c] = view[first + c], all of which must lie within the view.

    C1: the view has rank 1, the result too, and the same 32-bit element type.
    C2: stands in a role of warpgroups.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$view `[` $first `]` attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadRowsOp : Tile_Op<"load_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads one value for each row of a role's tiles";
  let description = [{
    result[r] = view[first + r], 0 beyond the view's end, whose memory is not
    touched.

    C1: the view has rank 1, the result too, and the same 32-bit element type.
    C2: stands in a role of warpgroups.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$view `[` $first `]` attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_PeakRowsOp : Tile_Op<"peak_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "Largest absolute values of neighbouring rows of a view";
  let description = [{
    result[c] = max over first <= r < end of |view[r, c]|; 0 for none. NaN does not
    count. A second result is what `tile.sum_rows` gives, of the same reading.

    C1: the view has rank 2 and bf16 or f16 elements (once those are fixed).
    C2: the result is a rank-1 tensor of f32, where fixed of a multiple of 8
        elements up to 256.
    C3: a sum has the result's type.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first, Index:$end);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$sum);
  let assemblyFormat = [{
    $view `[` $first `to` $end `]` attr-dict
    `:` qualified(type($view)) `->` type($result) (`,` type($sum)^)?
  }];
  let hasVerifier = 1;
}

def Tile_ScaleRowsOp : Tile_Op<"scale_rows", [AttrSizedResultSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Rows times a factor, in eight bits";
  let description = [{
    into[r, c] = round(factor view[r, c]) for first <= r < end, c < columns, to the
    nearest f8E4M3FN (even where two are as near), what is too large to 448. A result
    is what `tile.sum_rows` gives, of the same reading. `saturates`: whether any
    element became 448, -448 or NaN.

    C1: view and into have rank 2, bf16 or f16 elements (once those are fixed) and
        f8E4M3FN.
    C2: the columns, where fixed, are a multiple of 8 up to 256.
    C3: a sum is a rank-1 tensor of f32 of as many elements as columns.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first, Index:$end, F32:$factor,
                       Tile_ViewType:$into, Tile_SizesAttr:$columns);
  let results = (outs Optional<AnyRankedTensor>:$sum, Optional<I1>:$saturates);
  let assemblyFormat = [{
    $view `[` $first `to` $end `]` `by` $factor `into` $into
    `columns` custom<Size>($columns) attr-dict
    `:` qualified(type($view)) `,` qualified(type($into)) (`->` type($sum)^)? (`saturates` type($saturates)^)?
  }];
  let hasVerifier = 1;
}

def Tile_ScaleCoresOp : Tile_Op<"scale_cores", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Sixteen rows times factors, in eight bits, as columns of an image";
  let description = [{
    With D = size(factors): writes the columns first to first + 15 of an image of D
    + 8 rows (see `tile.gather_panels`), those of rows below `end`: image[c, p(r)] =
    round(factors[c] view[r, c]) as `tile.scale_rows` rounds, and 1 in the last
    eight rows; of rows from `end` on 0. p(r) is the place that row r has in its
    sixteen: where column 4 t + i stands for 2 t + i mod 2 + 8 (i / 2), as
    `tile.dot_async` wants it. first is a multiple of 16. `saturates`: as of
    `tile.scale_rows`.

    C1: view and image have rank 2, bf16 or f16 elements (once those are fixed) and
        f8E4M3FN.
    C2: factors is a rank-1 tensor of f32, where fixed of a multiple of 8 elements
        up to 256.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$first, Index:$end, AnyRankedTensor:$factors,
                       Tile_ViewType:$image);
  let results = (outs Optional<I1>:$saturates);
  let assemblyFormat = [{
    $view `[` $first `to` $end `]` `by` $factors `into` $image attr-dict
    `:` qualified(type($view)) `,` type($factors) `,` qualified(type($image)) (`saturates` type($saturates)^)?
  }];
  let hasVerifier = 1;
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Dots that run beside other work, and what their results need before and after.
#ifndef SPARGEJIT_TILE_ASYNC_DOTS_TD
#define SPARGEJIT_TILE_ASYNC_DOTS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_DotAsyncOp : Tile_Op<"dot_async", [AttrSizedOperandSegments]> {
  let summary = "Starts a matrix product on the tensor core";
  let description = [{
    result = a · b (+ accumulator), or a · bᵀ with `transposed`; sums in the
    result's type, of f8E4M3FN in fewer bits than float32 has (about 14, as seen on
    H200; so long sums should not stay in one accumulator). One commit group. a
    lies in shared memory or in registers, b in shared memory; none of the operands
    may be written before a `tile.dot_wait` has covered this dot.

    With an 8-bit a in registers, whose columns lie as a dot left them, those of b
    are permuted in every sixteen: column 4 t + i of b is to be met by column 2 t +
    i mod 2 + 8 (i / 2) of a, i < 4.

    With `stacked`, a is the transpose of a K x M matrix as a stack (TileStacks.td), in
    shared memory as 16 x (K / 16) M.

    Columns of a from `within` on, which is the same for all threads, are zeros: those
    beyond the next multiple of 64 are left out.

    C1: a is a rank-2 tensor or shared tile, b a rank-2 shared tile.
    C2: a is M x K, b is K x N (N x K with `transposed`), the result M x N.
    C3: a and b have the same element type.
    C4: the accumulator is the result's tensor, or pending like the result.
    C5: where fixed, N is a multiple of 8 up to 256 and M one of 64; with a in
        registers, K is one of 16.
    C6: 8-bit elements are f8E4M3FN, with `transposed`, and K is a multiple of 32.
    C7: the result is f32, or f16 where the elements are f16 or of 8 bits.
    C8: a stacked a is in shared memory, of 16-bit elements once fixed, in panels of
        16 bytes, and b is not transposed.
    C9: `within` needs a in registers.
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, Tile_SharedType]>:$a, Tile_SharedType:$b,
                       UnitAttr:$stacked, UnitAttr:$transposed, Optional<Index>:$within,
                       Optional<AnyTypeOf<[AnyRankedTensor, Tile_PendingType]>>:$accumulator);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = [{
    $a (`stacked` $stacked^)? `,` $b (`transposed` $transposed^)? (`within` $within^)?
    (`onto` $accumulator^ `:` qualified(type($accumulator)))? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_DotWaitOp : Tile_Op<"dot_wait", [AttrSizedOperandSegments]> {
  let summary = "Waits for dots; their results, and what must not move across";
  let description = [{
    Waits until at most `pending` of the role's dots are unfinished. The results
    are the operands' values; nothing that uses them moves before this op. Tensors
    beside the pending ones are only held in place: what is computed from them
    (for example the next dot's left operand) starts after the wait. The wait
    itself starts when the `after` tensors have been computed, which is the work
    that is to run beside the dots.

    C1: pending is from 0 to 7.
    C2: each result is its operand's tensor.
    C3: at least one operand is pending.
    C4: the elements of the `after` tensors are f32, f16 or i32.
  }];
  let arguments = (ins I64Attr:$pending,
                       Variadic<AnyTypeOf<[AnyRankedTensor, Tile_PendingType]>>:$values,
                       Variadic<AnyRankedTensor>:$after);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $pending `(` $values `:` qualified(type($values)) `)` (`after` $after^ `:` type($after))? attr-dict
    `->` type($results)
  }];
  let hasVerifier = 1;
}

def Tile_ConvertOp : Tile_Op<"convert", [Pure]> {
  let summary = "A tile in another element type, rounded to nearest even or exact";
  let description = [{
    What is too large for f8E4M3FN, which has no infinity, becomes its largest
    number, 448.

    C1: source and result have the same sizes.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ReducePartialOp : Tile_Op<"reduce_partial", [Pure]> {
  let summary = "Sum or maximum of each row, in four parts";
  let description = [{
    result[r, t] = combine over the columns c with (c / 2) mod 4 = t of
    source[r, c]: the part that one lane holds, so that lanes need to meet only
    once, in the `tile.reduce` of the four parts after a loop.

    C1: the source has rank 2; the result its rows, four columns and its element
        type.
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "Whether any element is true";
  let description = [{
    C1: the source is a rank-1 tensor of i1.
    C2: stands in a one-warp role, or in a kernel with a `tile.team`.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_WarpAnyOp : Tile_Op<"warp_any", [Pure]> {
  let summary = "Whether any element of the warp's rows is true";
  let description = [{
    The same for a warp's lanes, not for the role's other warps: for leaving out
    work that would change nothing in these rows.

    C1: the source is a tensor of i1.
    C2: stands in a role of warpgroups.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_WarpDotOp : Tile_Op<"warp_dot"> {
  let summary = "A matrix product by each warp for its own rows, at once";
  let description = [{
    result = a · bᵀ, f32 sums: what `tile.dot_async` gives up to rounding, of 16
    rows a warp. It is slow, and needs no other warp: for work that few warps
    have, seldom.

    C1: a is M x K, b is N x K, the result M x N, all of rank 2.
    C2: a and b have the same element type; the result's is f32.
    C3: stands in a role of warpgroups.
  }];
  let arguments = (ins Tile_SharedType:$a, Tile_SharedType:$b);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif

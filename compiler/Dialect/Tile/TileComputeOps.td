// SPDX-License-Identifier: Apache-2.0
//
// What arith and math lack on tiles.
#ifndef SPARGEJIT_TILE_COMPUTE_OPS_TD
#define SPARGEJIT_TILE_COMPUTE_OPS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "A tile with one value everywhere";
  let description = [{
    C1: the result's element type is the value's type.
  }];
  let arguments = (ins AnyType:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "0, 1, 2, …";
  let description = [{
    C1: the result is a rank-1 tensor of i32.
  }];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ExpandOp : Tile_Op<"expand", [Pure]> {
  let summary = "A vector repeated along a new dimension";
  let description = [{
    axis = 1: result[r, c] = source[r] (one value a row);
    axis = 0: result[r, c] = source[c] (one value a column).

    C1: the source has rank 1, the result rank 2 and the same element type.
    C2: axis is 0 or 1, and the other dimension has the source's size.
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Matrix product added to an accumulator";
  let description = [{
    result = accumulator + a · b, or a · bᵀ with `transposed`; sums in the
    accumulator's element type.

    C1: a, b and the accumulator have rank 2.
    C2: a is M x K, b is K x N (N x K with `transposed`), the accumulator M x N.
    C3: the accumulator's element type is f32.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$accumulator,
                       UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`transposed` $transposed^)? `,` $accumulator attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "Sum or maximum of each row";
  let description = [{
    result[r] = combine over c of source[r, c]. The order of a sum is fixed for a
    target. `max` of a row with a NaN is unspecified (the sum that follows it in
    a softmax is NaN).

    C1: the source has rank 2, the result rank 1, the source's rows and its
        element type.
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure]> {
  let summary = "Running sum along each row";
  let description = [{
    result[r, c] = carry[r] + sum over c' <= c of source[r, c'].

    C1: source and result have the same type, rank 2, an integer element type.
    C2: carry has rank 1, the source's rows and its element type.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$carry);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `carry` $carry attr-dict `:` type($source) `,` type($carry) `->` type($result)";
  let hasVerifier = 1;
}

#endif

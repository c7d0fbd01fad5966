// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose warps all do the same: teams, and what their warps share.
#ifndef SPARGEJIT_TILE_TEAMS_TD
#define SPARGEJIT_TILE_TEAMS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_TeamOp : Tile_Op<"team", [Pure]> {
  let summary = "The warps that run one program, and which of them this is";
  let description = [{
    A program runs on a team of `members` CTAs (a cluster) of `warps` warps, each
    of which runs the whole body by itself: a scalar is the same in all lanes of
    a warp, and a rank-1 tensor of N elements is shared out among the lanes,
    min(4, ceil(N / 32)) (as a power of two) neighbouring elements to a lane and
    then on to the next lane, round and round. `ctas` CTAs at least fit a
    multiprocessor together, which bounds the registers of a thread.

    Warps meet in `tile.team_barrier` and `tile.spread_dots` alone, which every warp
    of the team must reach equally often.

    C1: stands directly in a `tile.kernel`, once, and without roles.
    C2: members are from 1 to 8, warps from 1 to 32, CTAs from 1 to 32.

    Example: tests/lit/Dialect/Tile/teams.mlir
  }];
  let arguments = (ins Tile_SizesAttr:$members, Tile_SizesAttr:$warps, Tile_SizesAttr:$ctas);
  let results = (outs Index:$member, Index:$warp);
  let assemblyFormat = [{
    `members` custom<Size>($members) `warps` custom<Size>($warps) `ctas` custom<Size>($ctas) attr-dict
    `:` type($member) `,` type($warp)
  }];
  let hasVerifier = 1;
}

def Tile_TeamBarrierOp : Tile_Op<"team_barrier"> {
  let summary = "Waits for all warps of the team; what they stored before is seen";
  let assemblyFormat = "attr-dict";
}

def Tile_LaunchWaitOp : Tile_Op<"launch_wait"> {
  let summary = "Waits for the end of the launch before this one";
  let description = [{
    A kernel with this op may be launched while the launch before it still runs, once
    that one lets it (`tile.launch_next`). It must not read what that one writes before
    this op, nor may its last program end without it: so a launch that has ended says
    that all before it have. What that one has waited for before it let this one
    start can be read at once.

    C1: stands in a `tile.kernel`, in no loop but the first part of an `scf.while`,
        which runs at least once.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_LaunchNextOp : Tile_Op<"launch_next"> {
  let summary = "Lets the launch after this one start, once all CTAs say so";
  let assemblyFormat = "attr-dict";
}

def Tile_NextPartOp : Tile_Op<"next_part"> {
  let summary = "The part after this one that no other warp works on";
  let description = [{
    The warps of a launch, `step` in number, share `parts` parts out: a warp starts
    with the part of its own number, and those beyond are given out in order to
    whoever asks, so that warps end together. `counter[0]` holds how many have been
    given. A warp that has a part asks until it gets `parts` or more, which says that
    nothing is left, and not again; the last request sets the counter back to 0, as
    it was before the launch. With an absent counter, or more than `draws` parts a
    warp, which end together as it is, the result is part + step.

    The request is made where the op's block starts, so that what stands between
    hides the time until the answer comes.

    C1: the counter is of rank 1 and i32, an argument of the kernel.
    C2: stands in no role, directly in a loop outside of which `parts` and `step` are.
  }];
  let arguments = (ins Index:$part, Index:$parts, Index:$step, Tile_GlobalType:$counter,
                       Tile_SizesAttr:$draws);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $part `of` $parts `step` $step `counted` `by` $counter `draws` custom<Size>($draws) attr-dict
    `:` qualified(type($counter)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_SignalOp : Tile_Op<"signal"> {
  let summary = "Adds to a counter what says that this warp's stores are done";
  let description = [{
    counter[index] += count, once all that the warp has stored before is seen by
    the whole device. An absent counter is left alone.

    C1: the counter is of rank 1 and i32, an argument of the kernel.
  }];
  let arguments = (ins Tile_GlobalType:$counter, Index:$index, Index:$count);
  let assemblyFormat = "$counter `[` $index `]` `by` $count attr-dict `:` qualified(type($counter))";
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_Op<"await"> {
  let summary = "Waits for the signals of a launch that may still be running";
  let description = [{
    Waits until counter[index] reaches `count`; what was stored before the signals
    that it counts is seen by all warps of the team, in a role by its warp. The last
    of `programs` programs that wait for it sets it back to 0, as it was before the
    launches; no signal beyond `count` may come. With an absent counter it waits for
    the end of the launch before, as `tile.launch_wait`.

    The kernel that signals lets this one start when all of its CTAs run
    (`tile.launch_next`), so that they need no room that waiting CTAs take.

    C1: the counter is of rank 1 and i32, an argument of the kernel.
    C2: stands directly in a `tile.kernel`, or in a one-warp role.
  }];
  let arguments = (ins Tile_GlobalType:$counter, Index:$index, Index:$count, Index:$programs);
  let assemblyFormat = [{
    $counter `[` $index `]` `until` $count `by` $programs attr-dict `:` qualified(type($counter))
  }];
  let hasVerifier = 1;
}

def Tile_StoreSplitOp : Tile_Op<"store_split", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a row in parts that the tensor core multiplies";
  let description = [{
    view[row] = split(value). The row is scaled by a power of two, so that its
    largest element has the exponent 14, and each element split into two float16
    parts, x = high + low, of together 22 significant bits; a NaN or infinity makes
    the row's products NaN. All rows together take 8 ceil(rows / 8) (16
    ceil(columns / 16) + 1) words from the view's first one, at a multiple of 16 bytes;
    the view's strides do not count. First the parts: eight rows after eight rows, of
    those 16 columns after 16 columns, of those row after row; each four columns are
    four words, the high parts of all four and then the low ones. Then the float32 by
    row that undoes the scaling.

    C1: the value is a rank-1 tensor of f32, where fixed of a multiple of 8 elements
        up to 256.
    C2: the view has rank 2 and f32 elements.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_ViewType:$view, Index:$row);
  let assemblyFormat = "$value `,` $view `[` $row `]` attr-dict `:` type($value) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_SpreadDotsOp : Tile_Op<"spread_dots"> {
  let summary = "Products of a team's rows with all rows of a view, as exact as float32";
  let description = [{
    With m = rows(scratch): row r < m members of the team goes to row r mod m of the
    scratch of member r / m,

      scratch[r mod m, j] = scale sum over d < columns of x[row + r, d] y[j, d]

    for each row j of k; q holds x and k holds y as `tile.store_split` writes them, and
    the first row is a multiple of 8. A zero is +0, and NaN -inf. What rows of the team
    beyond q's last get is not said, nor what up to 15 columns behind k's last. All
    warps of the team work on it, and each
    waits for the scores of its CTA's rows.

    The products of high · high, high · low and low · high are summed in float32 on
    the tensor core: an error of about 2^-22 of |x row| · |y row| (Ootomo and Yokota,
    arXiv 2203.03341, with float16 parts).

    C1: the views have rank 2 and f32 elements.
    C2: the scratch is of f32.
    C3: the columns, where fixed, are a multiple of 8 up to 256.
    C4: stands directly in a `tile.kernel`.
  }];
  let arguments = (ins Tile_ViewType:$k, Tile_ViewType:$q, Index:$row, F32:$scale,
                       Tile_SizesAttr:$columns, Tile_ScratchType:$scratch);
  let assemblyFormat = [{
    $k `,` $q `[` $row `]` `by` $scale `columns` custom<Size>($columns) `into` $scratch attr-dict
    `:` qualified(type($k)) `,` qualified(type($q)) `,` qualified(type($scratch))
  }];
  let hasVerifier = 1;
}

def Tile_RowLoadOp : Tile_Op<"row_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads neighbouring elements of a row of this CTA's scratch";
  let description = [{
    result[i] = scratch[row, col + i].

    C1: the result is a rank-1 tensor of the scratch's element type, of 32 bits.
  }];
  let arguments = (ins Tile_ScratchType:$scratch, Index:$row, Index:$col);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$scratch `[` $row `,` $col `]` attr-dict `:` qualified(type($scratch)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RowStoreOp : Tile_Op<"row_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes neighbouring elements of a row of this CTA's scratch";
  let description = [{
    scratch[row, col + i] = value[i], seen by the warp that stored it.

    C1: the value is a rank-1 tensor of the scratch's element type, of 32 bits or
        i1.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_ScratchType:$scratch, Index:$row, Index:$col);
  let assemblyFormat = "$value `,` $scratch `[` $row `,` $col `]` attr-dict `:` type($value) `,` qualified(type($scratch))";
  let hasVerifier = 1;
}

#endif

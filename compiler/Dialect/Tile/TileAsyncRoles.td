// SPDX-License-Identifier: Apache-2.0
//
// Who does what in a hand-scheduled kernel: roles of warps, and the programs
// that a persistent CTA runs one after the other.
#ifndef SPARGEJIT_TILE_ASYNC_ROLES_TD
#define SPARGEJIT_TILE_ASYNC_ROLES_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_RoleOp : Tile_Op<"role", [SingleBlock, NoTerminator]> {
  let summary = "What some warps of the CTA do";
  let description = [{
    The roles of a kernel run at the same time, each on its own warps, and meet
    only in rings. `registers` is what each of its threads may use.

    One warp: scalars are the same in all lanes, and a rank-1 tensor has one
    element a lane. Four warps a warpgroup: a tile's rows are shared out among
    the warpgroups in order, and each warpgroup holds its rows as the tensor core
    leaves them: lane l of warp w has the rows 16 w + l / 4 and that + 8, of every
    eight columns 2 (l mod 4) and the next.

    One-warp roles that follow each other share a warpgroup, whose other warps do
    nothing.

    C1: stands directly in a `tile.kernel`.
    C2: warps are 1 or a multiple of 4.
    C3: registers are a multiple of 8 from 24 to 256 (PTX ISA 8.0, setmaxnreg).
    C4: at most four one-warp roles follow each other, with equal registers.
    C5: all warpgroups together have at most 512 registers for each thread number
        (65 536 registers an SM). Where it is half of that, two CTAs run on one SM
        (where shared memory lets them), and so on.

    Example: tests/lit/Dialect/Tile/async_roles.mlir
  }];
  let arguments = (ins StrAttr:$name, Tile_SizesAttr:$warps, Tile_SizesAttr:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` custom<Size>($warps) `registers` custom<Size>($registers) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Tile_TakeTurnOp : Tile_Op<"take_turn"> {
  let summary = "Waits until the role's warpgroup before this one passes the turn";
  let description = [{
    Warpgroups of a role take turns, so that one issues its dots while another
    computes: warpgroup 0 has the first one, the last passes to warpgroup 0. Each
    warpgroup takes and passes equally often. Without a second warpgroup there is
    nothing to wait for.

    C1: stands in a role of warpgroups.
    C2: no other role of the kernel takes turns (named barriers 1 to 15 are given
        to warpgroups in order).
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_PassTurnOp : Tile_Op<"pass_turn"> {
  let summary = "Lets the role's next warpgroup have its turn";
  let description = [{
    C1: stands in a role of warpgroups.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_ProgramsOp : Tile_Op<"programs", [Pure]> {
  let summary = "The programs of a persistent CTA: first, first + step, … below end";
  let description = [{
    A kernel with this op is launched with as many CTAs as run at once, not with
    one for each program of its grid.
  }];
  let results = (outs Index:$first, Index:$end, Index:$step);
  let assemblyFormat = "attr-dict `:` type($first) `,` type($end) `,` type($step)";
}

def Tile_NextProgramOp : Tile_Op<"next_program"> {
  let summary = "The program after this one that no other CTA works on";
  let description = [{
    Programs beyond the CTAs' first ones are given out in order to whoever asks:
    `counter[0]` holds how many have been. A CTA asks until it gets end or more,
    which says that nothing is left, and not again; the last CTA's request sets
    the counter back to 0, as it was before the launch. With an absent counter the
    result is program + step. Stands in a one-warp role, the same one always.

    C1: the counter is of rank 1 and i32, an argument of the kernel.
    C2: stands in a one-warp role.
  }];
  let arguments = (ins Index:$program, Tile_GlobalType:$counter);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $program `counted` `by` $counter attr-dict `:` qualified(type($counter)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_NthLargestOp : Tile_Op<"nth_largest", [MemoryEffects<[MemRead]>]> {
  let summary = "Where the n-th largest of a view's first numbers is";
  let description = [{
    The place of what comes n-th, counted from 0, among view[0], …,
    view[length - 1], where larger numbers come before smaller ones and equal ones
    in the order of their places; numbers below 0 count as 0 and those from 2^30 on
    as 2^30 - 1. Sorts nothing: the warp finds the number bit by bit, with one pass
    over the view for each bit of the largest. n is below length.

    C1: the view is of rank 1 and i32.
    C2: stands in a one-warp role.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$n, Index:$length);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $view `[` $n `]` `of` $length attr-dict `:` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ProgramPlaceOp : Tile_Op<"program_place", [Pure]> {
  let summary = "A program's batch, head and tile number";
  let description = [{
    program = (batch * heads + head) * tiles + tile, for the kernel's grid.
  }];
  let arguments = (ins Index:$program);
  let results = (outs Index:$batch, Index:$head, Index:$tile);
  let assemblyFormat = "$program attr-dict `:` type($batch) `,` type($head) `,` type($tile)";
}

#endif

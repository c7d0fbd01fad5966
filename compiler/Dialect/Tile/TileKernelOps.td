// SPDX-License-Identifier: Apache-2.0
//
// The kernel itself, its parameters and its place in the grid.
#ifndef SPARGEJIT_TILE_KERNEL_OPS_TD
#define SPARGEJIT_TILE_KERNEL_OPS_TD

include "compiler/Dialect/Tile/TileTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_KernelOp : Tile_Op<"kernel", [
    IsolatedFromAbove, Symbol, SingleBlockImplicitTerminator<"ReturnOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One kernel: its arguments, parameters, grid and body";
  let description = [{
    Arguments are `!tile.global` tensors, `index` and `f32` scalars; their SSA
    names are the names they are bound by. `parameters` lists every symbolic
    size, flag and element type. One program runs for each batch, head and tile
    of `grid` rows: sizes[0] * sizes[1] * ceil(sizes[2] / parameter) programs of
    the named tensor argument. `attributes {assembler_level = 1}` has the
    assembler's optimiser do less (3 is its default): for a kernel whose machine
    code was measured as fast, which is ready sooner then.

    C1: an argument is a `!tile.global`, `index` or `f32`.
    C2: the grid's argument is a `!tile.global` of rank 3 or more.
    C3: parameter names are unique, and the grid's parameter is one of them.
    C4: every symbolic size, element type and `tile.parameter` in the body is
        declared in `parameters`.
    C5: the assembler's level is from 0 to 3.

    Example: tests/lit/Dialect/Tile/kernel.mlir
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$argument_names,
                       StrArrayAttr:$parameters, I64Attr:$grid_argument,
                       StrAttr:$grid_parameter,
                       OptionalAttr<I64Attr>:$assembler_level);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ReturnOp : Tile_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "Ends a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_ParameterOp : Tile_Op<"parameter", [Pure]> {
  let summary = "The value of a kernel parameter";
  let description = [{
    A constant once the kernel is specialised. `i1` is true for any value but 0.

    C1: the result is `index` or `i1`.
    C2: stands inside a `tile.kernel` (whose C4 checks the name).
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[Index, I1]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "This program's batch, head and tile number";
  let results = (outs Index:$batch, Index:$head, Index:$tile);
  let assemblyFormat = "attr-dict `:` type($batch) `,` type($head) `,` type($tile)";
}

def Tile_DimOp : Tile_Op<"dim", [Pure]> {
  let summary = "Size of a dimension of a global tensor";
  let description = [{
    C1: 0 <= dimension < rank.
  }];
  let arguments = (ins Tile_GlobalType:$source, I64Attr:$dimension);
  let results = (outs Index:$result);
  let assemblyFormat = "$source `,` $dimension attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
}

def Tile_IsPresentOp : Tile_Op<"is_present", [Pure]> {
  let summary = "Whether an optional tensor argument was given";
  let arguments = (ins Tile_GlobalType:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
}

#endif
